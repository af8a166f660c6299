#include "harness/record/prune.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "harness/record/columns.hpp"
#include "harness/record/controller_mark.hpp"
#include "harness/record/figures_json.hpp"
#include "harness/record/reader_impl.hpp"
#include "harness/record/recorder_impl.hpp"
#include "harness/record/schema.hpp"

namespace railbreak::record {

namespace {

struct Candidate {
    std::int64_t id;
    std::string run_id;
    std::string kind; ///< scenario and where it ran: a simulated run says nothing in the place of a measured one
    std::int64_t started_realtime_ns;
    std::int64_t finished_realtime_ns;
    std::string controller;
    std::string verdict;
};

// All runs, latest first.
std::vector<Candidate> candidates(SQLite::Database& database, bool many_runs) {
    SQLite::Statement statement(
        database, fmt::format("SELECT id, run_id, scenario_name || char(10) || backend || char(10) || {}, "
                              "started_realtime_ns, finished_realtime_ns, {}, "
                              "coalesce((SELECT verdict FROM verdicts WHERE run = r.id AND scope = 'run'), '') "
                              "FROM runs r ORDER BY id DESC",
                              many_runs ? "cluster" : "''", many_runs ? "controller" : "''"));
    return all_rows<Candidate>(statement, [](Columns& c) {
        return Candidate{c.int64(), c.text(), c.text(), c.int64(), c.int64(), c.text(), c.text()};
    });
}

std::set<std::int64_t> baseline_runs(SQLite::Database& database, bool many_runs) {
    std::set<std::int64_t> runs;
    if (many_runs) {
        SQLite::Statement statement(database, "SELECT DISTINCT run FROM baselines");
        while (statement.executeStep()) {
            runs.insert(statement.getColumn(0).getInt64());
        }
    }
    return runs;
}

// Applies the rules to runs that come latest first.
class Rules {
public:
    Rules(const Retention& retention, std::set<std::int64_t> baseline)
        : retention_(retention), baseline_(std::move(baseline)) {}

    // Whether the run goes; counts in `plan` why one stays that the rules would let go.
    bool lets_go(const Candidate& run, PrunePlan& plan) {
        const std::int32_t place = ++places_[run.kind];
        const bool latest_pass = run.verdict == "pass" && passed_.insert(run.kind).second;
        const bool unfinished = run.finished_realtime_ns == 0;
        if ((retention_.keep && place <= *retention_.keep) || (retention_.unfinished && !unfinished) ||
            (retention_.older_than && run.started_realtime_ns > (retention_.now - *retention_.older_than).count())) {
            return false;
        }
        std::int64_t* kept = nullptr;
        if (baseline_.contains(run.id)) {
            kept = &plan.baseline;
        } else if (unfinished && may_be_running(run.controller)) {
            kept = &plan.recording;
        } else if (latest_pass) {
            kept = &plan.latest_pass;
        } else if (retention_.keep_failed && run.verdict != "pass" && !unfinished) {
            kept = &plan.failed;
        }
        if (kept != nullptr) {
            ++*kept;
        }
        return kept == nullptr;
    }

private:
    const Retention& retention_;
    std::set<std::int64_t> baseline_;
    std::unordered_map<std::string, std::int32_t> places_; // by kind: runs seen so far
    std::unordered_set<std::string> passed_;               // kinds whose latest pass has been seen
};

} // namespace

Result<PrunePlan> plan_prune(const std::filesystem::path& path, const Retention& retention) {
    if (!retention.keep && !retention.older_than && !retention.unfinished) {
        return fail(Error(ErrorKind::kUsage, "nothing says which runs may go")
                        .advise("give --keep N, --older-than AGE or --unfinished"));
    }
    auto database = open_for_reading(path);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    return guarded(path, "find runs to delete", [&] {
        SQLite::Transaction transaction(**database);
        const bool many_runs = (*database)->execAndGet("PRAGMA user_version").getInt() >= kSchemaOfManyRuns;
        Rules rules(retention, baseline_runs(**database, many_runs));
        PrunePlan plan;
        for (const Candidate& run : candidates(**database, many_runs)) {
            ++plan.all;
            if (rules.lets_go(run, plan)) {
                plan.runs.push_back({run.id, run.run_id, run.verdict});
            }
        }
        std::reverse(plan.runs.begin(), plan.runs.end());
        return plan;
    });
}

namespace {

// Leaves what a run came to with the item of a suite that it belongs to, if there is one.
void keep_outcome(SQLite::Database& database, std::int64_t run) {
    SQLite::Statement of_suite(database, "SELECT 1 FROM suite_items WHERE run = ?");
    bind_all(of_suite, run);
    if (!of_suite.executeStep()) {
        return;
    }
    const RunData data = read_whole_run(database, kSchemaVersion, run);
    const auto verdict = std::ranges::find(data.verdicts, "run", &VerdictRow::scope);
    const bool judged = verdict != data.verdicts.end();
    execute(database,
            "UPDATE suite_items SET pruned_run_id = ?, pruned_verdict = ?, pruned_reason = ?, "
            "pruned_started_realtime_ns = ?, pruned_finished_realtime_ns = ?, pruned_figures_json = ? WHERE run = ?",
            data.run.run_id, judged ? verdict->verdict : std::string(), judged ? verdict->reason : std::string(),
            data.run.started_realtime_ns, data.run.finished_realtime_ns, figures_json(phase_statistics(data)), run);
}

// Whether the run was there to be deleted and is no part of a baseline.
bool delete_run(SQLite::Database& database, const PrunedRun& run) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement may_go(database, "SELECT 1 FROM runs WHERE id = ?1 AND run_id = ?2 AND NOT EXISTS (SELECT 1 FROM "
                                       "baselines WHERE run = ?1)");
    bind_all(may_go, run.id, run.run_id);
    if (!may_go.executeStep()) {
        return false;
    }
    may_go.reset();
    keep_outcome(database, run.id);
    execute(database, "DELETE FROM runs WHERE id = ?", run.id);
    transaction.commit();
    return true;
}

} // namespace

Result<void> prune(const std::filesystem::path& path, const PrunePlan& plan, bool vacuum,
                   const std::function<void(const PrunedRun&)>& deleted) {
    auto database = open_for_writing(path, kLockWait);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    const Result<void> gone = guarded(path, "delete runs", [&] {
        for (const PrunedRun& run : plan.runs) {
            if (delete_run(**database, run)) {
                deleted(run);
            }
        }
    });
    if (!gone || !vacuum) {
        return gone;
    }
    return guarded(path, "pack it (the runs are deleted)", [&] {
        (*database)->exec("VACUUM");
        (*database)->exec("PRAGMA wal_checkpoint(TRUNCATE)");
    });
}

} // namespace railbreak::record
