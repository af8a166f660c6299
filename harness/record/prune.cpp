#include "harness/record/prune.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "harness/record/columns.hpp"
#include "harness/record/controller_mark.hpp"
#include "harness/record/reader_impl.hpp"
#include "harness/record/recorder_impl.hpp"

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

Result<void> prune(const std::filesystem::path& path, const PrunePlan& plan, bool vacuum,
                   const std::function<void(const PrunedRun&)>& deleted) {
    auto database = open_for_writing(path, kLockWait);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    const Result<void> gone = guarded(path, "delete runs", [&] {
        for (const PrunedRun& run : plan.runs) {
            SQLite::Statement statement(**database, "DELETE FROM runs WHERE id = ?1 AND run_id = ?2 AND NOT EXISTS "
                                                    "(SELECT 1 FROM baselines WHERE run = ?1)");
            bind_all(statement, run.id, run.run_id);
            if (statement.exec() == 1) {
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
