// The recorder's functions for what spans several runs: suites and baselines.
#include <fmt/format.h>

#include "harness/record/controller_mark.hpp"
#include "harness/record/recorder_impl.hpp"

namespace railbreak::record {

namespace {

// The run of an item as it is stored: NULL for none.
std::optional<std::int64_t> stored_run(const SuiteItemRow& item) {
    return item.run != 0 ? std::optional(item.run) : std::nullopt;
}

void add_item(SQLite::Database& database, std::int64_t suite, const SuiteItemRow& item) {
    execute(database,
            "INSERT INTO suite_items(suite, item, name, scenario_name, params_json, repeat, plan_hash, state, run, "
            "attempts, reason) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            suite, item.item, item.name, item.scenario_name, item.params_json, item.repeat, item.plan_hash, item.state,
            stored_run(item), item.attempts, item.reason);
}

} // namespace

Result<std::int64_t> Recorder::begin_suite(const SuiteRow& suite, const std::vector<SuiteItemRow>& items) {
    return impl_->write("add a suite", [&] {
        return in_transaction(*impl_->database, [&] {
            const std::int64_t id = execute(
                *impl_->database,
                "INSERT INTO suites(suite_id, name, text, plan_json, plan_hash, seed, backend, cluster, "
                "version, command_line, environment_json, started_realtime_ns, finished_realtime_ns, "
                "controller) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                suite.suite_id, suite.name, suite.text, suite.plan_json, suite.plan_hash, std::to_string(suite.seed),
                suite.backend, suite.cluster, suite.version, suite.command_line, suite.environment_json,
                suite.started_realtime_ns, suite.finished_realtime_ns, this_controller());
            for (const SuiteItemRow& item : items) {
                add_item(*impl_->database, id, item);
            }
            return id;
        });
    });
}

Result<void> Recorder::take_suite(std::int64_t suite) {
    return flatten(impl_->write("take over a suite", [&]() -> Result<void> {
        // Immediate: nobody else can take it between the question and the answer.
        SQLite::Transaction transaction(*impl_->database, SQLite::TransactionBehavior::IMMEDIATE);
        SQLite::Statement query(*impl_->database,
                                "SELECT suite_id, controller, finished_realtime_ns FROM suites WHERE id = ?");
        bind_all(query, suite);
        if (!query.executeStep()) {
            return fail(ErrorKind::kInput,
                        fmt::format("database {}: there is no suite {}", impl_->path.string(), suite));
        }
        const std::string suite_id = query.getColumn(0).getString();
        const std::string holder = query.getColumn(1).getString();
        const bool unfinished = query.getColumn(2).getInt64() == 0;
        if (unfinished && holder != this_controller() && may_be_running(holder)) {
            return fail(Error(ErrorKind::kRefused, fmt::format("suite {} is running in another process", suite_id))
                            .with("controller", holder)
                            .advise("wait for it, or end that process first"));
        }
        query.reset();
        execute(*impl_->database, "UPDATE suites SET controller = ?, finished_realtime_ns = 0 WHERE id = ?",
                this_controller(), suite);
        transaction.commit();
        return {};
    }));
}

Result<void> Recorder::update_suite_item(const SuiteItemRow& item) {
    return flatten(impl_->write("update an item of a suite", [&]() -> Result<void> {
        SQLite::Transaction transaction(*impl_->database, SQLite::TransactionBehavior::IMMEDIATE);
        SQLite::Statement update(*impl_->database,
                                 "UPDATE suite_items SET name = ?, scenario_name = ?, params_json = ?, repeat = ?, "
                                 "plan_hash = ?, state = ?, run = ?, attempts = ?, reason = ?, pruned_run_id = ?, "
                                 "pruned_verdict = ?, pruned_reason = ?, pruned_started_realtime_ns = ?, "
                                 "pruned_finished_realtime_ns = ?, pruned_figures_json = ? WHERE suite = ? AND "
                                 "item = ?");
        const PrunedOutcome& pruned = item.pruned;
        bind_all(update, item.name, item.scenario_name, item.params_json, item.repeat, item.plan_hash, item.state,
                 stored_run(item), item.attempts, item.reason, pruned.run_id, pruned.verdict, pruned.reason,
                 pruned.started_realtime_ns, pruned.finished_realtime_ns, pruned.figures_json, item.suite, item.item);
        if (update.exec() != 1) {
            return fail(ErrorKind::kInternal, fmt::format("database {}: there is no item {} of suite {} to update",
                                                          impl_->path.string(), item.item, item.suite));
        }
        transaction.commit();
        return {};
    }));
}

Result<void> Recorder::finish_suite(std::int64_t suite, std::int64_t finished_realtime_ns) {
    return flatten(impl_->write("finish a suite", [&]() -> Result<void> {
        SQLite::Statement update(*impl_->database, "UPDATE suites SET finished_realtime_ns = ? WHERE id = ?");
        bind_all(update, finished_realtime_ns, suite);
        if (update.exec() != 1) {
            return fail(ErrorKind::kInternal,
                        fmt::format("database {}: there is no suite {} to finish", impl_->path.string(), suite));
        }
        return {};
    }));
}

Result<void> Recorder::set_baseline(std::string_view tag, const std::vector<std::int64_t>& runs,
                                    std::int64_t set_realtime_ns, std::string_view note) {
    if (tag.empty() || runs.empty()) {
        return fail(ErrorKind::kInput, "a baseline needs a tag and at least one run");
    }
    return flatten(impl_->write("set a baseline", [&]() -> Result<void> {
        SQLite::Transaction transaction(*impl_->database, SQLite::TransactionBehavior::IMMEDIATE);
        execute(*impl_->database, "DELETE FROM baselines WHERE tag = ?", std::string(tag));
        for (const std::int64_t run : runs) {
            SQLite::Statement known(*impl_->database, "SELECT 1 FROM runs WHERE id = ?");
            bind_all(known, run);
            if (!known.executeStep()) {
                return fail(ErrorKind::kInput, fmt::format("database {}: there is no run {} for the baseline \"{}\"",
                                                           impl_->path.string(), run, tag));
            }
            execute(*impl_->database,
                    "INSERT OR IGNORE INTO baselines(tag, run, set_realtime_ns, note) VALUES(?,?,?,?)",
                    std::string(tag), run, set_realtime_ns, std::string(note));
        }
        transaction.commit();
        return {};
    }));
}

Result<void> Recorder::drop_baseline(std::string_view tag) {
    return flatten(impl_->write("drop a baseline", [&]() -> Result<void> {
        SQLite::Statement drop(*impl_->database, "DELETE FROM baselines WHERE tag = ?");
        bind_all(drop, std::string(tag));
        if (drop.exec() == 0) {
            return fail(Error(ErrorKind::kInput,
                              fmt::format("database {}: there is no baseline \"{}\"", impl_->path.string(), tag))
                            .advise("see railbreak baseline list"));
        }
        return {};
    }));
}

} // namespace railbreak::record
