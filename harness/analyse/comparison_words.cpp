// Sets of runs side by side, and what a comparison says in plain words.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/analyse/comparison.hpp"

namespace railbreak::analyse {

using record::RunData;

namespace {

/// "3.1 %" for 0.031; two decimals where one would say little.
std::string percent(double share) {
    return std::fabs(share) < 0.00995 ? fmt::format("{:.2f} %", share * 100) : fmt::format("{:.1f} %", share * 100);
}

std::string signed_percent(double share) {
    return (share < 0 ? "" : "+") + percent(share);
}

/// "2.1 % above", where 1 is level.
std::string away(double ratio) {
    return fmt::format("{} {}", percent(std::fabs(ratio - 1)), ratio < 1 ? "below" : "above");
}

/// "95 % confidence: 2.2 % to 4.0 %" of a ratio that is above (sign 1) or below (sign -1) 1.
std::string range_of(const Comparison& comparison, double sign) {
    const double low = (comparison.interval->low - 1) * sign;
    const double high = (comparison.interval->high - 1) * sign;
    return fmt::format("{:g} % confidence: {} to {}", comparison.confidence * 100, percent(std::min(low, high)),
                       percent(std::max(low, high)));
}

std::string in_words_different(const Comparison& comparison, std::string_view a, std::string_view b) {
    const double sign = comparison.difference == Difference::kSlower ? 1 : -1;
    std::string text = fmt::format("{} is {} than {} by {}", b, sign > 0 ? "slower" : "faster", a,
                                   percent((*comparison.ratio - 1) * sign));
    if (comparison.method == Method::kExact) {
        return text + ", simulated on both sides";
    }
    text += fmt::format(" ({})", range_of(comparison, sign));
    const double most = std::max(comparison.interval->high - 1, 1 - comparison.interval->low);
    return most < comparison.tolerance
               ? text + fmt::format(", less than the {} that counts", percent(comparison.tolerance))
               : text;
}

std::string in_words_unknown(const Comparison& comparison, std::string_view a, std::string_view b) {
    if (comparison.runs_a == 0 || comparison.runs_b == 0) {
        return fmt::format("cannot tell: {} has no values", comparison.runs_a == 0 ? a : b);
    }
    const std::string change = away(*comparison.ratio);
    if (!comparison.interval) {
        return fmt::format("cannot tell: {} lies {} {}, but one run on each side does not show how far runs differ "
                           "by themselves; compare several",
                           b, change, a);
    }
    const Interval& interval = *comparison.interval;
    const bool among_many = comparison.family > 1 && (interval.low > 1 || interval.high < 1);
    return fmt::format("cannot tell: {} lies {} {} ({:g} % confidence: {} to {}), which may be chance{}; a "
                       "difference of {} would most likely have shown",
                       b, change, a, comparison.confidence * 100, signed_percent(interval.low - 1),
                       signed_percent(interval.high - 1),
                       among_many ? fmt::format(" among {} comparisons", comparison.family) : "",
                       percent(comparison.visible.value_or(0)));
}

PhaseSamples& entry_of(std::vector<PhaseSamples>& all, const PhaseValues& values) {
    for (PhaseSamples& entry : all) {
        if (entry.algorithm == values.algorithm && entry.phase == values.phase) {
            return entry;
        }
    }
    return all.emplace_back(PhaseSamples{values.algorithm, values.phase, {}, {}});
}

std::vector<std::string> phases_with(const std::vector<PhaseComparison>& phases, Difference difference) {
    std::vector<std::string> names;
    for (const PhaseComparison& phase : phases) {
        if (phase.comparison.difference == difference) {
            names.push_back(difference == Difference::kSlower || difference == Difference::kFaster
                                ? fmt::format("{} {} by {}", phase.algorithm, phase.phase,
                                              percent(std::fabs(*phase.comparison.ratio - 1)))
                                : fmt::format("{} {}", phase.algorithm, phase.phase));
        }
    }
    return names;
}

std::string sum_up(const SetComparison& sets) {
    if (sets.phases.empty()) {
        return "cannot tell: there is nothing to compare, no iteration was completed";
    }
    const auto slower = phases_with(sets.phases, Difference::kSlower);
    const auto faster = phases_with(sets.phases, Difference::kFaster);
    const auto same = phases_with(sets.phases, Difference::kNone);
    const auto unknown = phases_with(sets.phases, Difference::kCannotTell);
    std::vector<std::string> parts;
    if (!slower.empty()) {
        parts.push_back(fmt::format("B is slower in {} ({})", slower.size(), fmt::join(slower, ", ")));
    }
    if (!faster.empty()) {
        parts.push_back(fmt::format("B is faster in {} ({})", faster.size(), fmt::join(faster, ", ")));
    }
    if (!same.empty()) {
        parts.push_back(fmt::format("no difference of {} or more in {}", percent(sets.options.tolerance), same.size()));
    }
    if (!unknown.empty()) {
        parts.push_back(fmt::format("cannot tell in {}", unknown.size()));
    }
    return fmt::format("of {} phases: {}", sets.phases.size(), fmt::join(parts, "; "));
}

/// The distinct texts, in order.
std::vector<std::string> distinct(std::span<const RunData> runs, std::string (*text)(const record::RunRow&)) {
    std::vector<std::string> found;
    for (const RunData& run : runs) {
        std::string one = text(run.run);
        if (std::ranges::find(found, one) == found.end()) {
            found.push_back(std::move(one));
        }
    }
    return found;
}

std::string plan_of(const record::RunRow& run) {
    return fmt::format("{} {}", run.scenario_name, run.plan_hash.substr(0, 12));
}

std::vector<std::string> why_unlike(std::span<const RunData> a, std::span<const RunData> b) {
    std::vector<std::string> reasons;
    const auto compare = [&](std::string_view what, std::string (*text)(const record::RunRow&)) {
        const std::vector<std::string> first = distinct(a, text);
        const std::vector<std::string> second = distinct(b, text);
        if (first != second && !a.empty() && !b.empty()) {
            reasons.push_back(fmt::format("the {}s differ: A has {}, B has {}", what, fmt::join(first, ", "),
                                          fmt::join(second, ", ")));
        }
    };
    compare("plan", plan_of);
    compare("cluster", place_of);
    return reasons;
}

bool all_simulated(std::span<const RunData> runs) {
    return std::ranges::all_of(runs, [](const RunData& run) { return run.run.backend == record::kSimulatedBackend; });
}

std::vector<std::string> shared_runs(const RunSets& sets) {
    std::vector<std::string> shared;
    for (const RunData& run : sets.a) {
        if (std::ranges::any_of(sets.b, [&](const RunData& other) { return other.run.run_id == run.run.run_id; })) {
            shared.push_back(run.run.run_id);
        }
    }
    return shared;
}

} // namespace

std::string in_words(const Comparison& comparison, std::string_view a, std::string_view b) {
    switch (comparison.difference) {
    case Difference::kSlower:
    case Difference::kFaster: return in_words_different(comparison, a, b);
    case Difference::kNone: break;
    case Difference::kCannotTell: return in_words_unknown(comparison, a, b);
    }
    if (comparison.method == Method::kExact) {
        return fmt::format("{} and {} are the same, simulated on both sides", a, b);
    }
    const double most = std::max(comparison.interval->high - 1, 1 - comparison.interval->low);
    return fmt::format("no difference larger than {}: {} lies {} {} ({:g} % confidence)", percent(most), b,
                       away(*comparison.ratio), a, comparison.confidence * 100);
}

std::string place_of(const record::RunRow& run) {
    return run.cluster.empty() ? run.backend : run.cluster;
}

std::string why_mixed(std::span<const RunData> runs) {
    for (const RunData& run : runs) {
        const record::RunRow& first = runs.front().run;
        if (run.run.plan_hash != first.plan_hash) {
            return fmt::format("{} has another plan ({}) than {} ({})", run.run.run_id, plan_of(run.run), first.run_id,
                               plan_of(first));
        }
        if (place_of(run.run) != place_of(first)) {
            return fmt::format("{} ran on another cluster ({}) than {} ({})", run.run.run_id, place_of(run.run),
                               first.run_id, place_of(first));
        }
    }
    return "";
}

std::vector<PhaseSamples> pair_up(std::span<const RunData> a, std::span<const RunData> b, Measure measure) {
    std::vector<PhaseSamples> all;
    for (Samples PhaseSamples::*const side : {&PhaseSamples::a, &PhaseSamples::b}) {
        for (const RunData& run : side == &PhaseSamples::a ? a : b) {
            for (PhaseValues& values : values_of(run, measure)) {
                (entry_of(all, values).*side).push_back(std::move(values.values));
            }
        }
    }
    return all;
}

SetComparison compare_sets(std::span<const RunData> a, std::span<const RunData> b, const CompareOptions& options) {
    const RunSets sets{a, b};
    return std::move(compare_all({&sets, 1}, options).front());
}

std::vector<SetComparison> compare_all(std::span<const RunSets> pairs, const CompareOptions& options) {
    std::vector<SetComparison> all;
    for (const RunSets& sets : pairs) {
        SetComparison& one = all.emplace_back();
        one.options = options;
        one.options.simulated = all_simulated(sets.a) && all_simulated(sets.b);
        one.unlike = why_unlike(sets.a, sets.b);
        one.shared = shared_runs(sets);
    }
    for (const bool simulated : {false, true}) { // what is simulated has no chance in it to correct for
        std::vector<PhaseSamples> family;
        std::vector<SetComparison*> owners;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].options.simulated == simulated) {
                for (PhaseSamples& phase : pair_up(pairs[i].a, pairs[i].b, options.measure)) {
                    family.push_back(std::move(phase));
                    owners.push_back(&all[i]);
                }
            }
        }
        CompareOptions how = options;
        how.simulated = simulated;
        const std::vector<Comparison> results = compare_family(family, how);
        for (std::size_t i = 0; i < family.size(); ++i) {
            owners[i]->phases.push_back({family[i].algorithm, family[i].phase, results[i]});
        }
    }
    for (SetComparison& one : all) {
        one.sentence = sum_up(one);
    }
    return all;
}

} // namespace railbreak::analyse
