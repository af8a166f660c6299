// Reading members of a plan's JSON within their limits. Everything throws what plan_from_json() catches. Internal to
// scenarios.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "base/units.hpp"

namespace railbreak::scenarios {

/// A whole number between limits.
[[nodiscard]] std::int64_t integer(const nlohmann::json& object, const char* key, std::int64_t min, std::int64_t max);
[[nodiscard]] std::int32_t small(const nlohmann::json& object, const char* key, std::int64_t min, std::int64_t max);
/// A rate above 0.
[[nodiscard]] BitRate rate(const nlohmann::json& object, const char* key, BitRate max);

/// One of the words of an enumeration.
template <class Enum, std::size_t N>
Enum word(const nlohmann::json& object, const char* key, const std::array<Enum, N>& values) {
    const auto text = object.at(key).get<std::string>();
    for (const Enum value : values) {
        if (text == to_string(value)) {
            return value;
        }
    }
    throw std::out_of_range(std::string("\"") + key + "\" has an unknown value");
}

} // namespace railbreak::scenarios
