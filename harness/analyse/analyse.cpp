#include "harness/analyse/analyse.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::EventRow;
using record::PhaseStatistics;
using record::RunData;
using record::VerdictRow;

namespace {

// What the run's verdict may be taken from: a check or a stop.
struct Candidate {
    Verdict verdict = Verdict::kPass;
    std::string reason;
};

// The stops of a run, in order. Those of the teardown have their own verdict.
std::vector<Candidate> stops(const RunData& data) {
    std::vector<Candidate> found;
    for (const EventRow& event : data.events) {
        if (!event.kind.starts_with(kStopped)) {
            continue;
        }
        const std::string_view kind = std::string_view(event.kind).substr(kStopped.size());
        if (kind == to_string(ErrorKind::kTeardown)) {
            continue;
        }
        const Verdict verdict = kind == to_string(ErrorKind::kOutcome)   ? Verdict::kFail
                                : kind == to_string(ErrorKind::kRefused) ? Verdict::kRefused
                                                                         : Verdict::kAborted;
        found.push_back({verdict, event.text});
    }
    return found;
}

// What the teardown said first; nothing when it said nothing.
const EventRow* first_of_teardown(const RunData& data) {
    const std::string kind = fmt::format("{}{}", kStopped, to_string(ErrorKind::kTeardown));
    const auto found =
        std::find_if(data.events.begin(), data.events.end(), [&](const EventRow& event) { return event.kind == kind; });
    return found != data.events.end() ? &*found : nullptr;
}

// The worst candidate; among equals the first, because later trouble mostly follows from it.
Candidate worst_of(const std::vector<Candidate>& candidates) {
    const auto worse = [](const Candidate& a, const Candidate& b) { return a.verdict < b.verdict; };
    return *std::max_element(candidates.begin(), candidates.end(), worse); // the first of equals
}

// What a run comes to that was broken off for `stop`. Nobody uses its times, so one that beats its bound is no reason
// any more; a proven failure stands, but is told after what ended the run.
Candidate of_broken_off(const Candidate& stop, std::vector<Candidate> candidates) {
    std::erase_if(candidates, [](const Candidate& each) { return each.verdict == Verdict::kInvalid; });
    const Candidate worst = worst_of(candidates);
    return worst.verdict == Verdict::kFail
               ? Candidate{worst.verdict, fmt::format("{}; before that: {}", stop.reason, worst.reason)}
               : stop;
}

// The verdict of the run, see enum Verdict, and the reason that comes first.
Candidate run_verdict(const RunData& data, const std::vector<VerdictRow>& rows) {
    std::vector<Candidate> candidates = stops(data);
    const auto broken_off = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& each) {
        return each.verdict == Verdict::kAborted || each.verdict == Verdict::kRefused;
    });
    const std::optional<Candidate> stop = broken_off != candidates.end() ? std::optional(*broken_off) : std::nullopt;
    std::size_t checks = 0;
    for (const VerdictRow& row : rows) {
        if (row.scope != "teardown") {
            ++checks;
            const Verdict verdict = parse_verdict(row.verdict).value_or(Verdict::kInconclusive);
            candidates.push_back({verdict, fmt::format("{} of {}: {}", row.scope, row.subject, row.reason)});
        }
    }
    if (candidates.empty()) {
        return {Verdict::kInconclusive, "nothing was judged: the plan has no algorithm and no expectation"};
    }
    Candidate worst = stop ? of_broken_off(*stop, candidates) : worst_of(candidates);
    if (worst.verdict == Verdict::kPass) {
        const bool simulated = data.run.backend == record::kSimulatedBackend;
        return {Verdict::kPass, fmt::format("all {} checks passed{}", checks, simulated ? " in the simulation" : "")};
    }
    if (const EventRow* teardown = first_of_teardown(data); teardown != nullptr && data.iterations.empty() && !stop) {
        worst.reason = teardown->text; // it never came to anything that could be judged
    }
    const auto others = std::count_if(candidates.begin(), candidates.end(),
                                      [&](const Candidate& c) { return c.verdict != Verdict::kPass; }) -
                        1;
    if (others > 0) {
        worst.reason += fmt::format(" (and {} more)", others);
    }
    return worst;
}

// Reasons are one line each, whatever an error text contains.
void make_one_line(std::string& text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
}

} // namespace

VerdictRow make_row(std::string_view scope, std::string subject, Verdict verdict, std::string reason) {
    VerdictRow row;
    row.scope = scope;
    row.subject = std::move(subject);
    row.verdict = to_string(verdict);
    row.reason = std::move(reason);
    return row;
}

std::vector<std::string> algorithms_of(const RunData& data, const scenarios::Plan& plan) {
    std::vector<std::string> names = plan.workload.labels();
    for (const record::IterationRow& row : data.iterations) {
        if (std::find(names.begin(), names.end(), row.algorithm) == names.end()) {
            names.push_back(row.algorithm);
        }
    }
    return names;
}

Analysis analyse(const RunData& data, const scenarios::Plan& plan) {
    const std::vector<PhaseStatistics> statistics = record::phase_statistics(data);
    std::vector<VerdictRow> rows;
    judge_teardown(data, rows);
    judge_correctness(data, plan, rows);
    judge_faults(data, plan, rows);
    judge_bounds(data, plan, statistics, rows);
    judge_expectations(data, plan, statistics, rows);

    Candidate run = run_verdict(data, rows);
    rows.insert(rows.begin(), make_row("run", "", run.verdict, std::move(run.reason)));
    for (VerdictRow& row : rows) {
        row.run = data.run.id;
        make_one_line(row.reason);
    }
    Analysis analysis;
    analysis.verdict = run.verdict;
    analysis.reason = rows.front().reason;
    analysis.exit_code = exit_code_of(rows);
    analysis.verdicts = std::move(rows);
    return analysis;
}

EventRow stop_event(std::int64_t run, Nanoseconds at, const Error& error) {
    nlohmann::json facts = nlohmann::json::object();
    for (const auto& [name, value] : error.facts()) {
        facts[name] = value;
    }
    EventRow event;
    event.run = run;
    event.at = at.count();
    event.level = "error";
    event.source = "controller";
    event.kind = fmt::format("{}{}", kStopped, to_string(error.kind()));
    event.text = error.to_line();
    event.facts_json = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return event;
}

std::string injection_error(const Error& error) {
    return fmt::format("{}{}", error.kind() == ErrorKind::kRefused ? kRefusedMark : "", error.to_line());
}

} // namespace railbreak::analyse
