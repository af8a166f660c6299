// JSON as railbreak prints it and stores it.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace railbreak {

/// The document, two spaces deep, with a newline at its end. Bytes that are no UTF-8 become the replacement character:
/// names and reasons come from outside.
[[nodiscard]] std::string json_text(const nlohmann::json& document);
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& document);

} // namespace railbreak
