#include "harness/analyse/band.hpp"

#include <cmath>
#include <vector>

#include <boost/math/distributions/students_t.hpp>

namespace railbreak::analyse {

namespace {

double mean_of(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) {
        sum += value;
    }
    return sum / static_cast<double>(values.size());
}

} // namespace

double standard_deviation(std::span<const double> values) {
    if (values.size() < 2) {
        return 0;
    }
    const double mean = mean_of(values);
    double squares = 0;
    for (const double value : values) {
        squares += (value - mean) * (value - mean);
    }
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<Band> prediction_band(std::span<const double> values, double confidence) {
    if (values.size() < 2) {
        return std::nullopt;
    }
    std::vector<double> logs;
    for (const double value : values) {
        logs.push_back(std::log(value));
    }
    const auto n = static_cast<double>(values.size());
    const boost::math::students_t t(n - 1);
    const double quantile = boost::math::quantile(boost::math::complement(t, (1 - confidence) / 2));
    const double centre = mean_of(logs);
    const double margin = quantile * standard_deviation(logs) * std::sqrt(1 + 1 / n);
    return Band{std::exp(centre), std::exp(centre - margin), std::exp(centre + margin)};
}

} // namespace railbreak::analyse
