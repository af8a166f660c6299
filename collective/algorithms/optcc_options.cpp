#include "collective/algorithms/optcc_options.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railbreak::collective {

namespace {

constexpr std::int64_t kMostForcedSegments = 1 << 20;
constexpr std::string_view kPlans = "auto, u, bs, star, lag, lag-star, ramp";

Result<std::optional<OptccPlan>> parse_plan(std::string_view text) {
    if (text == "auto") {
        return std::nullopt;
    }
    for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kStar, OptccPlan::kLag,
                                 OptccPlan::kLagStar, OptccPlan::kRamp}) {
        if (text == to_string(plan)) {
            return plan;
        }
    }
    return fail(Error(ErrorKind::kInput, fmt::format("plan \"{}\" is unknown", text))
                    .advise(fmt::format("plan is one of {}", kPlans)));
}

Result<std::int64_t> parse_segments(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostForcedSegments) {
        return fail(Error(ErrorKind::kInput, fmt::format("k = \"{}\" is not a number of segments", text))
                        .advise(fmt::format("k is a whole number from 1 to {}", kMostForcedSegments)));
    }
    return value;
}

Result<std::optional<bool>> parse_late(std::string_view text) {
    if (text == "auto") {
        return std::nullopt;
    }
    if (text == "yes" || text == "no") {
        return text == "yes";
    }
    return fail(
        Error(ErrorKind::kInput, fmt::format("late = \"{}\" is unknown", text)).advise("late is one of auto, yes, no"));
}

template <class T, class Value> Result<void> store(T& target, Result<Value> value) {
    if (!value) {
        return tl::unexpected(value.error());
    }
    target = *value;
    return {};
}

} // namespace

std::vector<OptionHelp> optcc_option_help() {
    return {{"plan", "auto|u|bs|star|lag|lag-star|ramp", "how the vector is cut and what the pauses carry"},
            {"k", "1..1048576", "number of segments"},
            {"late", "auto|yes|no", "plan u: link 0 hands a segment up one phase later than the others"}};
}

std::vector<OptionHelp> optcc_pattern_option_help() {
    return {{"k", "4, 8, 12, ..", "number of segments, a multiple of 4"}};
}

Result<OptccOptions> parse_optcc_options(const PlanRequest& request, std::string_view algorithm,
                                         const std::vector<OptionHelp>& known) {
    OptccOptions options;
    for (const auto& [name, value] : request.options) {
        const auto is_it = [&wanted = name](const OptionHelp& help) { return help.name == wanted; };
        if (std::none_of(known.begin(), known.end(), is_it)) {
            std::vector<std::string_view> names;
            for (const OptionHelp& help : known) {
                names.push_back(help.name);
            }
            return fail(Error(ErrorKind::kInput, fmt::format("{} has no option \"{}\"", algorithm, name))
                            .advise(fmt::format("its options are: {}", fmt::join(names, ", "))));
        }
        const Result<void> stored = name == "plan" ? store(options.plan, parse_plan(value))
                                    : name == "k"  ? store(options.segments, parse_segments(value))
                                                   : store(options.late_first_link, parse_late(value));
        if (!stored) {
            return tl::unexpected(stored.error());
        }
    }
    return options;
}

} // namespace railbreak::collective
