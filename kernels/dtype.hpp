// Element types of a collective's vector.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railbreak {

/// Element type, named as in scenario files ("float32", ...).
enum class Dtype : std::uint8_t { kFloat32, kFloat64, kInt32, kBfloat16, kFloat16 };

/// Bytes per element: 4, 8, 4, 2, 2.
[[nodiscard]] std::uint32_t size_of(Dtype dtype);
/// "float32", "float64", "int32", "bfloat16", "float16".
[[nodiscard]] std::string_view to_string(Dtype dtype);
/// The reverse; nothing for an unknown name.
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view name);

} // namespace railbreak
