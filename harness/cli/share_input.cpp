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

} // namespace railbreak::cli
