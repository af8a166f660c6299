#include "scenarios/json_fields.hpp"

#include <fmt/format.h>

namespace railbreak::scenarios {

using nlohmann::json;

std::int64_t integer(const json& object, const char* key, std::int64_t min, std::int64_t max) {
    const json& value = object.at(key);
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max)) ||
        value.get<std::int64_t>() < min || value.get<std::int64_t>() > max) {
        throw std::out_of_range(fmt::format("\"{}\" is not a whole number from {} to {}", key, min, max));
    }
    return value.get<std::int64_t>();
}

std::int32_t small(const json& object, const char* key, std::int64_t min, std::int64_t max) {
    return static_cast<std::int32_t>(integer(object, key, min, max));
}

BitRate rate(const json& object, const char* key, BitRate max) {
    return BitRate::bits_per_s(
        static_cast<std::uint64_t>(integer(object, key, 1, static_cast<std::int64_t>(max.bits_per_s()))));
}

} // namespace railbreak::scenarios
