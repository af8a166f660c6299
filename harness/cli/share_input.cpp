#include "harness/cli/share_input.hpp"

#include <fmt/format.h>

#include "base/rational.hpp"

namespace railbreak::cli {

Result<double> parse_share(std::string_view text, double least, double most) {
    const bool percent = text.ends_with('%');
    const Result<Rational> number = parse_rational(text.substr(0, text.size() - (percent ? 1 : 0)));
    const double value = number ? to_double(*number) / (percent ? 100 : 1) : -1;
    if (!number || value < least || value > most) {
        return fail(Error(ErrorKind::kUsage, fmt::format("\"{}\" is not a share that can be taken here", text))
                        .advise(fmt::format("allowed: {:g}% to {:g}%", least * 100, most * 100)));
    }
    return value;
}

Result<analyse::CompareOptions> compare_options(std::string_view measure, std::string_view confidence,
                                                std::string_view tolerance) {
    const Result<double> sure = parse_share(confidence, 0.5, 0.9999);
    const Result<double> tolerated = parse_share(tolerance, 0.0001, 1);
    if (!sure) {
        return tl::unexpected(Error(sure.error()).with("option", "--confidence"));
    }
    if (!tolerated) {
        return tl::unexpected(Error(tolerated.error()).with("option", "--tolerance"));
    }
    analyse::CompareOptions how;
    how.measure = analyse::parse_measure(measure).value_or(analyse::Measure::kTime);
    how.confidence = *sure;
    how.tolerance = *tolerated;
    return how;
}

} // namespace railbreak::cli
