#include "harness/analyse/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "harness/analyse/bootstrap.hpp"
#include "harness/analyse/rank_test.hpp"
#include "harness/record/statistics.hpp"

namespace railbreak::analyse {

namespace {

/// In how many cases a difference is to be seen for being called visible.
constexpr double kPower = 0.8;
/// Below that many runs on a side a bootstrap has too little to draw from.
constexpr std::size_t kFewestForRanks = 4;

/// One value for each run that has any.
std::vector<double> medians(const Samples& samples) {
    std::vector<double> result;
    for (const std::vector<double>& run : samples) {
        if (const std::optional<double> median = record::median(run)) {
            result.push_back(*median);
        }
    }
    return result;
}

struct Moments {
    double mean = 0;
    double squares = 0; ///< sum of the squared distances from the mean
};

Moments log_moments(const std::vector<double>& values) {
    Moments moments;
    for (const double value : values) {
        moments.mean += std::log(value) / static_cast<double>(values.size());
    }
    for (const double value : values) {
        moments.squares += std::pow(std::log(value) - moments.mean, 2);
    }
    return moments;
}

Interval exponentiated(double centre, double margin) {
    return {std::exp(centre - margin), std::exp(centre + margin)};
}

/// Student's t-test of the logarithms of the runs' medians. With one run on a side the other side's spread stands for
/// both, and the interval is the one in which that run would be expected.
void decide_by_spread(const std::vector<double>& a, const std::vector<double>& b, Comparison& result) {
    const auto n = static_cast<double>(a.size());
    const auto m = static_cast<double>(b.size());
    const Moments first = log_moments(a);
    const Moments second = log_moments(b);
    const double freedom = n + m - 2;
    const double error = std::sqrt((first.squares + second.squares) / freedom * (1 / n + 1 / m));
    const double difference = second.mean - first.mean;
    const boost::math::students_t t(freedom);
    const auto upper = [&](double tail) { return boost::math::quantile(boost::math::complement(t, tail)); };
    result.typical_a = std::exp(first.mean);
    result.typical_b = std::exp(second.mean);
    result.ratio = std::exp(difference);
    const double tail = (1 - result.confidence) / 2;
    result.interval = exponentiated(difference, upper(tail) * error);
    if (error > 0) {
        result.p_value = 2 * boost::math::cdf(boost::math::complement(t, std::fabs(difference) / error));
    } else {
        result.p_value = difference == 0 ? 1.0 : 0.0;
    }
    const double margin = (upper(tail / static_cast<double>(result.family)) + upper(1 - kPower)) * error;
    result.visible = std::expm1(margin);
}

void decide_by_ranks(const std::vector<double>& a, const std::vector<double>& b, const CompareOptions& options,
                     Comparison& result) {
    result.p_value = mann_whitney(a, b).p_value;
    const LogScatter scatter = bootstrap_log_ratio(a, b, options.confidence, options.resamples, options.seed);
    result.interval = {std::exp(scatter.interval.low), std::exp(scatter.interval.high)};
    const boost::math::normal standard;
    const double tail = (1 - options.confidence) / 2 / static_cast<double>(result.family);
    const double quantiles =
        boost::math::quantile(boost::math::complement(standard, tail)) + boost::math::quantile(standard, kPower);
    result.visible = std::expm1(quantiles * scatter.standard_error);
}

Method method_for(std::size_t a, std::size_t b, std::size_t family, const CompareOptions& options) {
    if (a == 0 || b == 0) {
        return Method::kNothing;
    }
    if (options.simulated) {
        return Method::kExact;
    }
    if (a + b < 3) {
        return Method::kNothing;
    }
    const double level = (1 - options.confidence) / static_cast<double>(family);
    return std::min(a, b) >= kFewestForRanks && smallest_p_value(a, b) <= level ? Method::kRanks : Method::kSpread;
}

/// Everything but the verdict, which needs the p-values of the whole family.
Comparison measure(const std::vector<double>& a, const std::vector<double>& b, const CompareOptions& options,
                   std::size_t family) {
    Comparison result;
    result.runs_a = a.size();
    result.runs_b = b.size();
    result.typical_a = record::median(a);
    result.typical_b = record::median(b);
    result.family = family;
    result.confidence = options.confidence;
    result.tolerance = options.tolerance;
    if (result.typical_a && result.typical_b) {
        result.ratio = *result.typical_b / *result.typical_a;
    }
    result.method = method_for(a.size(), b.size(), family, options);
    switch (result.method) {
    case Method::kNothing: break;
    case Method::kSpread: decide_by_spread(a, b, result); break;
    case Method::kRanks: decide_by_ranks(a, b, options, result); break;
    case Method::kExact:
        result.interval = Interval{*result.ratio, *result.ratio};
        result.p_value = *result.ratio == 1 ? 1.0 : 0.0;
        result.visible = 0;
        break;
    }
    return result;
}

Difference verdict_on(const Comparison& result) {
    if (!result.interval || !result.ratio) {
        return Difference::kCannotTell;
    }
    const Interval& interval = *result.interval;
    if (result.adjusted_p_value <= 1 - result.confidence) {
        if (interval.low > 1 && *result.ratio > 1) {
            return Difference::kSlower;
        }
        if (interval.high < 1 && *result.ratio < 1) {
            return Difference::kFaster;
        }
    }
    const bool inside = interval.high < 1 + result.tolerance && interval.low > 1 / (1 + result.tolerance);
    return inside ? Difference::kNone : Difference::kCannotTell;
}

} // namespace

std::string_view to_string(Difference difference) {
    switch (difference) {
    case Difference::kSlower: return "slower";
    case Difference::kFaster: return "faster";
    case Difference::kNone: return "no_difference";
    case Difference::kCannotTell: return "cannot_tell";
    }
    return "cannot_tell";
}

std::string_view to_string(Method method) {
    switch (method) {
    case Method::kNothing: return "none";
    case Method::kSpread: return "spread";
    case Method::kRanks: return "ranks";
    case Method::kExact: return "exact";
    }
    return "none";
}

std::vector<Comparison> compare_family(std::span<const PhaseSamples> pairs, const CompareOptions& options) {
    // A pair that can come to nothing makes no finding by chance, so the others need not pay for it.
    const auto has_runs = [](const Samples& samples) {
        return std::ranges::any_of(samples, [](const auto& run) { return !run.empty(); });
    };
    const auto family =
        std::ranges::count_if(pairs, [&](const PhaseSamples& pair) { return has_runs(pair.a) && has_runs(pair.b); });
    const auto size = static_cast<std::size_t>(std::max<std::ptrdiff_t>(family, 1));
    std::vector<Comparison> results;
    std::vector<std::size_t> tested;
    std::vector<double> p_values;
    for (const PhaseSamples& pair : pairs) {
        results.push_back(measure(medians(pair.a), medians(pair.b), options, size));
        if (results.back().method != Method::kNothing) {
            tested.push_back(results.size() - 1);
            p_values.push_back(results.back().p_value);
        }
    }
    const std::vector<double> adjusted = holm(p_values);
    for (std::size_t i = 0; i < tested.size(); ++i) {
        results[tested[i]].adjusted_p_value = adjusted[i];
    }
    for (Comparison& result : results) {
        result.difference = verdict_on(result);
    }
    return results;
}

Comparison compare(const Samples& a, const Samples& b, const CompareOptions& options) {
    const std::vector<PhaseSamples> pair{{"", "", a, b}};
    return compare_family(pair, options).front();
}

} // namespace railbreak::analyse
