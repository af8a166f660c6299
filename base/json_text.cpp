#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

namespace railbreak {

namespace {

template <class Json> std::string text_of(const Json& document) {
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace

std::string json_text(const nlohmann::json& document) {
    return text_of(document);
}

std::string json_text(const nlohmann::ordered_json& document) {
    return text_of(document);
}

} // namespace railbreak
