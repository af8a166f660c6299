// The JSON Schema of scenario files, for editors and other tools.
#pragma once

#include <string_view>

namespace railbreak::scenarios {

/// scenarios/schema/scenario-v1.schema.json (draft 2020-12) as built into this binary.
[[nodiscard]] std::string_view scenario_schema_json();

} // namespace railbreak::scenarios
