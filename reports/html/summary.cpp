// The top of a run's page: what came out, in words and in a few numbers.
#include <algorithm>

#include <fmt/format.h>

#include "reports/facts.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/sections.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

using record::InjectionRow;
using record::PhaseStatistics;
using record::VerdictRow;

Element verdict_banner(const View& view) {
    const VerdictRow* run = find_verdict(view.data, "run");
    const std::string verdict = run != nullptr ? run->verdict : "";
    Element banner("div", {{"class", fmt::format("banner v-{}", verdict.empty() ? "none" : verdict)}});
    banner.add(element("p", {{"class", "verdict"}}, badge(verdict)));
    banner.add(element("p", {{"class", "reason"}}, run != nullptr ? run->reason : not_ended(view.data)));
    for (const VerdictRow& row : view.data.verdicts) {
        if (row.scope == "teardown") {
            banner.add(element("p", {{"class", "teardown"}}, "Teardown ", badge(row.verdict), " ",
                               row.subject.empty() ? row.reason : fmt::format("{}: {}", row.subject, row.reason)));
        }
    }
    return banner;
}

namespace {

Element promise(std::string_view question, std::string_view verdict, std::string_view answer,
                const std::vector<std::string>& facts) {
    Element card("div", {{"class", fmt::format("card promise v-{}", verdict.empty() ? "none" : verdict)}});
    card.add(element("h3", {}, question)).add(element("p", {{"class", "answer"}}, badge(verdict), " ", answer));
    Element list("ul");
    for (const std::string& fact : facts) {
        list.add(element("li", {}, fact));
    }
    if (!list.empty()) {
        card.add(std::move(list));
    }
    return card;
}

/// How many rows of a scope have a verdict, and how many there are.
std::pair<std::int64_t, std::int64_t> count(const View& view, std::string_view scope, std::string_view verdict) {
    std::pair<std::int64_t, std::int64_t> counts;
    for (const VerdictRow& row : view.data.verdicts) {
        counts.first += row.scope == scope && row.verdict == verdict ? 1 : 0;
        counts.second += row.scope == scope ? 1 : 0;
    }
    return counts;
}

/// The reasons of what did not pass, at most `most`, then how many more there are.
void add_reasons(const View& view, std::string_view scope, std::size_t most, std::vector<std::string>& facts) {
    std::size_t found = 0;
    for (const VerdictRow& row : view.data.verdicts) {
        if (row.scope == scope && row.verdict != "pass") {
            if (++found <= most) {
                facts.push_back(fmt::format("{}: {}", row.subject, row.reason));
            }
        }
    }
    if (found > most) {
        facts.push_back(fmt::format("and {} more, in the table of checks", found - most));
    }
}

Element fault_promise(const View& view) {
    const auto [passed, all] = count(view, "fault", "pass");
    std::vector<std::string> facts;
    for (const InjectionRow& row : view.data.injections) {
        if (row.wanted_rate_bits_per_s > 0 && row.measured_send_bits_per_s > 0 && facts.size() < 2) {
            facts.push_back(fmt::format("{} under {}: port capped to {}, {} of payload measured", row.name,
                                        row.algorithm, rate(row.wanted_rate_bits_per_s),
                                        rate(row.measured_send_bits_per_s)));
        }
    }
    add_reasons(view, "fault", 3, facts);
    std::string answer = fmt::format("Applied and seen on the host: {} of {}.", passed, counted(all, "fault"));
    if (view.data.injections.empty() && all == 0) {
        answer = "Nothing was broken in this run.";
    } else if (view.simulated) {
        answer = "Simulated: faults are pretended and prove nothing about hosts.";
    } else if (passed == all && all > 0) {
        answer = fmt::format("Yes: {} applied, and seen on the host.",
                             all == 1 ? "the fault was" : fmt::format("all {} faults were", all));
    }
    return promise("Was the fault real?", worst_verdict(view.data, "fault"), answer, facts);
}

Element result_promise(const View& view) {
    std::int64_t right = 0;
    for (const record::IterationRow& row : view.data.iterations) {
        right += is_right(row) ? 1 : 0;
    }
    const auto all = static_cast<std::int64_t>(view.data.iterations.size());
    std::vector<std::string> facts;
    add_reasons(view, "correctness", 3, facts);
    for (const VerdictRow& row : view.data.verdicts) {
        if (row.scope == "correctness" && row.verdict == "pass" && facts.size() < 3) {
            facts.push_back(fmt::format("{}: {}", row.subject, row.reason));
        }
    }
    std::string answer = fmt::format("{} of {} ended with the right sum.", grouped(right), counted(all, "iteration"));
    if (all == 0) {
        answer = "No iteration was recorded.";
    } else if (view.simulated) {
        answer = "Simulated: the schedules are proven to give the right sum; no data moved.";
    } else if (right == all) {
        answer = fmt::format("Yes: every rank's digest was the expected one in all {}.", counted(all, "iteration"));
    }
    return promise("Is the result right?", worst_verdict(view.data, "correctness"), answer, facts);
}

/// The algorithm whose median in a phase is shortest, or nullptr.
const PhaseStatistics* fastest(const View& view, std::string_view phase) {
    const PhaseStatistics* best = nullptr;
    for (const PhaseStatistics& entry : view.statistics) {
        if (entry.phase == phase && entry.time_median_ns &&
            (best == nullptr || *entry.time_median_ns < *best->time_median_ns)) {
            best = &entry;
        }
    }
    return best;
}

Element bound_promise(const View& view) {
    std::vector<std::string> facts;
    for (const PhaseStatistics& entry : view.statistics) {
        if (entry.phase == "degraded" && entry.overhead_exclusive && facts.size() < 4) {
            facts.push_back(fmt::format("{} under the fault: {} of the exclusive bound, {} of the fluid one",
                                        entry.algorithm, times(entry.overhead_exclusive), times(entry.overhead_fluid)));
        }
    }
    add_reasons(view, "bound", 3, facts);
    const PhaseStatistics* best = fastest(view, "degraded");
    best = best != nullptr ? best : fastest(view, "steady");
    std::string answer = "No lower bound was computed.";
    if (worst_verdict(view.data, "bound") == "invalid") {
        answer = "Faster than the lower bound: the measurement cannot be right.";
    } else if (best != nullptr && best->overhead_fluid) {
        answer = fmt::format("{} takes {} of the least possible time.", best->algorithm, times(best->overhead_fluid));
    }
    return promise("How far from the best?", worst_verdict(view.data, "bound"), answer, facts);
}

Element tile(std::string_view label, std::string_view value, std::string_view note, std::string_view exact = {}) {
    Element number("p", {{"class", "value"}});
    if (!exact.empty()) {
        number.set("title", std::string(exact));
    }
    const std::size_t unit = value.rfind(' ');
    number.add(value.substr(0, unit));
    if (unit != std::string_view::npos) {
        number.add(element("span", {{"class", "unit"}}, value.substr(unit)));
    }
    return element("li", {{"class", "card tile"}}, element("p", {{"class", "tilelabel"}}, label), std::move(number),
                   element("p", {{"class", "note"}}, note));
}

std::string exact(const PhaseStatistics& entry) {
    return exact_duration(static_cast<std::int64_t>(*entry.time_median_ns));
}

/// The algorithm that was back to normal last; one that never was comes before all others.
const AlgorithmView* last_back(const View& view) {
    const AlgorithmView* last = nullptr;
    for (const AlgorithmView& algorithm : view.algorithms) {
        const std::optional<analyse::Recovery>& one = algorithm.recovery;
        if (!one || !one->no_data.empty()) {
            continue;
        }
        const auto key = [](const analyse::Recovery& recovery) {
            return std::pair(recovery.is_missing(), recovery.time_ns);
        };
        if (last == nullptr || key(*one) > key(*last->recovery)) {
            last = &algorithm;
        }
    }
    return last;
}

void add_recovery_tile(const View& view, Element& tiles) {
    const AlgorithmView* last = last_back(view);
    if (last == nullptr) {
        return;
    }
    const analyse::Recovery& recovery = *last->recovery;
    const std::string band =
        fmt::format("at most {} % above the steady median", plain(100.0 * recovery.band / scenarios::kMillion));
    if (recovery.is_missing()) {
        tiles.add(tile("Back to normal", "never",
                       fmt::format("{}: none of {} after the fault was {}", last->name,
                                   counted(recovery.looked_at, "iteration"), band)));
        return;
    }
    tiles.add(tile("Back to normal", duration(static_cast<double>(recovery.time_ns)),
                   fmt::format("after the fault was undone: {}{}; {}", last->name,
                               view.algorithms.size() > 1 ? ", the last to be" : "", band),
                   exact_duration(recovery.time_ns)));
}

} // namespace

Element promises(const View& view) {
    return element("div", {{"class", "cards three"}}, fault_promise(view), result_promise(view), bound_promise(view));
}

Element key_figures(const View& view) {
    Element tiles("ul", {{"class", "cards tiles"}});
    const PhaseStatistics* healthy = fastest(view, "steady");
    if (healthy != nullptr) {
        tiles.add(tile("Healthy", duration(*healthy->time_median_ns),
                       fmt::format("{}, median of {}", healthy->algorithm, counted(healthy->iterations, "iteration")),
                       exact(*healthy)));
    }
    if (const PhaseStatistics* best = fastest(view, "degraded"); best != nullptr) {
        const std::string name = best->algorithm;
        tiles.add(
            tile("Under the fault", duration(*best->time_median_ns),
                 best->vs_healthy ? fmt::format("{}, {} of the healthy ring", name, times(best->vs_healthy)) : name,
                 exact(*best)));
        if (best->overhead_fluid) {
            tiles.add(tile("Over the bound", fmt::format("{:+.1f} %", 100 * (*best->overhead_fluid - 1)),
                           fmt::format("{}; fluid ports", name), times(best->overhead_fluid)));
        }
        for (const PhaseStatistics& entry : view.statistics) {
            if (entry.phase == "degraded" && entry.algorithm == "ring" && &entry != best && entry.time_median_ns) {
                tiles.add(tile("Gain over the ring",
                               fmt::format("{:.2f}\u00D7", *entry.time_median_ns / *best->time_median_ns),
                               fmt::format("the ring takes {}", duration(*entry.time_median_ns)), exact(entry)));
            }
        }
    }
    add_recovery_tile(view, tiles);
    if (const std::optional<Spread> goodput = send_goodput(view.data)) {
        tiles.add(tile("Healthy port", rate(goodput->median),
                       fmt::format("payload sent, {} to {}", rate(goodput->min), rate(goodput->max)),
                       grouped(goodput->median) + " bit/s"));
    }
    return tiles;
}

} // namespace railbreak::reports::html
