// Where one more value of the same kind is to be expected.
#pragma once

#include <optional>
#include <span>

namespace railbreak::analyse {

/// A typical value and the range around it.
struct Band {
    double typical = 0; ///< geometric mean
    double low = 0;
    double high = 0;
};

/// The range in which one more value falls with probability `confidence`, when the logarithms of all scatter normally:
/// Student's t with the sample's standard deviation, widened by the uncertainty of its mean (prediction interval).
/// Nothing for fewer than 2 values; all values must be above 0.
[[nodiscard]] std::optional<Band> prediction_band(std::span<const double> values, double confidence);

/// Sample standard deviation; 0 for fewer than 2 values.
[[nodiscard]] double standard_deviation(std::span<const double> values);

} // namespace railbreak::analyse
