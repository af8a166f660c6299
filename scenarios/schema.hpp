// The JSON Schemas of scenario and suite files, for editors and other tools.
#pragma once

#include <string_view>

namespace railbreak::scenarios {

/// scenarios/schema/scenario-v1.schema.json (draft 2020-12) as built into this binary.
[[nodiscard]] std::string_view scenario_schema_json();
/// scenarios/schema/suite-v1.schema.json likewise.
[[nodiscard]] std::string_view suite_schema_json();

} // namespace railbreak::scenarios
