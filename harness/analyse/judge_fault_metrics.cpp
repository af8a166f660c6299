// What is measured for each fault: how soon it was noticed, how soon all was well again, what else it changed.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/analyse/judge.hpp"
#include "harness/analyse/recovery.hpp"

namespace railbreak::analyse {

using record::InjectionRow;
using record::IterationRow;
using record::RunData;
using record::VerdictRow;
using scenarios::Expectation;
using scenarios::Metric;

namespace {

/// A moment that counts, and what happened then.
struct Sign {
    std::int64_t at = std::numeric_limits<std::int64_t>::max();
    std::string what;
    [[nodiscard]] bool found() const { return !what.empty(); }
};

void take_earlier(Sign& sign, std::int64_t at, std::string what) {
    if (at < sign.at) {
        sign = {at, std::move(what)};
    }
}

double seconds_between(std::int64_t from, std::int64_t to) {
    return static_cast<double>(to - from) / 1e9;
}

std::string duration(double seconds) {
    return railbreak::to_string(Nanoseconds(static_cast<std::int64_t>(seconds * 1e9 + 0.5)));
}

std::string iteration_of(const IterationRow& row) {
    return fmt::format("{} iteration {}", row.phase, row.iteration);
}

/// One expectation held against one injection.
class FaultMetric {
public:
    FaultMetric(const RunData& data, const std::vector<record::PhaseStatistics>& statistics,
                const Expectation& expectation, const InjectionRow& injection, const History& history, VerdictRow& row)
        : data_(data), statistics_(statistics), expectation_(expectation), injection_(injection), history_(history),
          row_(row) {}

    void judge() {
        if (expectation_.metric == Metric::kRecoveryTime) {
            judge_recovery();
        } else if (expectation_.metric == Metric::kDetectionTime) {
            judge_detection();
        } else {
            judge_collateral();
        }
    }

private:
    void no_data(std::string_view why) { row_.reason = fmt::format("no data: {}", why); }

    void fail(std::string reason) {
        hold_against_limits(expectation_, history_, "", row_); // for the limits alone
        row_.verdict = to_string(Verdict::kFail);
        row_.reason = std::move(reason);
    }

    [[nodiscard]] std::string band() const {
        return fmt::format("{:g} %", static_cast<double>(expectation_.band) / scenarios::kMillion * 100);
    }

    void judge_recovery() {
        const Recovery recovery = recovery_after(data_, statistics_, injection_, expectation_.band);
        if (!recovery.no_data.empty()) {
            return no_data(recovery.no_data);
        }
        const double seconds = seconds_between(0, recovery.time_ns);
        if (recovery.is_missing()) {
            return fail(fmt::format("none of {} iterations was back within {} of the steady median; the last ended {} "
                                    "after the fault was undone",
                                    recovery.looked_at, band(), duration(seconds)));
        }
        row_.measured = seconds;
        hold_against_limits(expectation_, history_,
                            fmt::format("{} ended, within {} of the steady median, {} after the fault was undone",
                                        iteration_of(*recovery.iteration), band(), duration(seconds)),
                            row_);
    }

    void judge_detection() {
        const std::int64_t from = injection_.observed_at;
        const std::optional<double> slowest = slowest_normal_ns(statistics_, injection_.algorithm, expectation_.band);
        if (!slowest || from == 0) {
            return no_data(!slowest ? kNoSteadyPhase : "the fault was never observed");
        }
        const std::int64_t until =
            injection_.reverted_at > 0 ? injection_.reverted_at : std::numeric_limits<std::int64_t>::max();
        std::int32_t looked_at = 0;
        Sign sign;
        for (const IterationRow* row : judged_iterations(data_, injection_.algorithm)) {
            const std::int64_t end = row->started_at + row->duration_ns;
            if (end <= from || row->started_at >= until) {
                continue;
            }
            ++looked_at;
            if (!row->error.empty() && !broken_off(data_)) {
                take_earlier(sign, end, fmt::format("{} failed", iteration_of(*row)));
            } else if (row->error.empty() && static_cast<double>(row->duration_ns) > *slowest) {
                take_earlier(sign, end,
                             fmt::format("{} ended, more than {} above the steady median", iteration_of(*row), band()));
            }
        }
        for (const record::EventRow& event : data_.events) {
            if ((event.kind == "rank_ended" || event.kind == "path_stalled") && event.at >= from && event.at < until) {
                take_earlier(sign, event.at, fmt::format("{} said {}", event.source, event.kind));
            }
        }
        if (sign.found()) {
            row_.measured = seconds_between(from, sign.at);
            return hold_against_limits(
                expectation_, history_,
                fmt::format("{}, {} after the fault was observed", sign.what, duration(*row_.measured)), row_);
        }
        if (looked_at == 0) {
            return no_data("no iteration ran while the fault was in force");
        }
        fail(fmt::format("the fault went unnoticed: all {} iterations meanwhile ended within {} of the steady median",
                         looked_at, band()));
    }

    void judge_collateral() {
        if (injection_.applied_at == 0) {
            return no_data("the fault was not applied");
        }
        const Collateral collateral = collateral_of(injection_);
        if (collateral.unknown) {
            return no_data(fmt::format("{}", fmt::join(collateral.sentences, "; ")));
        }
        row_.measured = static_cast<double>(collateral.interfaces.size());
        std::string what = fmt::format("{} NICs changed that no fault acts on", collateral.interfaces.size());
        if (!collateral.sentences.empty()) {
            what += fmt::format(" ({})", fmt::join(collateral.sentences, "; "));
        }
        hold_against_limits(expectation_, history_, what, row_);
    }

    const RunData& data_;
    const std::vector<record::PhaseStatistics>& statistics_;
    const Expectation& expectation_;
    const InjectionRow& injection_;
    const History& history_;
    VerdictRow& row_;
};

/// The interface that a sentence of the agent's watch is about: "MTU of rail1 went from ...", "rail1 is gone".
std::optional<std::string> interface_of(std::string_view sentence) {
    constexpr std::string_view kGone = " is gone";
    if (sentence.ends_with(kGone)) {
        return std::string(sentence.substr(0, sentence.size() - kGone.size()));
    }
    const std::size_t end = sentence.find(" went from ");
    const std::size_t begin = end == std::string_view::npos ? end : sentence.rfind(" of ", end);
    if (begin == std::string_view::npos) {
        return std::nullopt;
    }
    return std::string(sentence.substr(begin + 4, end - begin - 4));
}

} // namespace

bool is_named(std::string_view name, std::string_view wanted) {
    return name == wanted || (name.starts_with(wanted) && name.substr(wanted.size()).starts_with('#'));
}

Collateral collateral_of(const InjectionRow& row) {
    Collateral collateral;
    const auto sentences = nlohmann::json::parse(row.collateral_json, nullptr, false);
    for (const auto& sentence : sentences.is_array() ? sentences : nlohmann::json::array()) {
        if (!sentence.is_string()) {
            continue;
        }
        collateral.sentences.push_back(sentence.get<std::string>());
        if (const std::optional<std::string> name = interface_of(collateral.sentences.back())) {
            collateral.interfaces.insert(*name);
        } else {
            collateral.unknown = true;
        }
    }
    return collateral;
}

std::optional<double> allowed_collateral(const scenarios::Plan& plan, const InjectionRow& row) {
    std::optional<double> least;
    for (const Expectation& expectation : plan.expectations) {
        if (!expectation.outcome && expectation.metric == Metric::kCollateral && expectation.max &&
            expectation.algorithm.value_or(row.algorithm) == row.algorithm &&
            is_named(row.name, expectation.fault.value_or(row.name))) {
            least = std::min(least.value_or(*expectation.max), *expectation.max);
        }
    }
    return least;
}

void judge_fault_metric(const RunData& data, const scenarios::Plan& plan,
                        const std::vector<record::PhaseStatistics>& statistics, const Expectation& expectation,
                        const std::string& algorithm, const History& history, std::vector<VerdictRow>& rows) {
    for (const scenarios::PlannedFault& fault : plan.faults) {
        if (is_off(fault) || !is_named(fault.name, expectation.fault.value_or(fault.name))) {
            continue;
        }
        VerdictRow row =
            make_row("expectation", fmt::format("{}/{} {}", fault.name, algorithm, to_string(expectation.metric)),
                     Verdict::kInconclusive, "no data: the fault was never ordered");
        const auto injection = std::ranges::find_if(data.injections, [&](const InjectionRow& one) {
            return one.fault == fault.id && one.algorithm == algorithm;
        });
        if (injection != data.injections.end()) {
            FaultMetric(data, statistics, expectation, *injection, history, row).judge();
        }
        rows.push_back(std::move(row));
    }
}

} // namespace railbreak::analyse
