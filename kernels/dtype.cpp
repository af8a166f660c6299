#include "kernels/dtype.hpp"

#include <array>

namespace railbreak {

namespace {

constexpr std::array kAll{Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

} // namespace

std::uint32_t size_of(Dtype dtype) {
    switch (dtype) {
    case Dtype::kFloat32: return 4;
    case Dtype::kFloat64: return 8;
    case Dtype::kInt32: return 4;
    case Dtype::kBfloat16: return 2;
    case Dtype::kFloat16: return 2;
    }
    return 0;
}

std::string_view to_string(Dtype dtype) {
    switch (dtype) {
    case Dtype::kFloat32: return "float32";
    case Dtype::kFloat64: return "float64";
    case Dtype::kInt32: return "int32";
    case Dtype::kBfloat16: return "bfloat16";
    case Dtype::kFloat16: return "float16";
    }
    return "";
}

std::optional<Dtype> parse_dtype(std::string_view name) {
    for (const Dtype dtype : kAll) {
        if (to_string(dtype) == name) {
            return dtype;
        }
    }
    return std::nullopt;
}

} // namespace railbreak
