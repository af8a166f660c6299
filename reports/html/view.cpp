#include "reports/html/view.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "harness/analyse/verdict.hpp"
#include "reports/facts.hpp"
#include "reports/html/figures.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::reports::html {

using record::InjectionRow;
using record::IterationRow;
using record::RunData;

namespace {

/// Longest text of an error beside a mark.
constexpr std::size_t kLongestError = 300;

/// On the monotonic clock, 36 years; on the wall clock, the year 2116.
constexpr std::int64_t kLatest = std::int64_t{1} << 60U;
constexpr std::int64_t kLatestRealtime = std::int64_t{1} << 62U;

AlgorithmView& view_named(std::vector<AlgorithmView>& all, const std::string& name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const AlgorithmView& view) { return view.name == name; });
    if (found != all.end()) {
        return *found;
    }
    all.push_back({.name = name, .series = all.size()});
    return all.back();
}

/// Holds times below the latest ones, so that sums and differences of them are exact.
void hold_times(RunData& data) {
    const auto hold = [](std::initializer_list<std::int64_t*> values) {
        for (std::int64_t* value : values) {
            *value = std::clamp<std::int64_t>(*value, 0, kLatest);
        }
    };
    for (std::int64_t* value : {&data.run.started_realtime_ns, &data.run.finished_realtime_ns}) {
        *value = std::clamp<std::int64_t>(*value, 0, kLatestRealtime);
    }
    for (record::IterationRow& row : data.iterations) {
        hold({&row.started_at, &row.duration_ns});
    }
    for (InjectionRow& row : data.injections) {
        hold({&row.ordered_at, &row.applied_at, &row.observed_at, &row.reverted_at, &row.restored_at});
    }
    for (record::EventRow& row : data.events) {
        hold({&row.at});
    }
    for (record::CounterRow& row : data.counters) {
        hold({&row.at, &row.value});
    }
}

} // namespace

View view_of(RunData data) {
    hold_times(data);
    View view;
    view.data = std::move(data);
    view.origin = origin_ns(view.data);
    view.simulated = view.data.run.backend == record::kSimulatedBackend;
    view.statistics = record::phase_statistics(view.data);
    for (const IterationRow& row : view.data.iterations) {
        view_named(view.algorithms, row.algorithm).iterations.push_back(&row);
    }
    for (const InjectionRow& row : view.data.injections) {
        view_named(view.algorithms, row.algorithm).injections.push_back(&row);
    }
    // A plan that cannot be read, of an imported run or an older version, has no expectations.
    const Result<scenarios::Plan> plan = scenarios::plan_from_json(view.data.run.plan_json);
    const std::vector<scenarios::Expectation> expectations =
        plan ? plan->expectations : std::vector<scenarios::Expectation>();
    for (AlgorithmView& algorithm : view.algorithms) {
        algorithm.recovery = analyse::recovery_of(view.data, view.statistics, expectations, algorithm.name);
        std::stable_sort(algorithm.iterations.begin(), algorithm.iterations.end(),
                         [](const auto* a, const auto* b) { return a->started_at < b->started_at; });
        std::stable_sort(algorithm.injections.begin(), algorithm.injections.end(),
                         [](const auto* a, const auto* b) { return a->ordered_at < b->ordered_at; });
    }
    return view;
}

bool is_right(const IterationRow& row) {
    return row.error.empty() && row.correct;
}

std::string outcome_of(const IterationRow& row, bool simulated) {
    if (!row.error.empty()) {
        return row.error.size() > kLongestError ? row.error.substr(0, kLongestError) + " ..." : row.error;
    }
    return !row.correct ? "wrong result" : simulated ? "proven" : "right";
}

std::vector<const IterationRow*> thinned(const std::vector<const IterationRow*>& all, std::size_t most) {
    if (all.size() <= most) {
        return all;
    }
    const std::size_t stride = (2 * all.size() + most - 1) / most; // two are kept of each stretch
    std::vector<const IterationRow*> kept;
    for (std::size_t begin = 0; begin < all.size();) {
        std::size_t end = begin;
        while (end < all.size() && end - begin < stride && all[end]->phase == all[begin]->phase) {
            ++end;
        }
        const auto faster = [](const auto* a, const auto* b) { return a->duration_ns < b->duration_ns; };
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = all.begin() + static_cast<std::ptrdiff_t>(end);
        const auto [fastest, slowest] = std::minmax_element(first, last, faster);
        for (auto at = first; at != last; ++at) {
            if (at == fastest || at == slowest || !is_right(**at)) {
                kept.push_back(*at);
            }
        }
        begin = end;
    }
    return kept;
}

std::string thinning_note(std::size_t shown, std::size_t all) {
    return shown == all
               ? ""
               : fmt::format(" {} of {} iterations are shown: of neighbours in a phase the fastest and the "
                             "slowest, and all that were not right.",
                             grouped(static_cast<std::int64_t>(shown)), grouped(static_cast<std::int64_t>(all)));
}

bool is_measured(std::string_view phase) {
    return phase != "warmup" && phase != "comparison";
}

std::string host_name(const RunData& data, std::int32_t host) {
    const auto found =
        std::find_if(data.hosts.begin(), data.hosts.end(), [&](const auto& row) { return row.host == host; });
    return found != data.hosts.end() && !found->name.empty() ? found->name : fmt::format("host {}", host);
}

std::string nic_name(const RunData& data, std::int32_t host, std::int32_t nic) {
    const auto found = std::find_if(data.nics.begin(), data.nics.end(),
                                    [&](const auto& row) { return row.host == host && row.nic == nic; });
    return found != data.nics.end() && !found->name.empty() ? found->name : fmt::format("NIC {}", nic);
}

std::string offset(const View& view, std::int64_t at) {
    return at > 0 ? fmt::format("+{}", duration(static_cast<double>(at - view.origin))) : std::string(kNone);
}

std::string worst_verdict(const RunData& data, std::string_view scope) {
    std::optional<analyse::Verdict> worst;
    for (const record::VerdictRow& row : data.verdicts) {
        const std::optional<analyse::Verdict> verdict = analyse::parse_verdict(row.verdict);
        if (row.scope == scope && verdict) {
            worst = std::max(worst.value_or(*verdict), *verdict);
        }
    }
    return worst ? std::string(to_string(*worst)) : "";
}

} // namespace railbreak::reports::html
