#include "reports/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"
#include "reports/table_parts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using record::InjectionRow;
using record::PhaseStatistics;
using record::RunData;
using record::VerdictRow;

namespace {

constexpr std::size_t kLabel = 13; // width of the header's labels

std::string labelled(std::string_view label, std::string_view text) {
    return wrapped(fmt::format("{:<{}}{}", label, kLabel, printable(text)), kLabel);
}

std::string rate(std::int64_t bits_per_s) {
    return to_string(BitRate::bits_per_s(static_cast<std::uint64_t>(std::max<std::int64_t>(bits_per_s, 0))));
}

std::string duration(double nanoseconds) {
    return to_string(Nanoseconds(std::llround(nanoseconds)));
}

std::string spread(const std::optional<Spread>& value) {
    return value ? fmt::format("{} / {} / {}", rate(value->min), rate(value->median), rate(value->max))
                 : "not measured";
}

// The environment's facts in one line: "compiler GNU 12.2.0; kernel 6.1.0".
std::string environment(const std::string& json) {
    const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
    if (!parsed.is_object()) {
        return json;
    }
    std::string text;
    for (const auto& [key, value] : parsed.items()) {
        const auto replace = nlohmann::ordered_json::error_handler_t::replace;
        text += fmt::format("{}{} {}", text.empty() ? "" : "; ", key,
                            value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, replace));
    }
    return text;
}

} // namespace

std::string run_header(const RunData& data) {
    const record::RunRow& run = data.run;
    const std::string took =
        run.finished_realtime_ns > 0
            ? "took " + duration(static_cast<double>(run.finished_realtime_ns - run.started_realtime_ns))
            : "not finished";
    std::string out = labelled("run", run.run_id);
    out += labelled("scenario", fmt::format("{}, seed {}", run.scenario_name, run.seed));
    out += labelled("plan", run.plan_hash);
    out += labelled("started", fmt::format("{}, {}", utc(run.started_realtime_ns), took));
    out +=
        labelled("cluster", fmt::format("{} hosts and {} ranks on {}, {} per NIC; {} of {} on each rank", run.hosts,
                                        record::rank_count(data), run.backend,
                                        run.rate_bits_per_s > 0 ? rate(run.rate_bits_per_s) : "unknown rate",
                                        to_string(ByteCount::bytes(static_cast<std::uint64_t>(run.bytes))), run.dtype));
    out += labelled("goodput", fmt::format("of healthy ports, min / median / max: send {}; receive {}",
                                           spread(send_goodput(data)), spread(receive_goodput(data))));
    const std::string facts = environment(run.environment_json);
    out += labelled("environment", fmt::format("railbreak {}{}{}", run.version, facts.empty() ? "" : "; ", facts));
    return out;
}

namespace {

std::string figure(const std::optional<double>& value, double scale, int decimals) {
    return value ? fmt::format("{:.{}f}", *value / scale, decimals) : "-";
}

// `good` is what to say when all is well.
std::string digest_cell(const PhaseStatistics& entry, std::string_view good) {
    std::string cell;
    if (entry.wrong > 0) {
        cell = fmt::format("{} wrong", entry.wrong);
    }
    if (entry.failed > 0) {
        cell += fmt::format("{}{} failed", cell.empty() ? "" : ", ", entry.failed);
    }
    return cell.empty() ? std::string(good) : cell;
}

std::string phase_table(const std::vector<PhaseStatistics>& statistics, std::string_view good) {
    std::vector<std::vector<std::string>> rows{{"", "", "", "time/ms", "", "", "MB/s", "", "time over", "", "", ""},
                                               {"algorithm", "phase", "n", "min", "median", "max", "algbw", "busbw",
                                                "healthy", "exclusive", "fluid", "digest"}};
    for (const PhaseStatistics& entry : statistics) {
        if (entry.phase == "comparison") {
            continue; // different forms, listed one by one below
        }
        rows.push_back({printable(entry.algorithm), printable(entry.phase), std::to_string(entry.iterations),
                        figure(entry.time_min_ns, 1e6, 3), figure(entry.time_median_ns, 1e6, 3),
                        figure(entry.time_max_ns, 1e6, 3), figure(entry.algbw_bytes_per_s, 1e6, 2),
                        figure(entry.busbw_bytes_per_s, 1e6, 2), figure(entry.vs_healthy, 1, 3),
                        figure(entry.overhead_exclusive, 1, 3), figure(entry.overhead_fluid, 1, 3),
                        digest_cell(entry, good)});
    }
    if (statistics.empty()) {
        return "No iteration was recorded.\n";
    }
    return aligned(rows, "llrrrrrrrrrl") +
           "healthy: median of the ring's steady phase; exclusive, fluid: lower bounds in the two port models\n";
}

std::string joined(const std::vector<std::string>& texts) {
    return fmt::format("{}", fmt::join(texts, ", "));
}

// Which schedule ran in which phases, for the algorithms that did not run the same one all the time. What was tried
// for comparison stands with the faults.
std::string schedules_text(const RunData& data, const std::vector<PhaseStatistics>& statistics) {
    struct Group {
        std::string algorithm;
        std::vector<std::string> schedules;
        std::vector<std::string> phases;
    };
    std::vector<Group> groups;
    for (const PhaseStatistics& entry : statistics) {
        std::vector<std::string> schedules = schedules_of(data, entry.algorithm, entry.phase);
        if (entry.phase == "comparison" || schedules.empty()) {
            continue;
        }
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
            return group.algorithm == entry.algorithm && group.schedules == schedules;
        });
        if (same != groups.end()) {
            same->phases.push_back(entry.phase);
        } else {
            groups.push_back({entry.algorithm, std::move(schedules), {entry.phase}});
        }
    }
    std::string out;
    for (const Group& group : groups) {
        const auto of_algorithm = [&](const Group& other) { return other.algorithm == group.algorithm; };
        if (std::count_if(groups.begin(), groups.end(), of_algorithm) > 1) {
            out += wrapped(
                printable(fmt::format("  {} {}: {}", group.algorithm, joined(group.phases), joined(group.schedules))),
                4);
        }
    }
    return out.empty() ? "" : "\nSchedules\n" + out;
}

// One binding bound as it is shown, and where it holds.
struct ShownBound {
    std::string algorithm;
    std::vector<std::string> phases;
    std::vector<std::string> cells; // what is shown of the bound itself
};

ShownBound shown(const record::BoundRow& bound) {
    return {printable(bound.algorithm),
            {printable(bound.phase)},
            {bound.model, fmt::format("{:.3f}", static_cast<double>(bound.time_ns) / 1e6),
             fmt::format("{:.4f}", bound.time_over_n), fmt::format("{:.3f}", bound.slowdown), printable(bound.name),
             printable(bound.branch)}};
}

std::vector<std::string> cells_of(const ShownBound& bound) {
    std::vector<std::string> cells{joined(bound.phases)};
    cells.insert(cells.end(), bound.cells.begin(), bound.cells.end());
    return cells;
}

// The binding bounds. Those that do not differ in the digits shown stand on one line: first the phases of an algorithm,
// then the algorithms that have a bound in the same phases.
std::string bounds_table(const RunData& data, const std::vector<PhaseStatistics>& statistics) {
    std::vector<ShownBound> bounds;
    for (const std::string_view model : {"exclusive", "fluid"}) {
        for (const PhaseStatistics& entry : statistics) {
            const record::BoundRow* bound = record::binding_bound(data, entry.algorithm, entry.phase, model);
            if (bound == nullptr) {
                continue;
            }
            ShownBound next = shown(*bound);
            const auto same = std::find_if(bounds.begin(), bounds.end(), [&](const ShownBound& other) {
                return other.algorithm == next.algorithm && other.cells == next.cells;
            });
            if (same != bounds.end()) {
                same->phases.push_back(next.phases.front());
            } else {
                bounds.push_back(std::move(next));
            }
        }
    }
    std::set<std::string> all;
    std::map<std::vector<std::string>, std::vector<std::string>> algorithms; // by a row's other cells
    for (const ShownBound& bound : bounds) {
        all.insert(bound.algorithm);
        algorithms[cells_of(bound)].push_back(bound.algorithm);
    }
    std::vector<std::vector<std::string>> rows{
        {"phase", "model", "time/ms", "T/n", "slowdown", "bound", "what binds", "algorithms"}};
    for (const ShownBound& bound : bounds) {
        std::vector<std::string> row = cells_of(bound);
        const std::vector<std::string>& sharing = algorithms[row];
        if (sharing.front() == bound.algorithm) {
            row.push_back(sharing.size() > 1 && sharing.size() == all.size() ? "all" : joined(sharing));
            rows.push_back(std::move(row));
        }
    }
    return rows.size() > 1 ? "\nLower bounds\n" + aligned(rows, "llrrrlll", "  ") : "";
}

// ", late_ns 50000000": how strong a fault is wanted, as stored; empty when that says nothing.
std::string params_of(const InjectionRow& row) {
    std::string text;
    const auto params = nlohmann::json::parse(row.params_json, nullptr, false);
    if (params.is_object()) {
        for (const auto& [name, value] : params.items()) {
            text += fmt::format(", {} {}", name, value.dump());
        }
    }
    return text;
}

// A line for each thing that changed on the host beside the fault.
std::string collateral_of(const InjectionRow& row) {
    std::string text;
    const auto sentences = nlohmann::json::parse(row.collateral_json, nullptr, false);
    for (const auto& sentence : sentences.is_array() ? sentences : nlohmann::json::array()) {
        text += wrapped(printable("    collateral: " + (sentence.is_string() ? sentence.get<std::string>() : "")), 4);
    }
    return text;
}

// "applied +412 us" after the order, or "applied never".
std::string step(std::string_view name, std::int64_t at, std::int64_t ordered_at) {
    return at > 0 ? fmt::format(", {} +{}", name, duration(static_cast<double>(at - ordered_at)))
                  : fmt::format(", {} never", name);
}

// "send 478 Mbit/s -> 239.1 Mbit/s": healthy and under the fault.
std::string goodput(std::string_view name, std::int64_t healthy, std::int64_t measured) {
    return fmt::format("{} {} -> {}", name, healthy > 0 ? rate(healthy) : "not measured",
                       measured > 0 ? rate(measured) : "not measured");
}

std::string injection_text(const RunData& data, const InjectionRow& row, std::int64_t origin) {
    std::string what = fmt::format("  {} under {}: {}", row.name, row.algorithm, row.kind);
    if (row.wanted_rate_bits_per_s > 0) {
        what += fmt::format(" to {}", rate(row.wanted_rate_bits_per_s));
    }
    what += fmt::format(" on {}", place_of(data, row));
    what += row.direction.empty() ? "" : fmt::format(", direction {}", row.direction);
    what += params_of(row);
    what += row.mechanism.empty() ? "" : fmt::format(", by {}", row.mechanism);
    what += row.realism.empty() ? "" : fmt::format("; realism {}", row.realism);
    what += row.data_path.empty() ? "" : fmt::format("; path {}", row.data_path);
    std::string out = wrapped(printable(what), 4);

    out += wrapped(row.ordered_at > 0 ? fmt::format("    ordered at {}{}{}{}{}",
                                                    duration(static_cast<double>(row.ordered_at - origin)),
                                                    step("applied", row.applied_at, row.ordered_at),
                                                    step("observed", row.observed_at, row.ordered_at),
                                                    step("reverted", row.reverted_at, row.ordered_at),
                                                    step("restored", row.restored_at, row.ordered_at))
                                      : "    never ordered",
                   4);
    if (row.measured_send_bits_per_s > 0 || row.measured_receive_bits_per_s > 0) {
        const auto nic = std::find_if(data.nics.begin(), data.nics.end(),
                                      [&](const record::NicRow& n) { return n.host == row.host && n.nic == row.nic; });
        const bool known = nic != data.nics.end();
        out +=
            wrapped(fmt::format("    goodput {}, {}",
                                goodput("send", known ? nic->send_goodput_bits_per_s : 0, row.measured_send_bits_per_s),
                                goodput("receive", known ? nic->receive_goodput_bits_per_s : 0,
                                        row.measured_receive_bits_per_s)),
                    4);
    }
    out += collateral_of(row);
    if (!row.error.empty()) {
        out += wrapped(printable("    error: " + row.error), 4);
    }
    return out;
}

} // namespace

std::string faults_text(const RunData& data) {
    if (data.injections.empty()) {
        return "\nFaults: none\n";
    }
    std::string out = "\nFaults\n";
    const std::int64_t origin = origin_ns(data);
    for (const InjectionRow& row : data.injections) {
        out += injection_text(data, row, origin);
    }
    return out;
}

namespace {

// "Forms of optcc tried on this damage: a 2.585 s (kept), b 2.606 s +0.8 %": every algorithm on its own line.
std::string comparison_text(const RunData& data) {
    std::string out;
    for (const Comparison& comparison : compare_forms(data)) {
        std::string line = fmt::format("Forms of {} tried on this damage:", comparison.algorithm);
        for (const Form& form : comparison.forms) {
            const double more = (form.over_fastest - 1) * 100;
            line += fmt::format(" {} {}{}{}{}", form.schedule, duration(form.time_median_ns),
                                more > 0 ? fmt::format(" +{:.1f} %", more) : "",
                                form.schedule == comparison.kept ? " (kept)" : "",
                                &form != &comparison.forms.back() ? "," : "");
        }
        out += wrapped(printable(line), 2);
    }
    return out.empty() ? "" : "\n" + out;
}

std::string painted(std::string_view verdict, bool colour) {
    if (!colour) {
        return std::string(verdict);
    }
    const std::string_view code = verdict == "pass" ? "32" : verdict == "fail" || verdict == "invalid" ? "31" : "33";
    return fmt::format("\x1b[1;{}m{}\x1b[0m", code, verdict);
}

// "<prefix><verdict><separator><text>", wrapped as if there were no colours, then coloured.
std::string verdict_line(std::string_view prefix, std::string_view verdict, std::string_view separator,
                         std::string_view text, bool colour) {
    const std::string word = printable(verdict);
    std::string out = wrapped(fmt::format("{}{}{}{}", prefix, word, separator, printable(text)),
                              prefix.size() + (separator.size() > 2 ? word.size() + separator.size() : 2));
    return out.replace(prefix.size(), word.size(), painted(word, colour));
}

std::string checks_text(const RunData& data, bool colour) {
    std::string out;
    for (const VerdictRow& row : data.verdicts) {
        const bool shown =
            row.scope == "expectation" || (row.verdict != "pass" && row.scope != "run" && row.scope != "teardown");
        if (shown) {
            // Verdicts are padded to the longest, "inconclusive".
            const std::string gap(14 - std::min<std::size_t>(12, row.verdict.size()), ' ');
            out += verdict_line("  ", row.verdict, gap, fmt::format("{} of {}: {}", row.scope, row.subject, row.reason),
                                colour);
        }
    }
    return out.empty() ? "" : "\nExpectations, and whatever else did not pass\n" + out;
}

std::string verdict_text(const RunData& data, bool colour) {
    std::string out = "\n";
    for (const VerdictRow& row : data.verdicts) {
        if (row.scope == "teardown") {
            const std::string subject = row.subject.empty() ? "" : row.subject + ": ";
            out += verdict_line("TEARDOWN ", row.verdict, ": ", subject + row.reason, colour);
        }
    }
    if (const VerdictRow* run = find_verdict(data, "run"); run != nullptr) {
        return out + verdict_line("VERDICT ", run->verdict, ": ", run->reason, colour);
    }
    return out + wrapped("VERDICT none: " + printable(not_ended(data)), 2);
}

} // namespace

std::string run_table(const RunData& data, const TextOptions& options) {
    const std::vector<PhaseStatistics> statistics = record::phase_statistics(data);
    return run_header(data) + "\n" + phase_table(statistics, word_for_right(data)) + schedules_text(data, statistics) +
           bounds_table(data, statistics) + faults_text(data) + comparison_text(data) +
           checks_text(data, options.colour) + verdict_text(data, options.colour);
}

std::string list_table(const std::vector<record::RunSummary>& runs, const TextOptions& options) {
    if (runs.empty()) {
        return "No runs yet.\n";
    }
    std::vector<std::vector<std::string>> rows{{"run", "started", "took", "hosts", "verdict", "reason"}};
    for (const record::RunSummary& run : runs) {
        const bool finished = run.finished_realtime_ns > 0;
        const std::string reason = run.teardown_problem.empty()
                                       ? run.reason
                                       : fmt::format("TEARDOWN: {}; {}", run.teardown_problem, run.reason);
        rows.push_back(
            {printable(run.run_id), utc(run.started_realtime_ns),
             finished ? duration(static_cast<double>(run.finished_realtime_ns - run.started_realtime_ns)) : "-",
             std::to_string(run.hosts), run.verdict.empty() ? "unfinished" : printable(run.verdict),
             printable(reason)});
    }
    std::string out = aligned(rows, "llrrll");
    if (options.colour) {
        // The verdict's column is found by its place in the heading; every line has its cell there.
        const std::size_t column = out.find("verdict");
        std::string coloured = out.substr(0, out.find('\n') + 1);
        std::size_t at = coloured.size();
        for (std::size_t i = 1; i < rows.size(); ++i) {
            const std::size_t end = out.find('\n', at);
            std::string line = out.substr(at, end - at + 1);
            const std::string& word = rows[i][4];
            if (line.compare(column, word.size(), word) == 0) {
                line.replace(column, word.size(), painted(word, true));
            }
            coloured += line;
            at = end + 1;
        }
        out = coloured;
    }
    return out;
}

} // namespace railbreak::reports
