// The reader's functions for what spans several runs: suites and baselines. A file of an older schema has neither.
#include <fmt/format.h>

#include "harness/record/columns.hpp"
#include "harness/record/find_named.hpp"
#include "harness/record/reader_impl.hpp"

namespace railbreak::record {

namespace {

constexpr std::string_view kSelectSuites =
    "SELECT id, suite_id, name, text, plan_json, plan_hash, seed, backend, cluster, version, command_line, "
    "environment_json, started_realtime_ns, finished_realtime_ns FROM suites ";

SuiteRow read_suite(Columns& c) {
    return {c.int64(), c.text(), c.text(), c.text(), c.text(), c.text(),  c.unsigned_text(),
            c.text(),  c.text(), c.text(), c.text(), c.text(), c.int64(), c.int64()};
}

void read_items(SQLite::Database& database, std::int32_t schema, SuiteData& data) {
    SQLite::Statement statement(
        database,
        fmt::format("SELECT i.suite, i.item, i.name, i.scenario_name, i.params_json, i.repeat, i.plan_hash, i.state, "
                    "coalesce(i.run, 0), i.attempts, i.reason, {}, coalesce(r.run_id, ''), "
                    "coalesce((SELECT verdict FROM verdicts WHERE run = i.run AND scope = 'run'), ''), "
                    "coalesce((SELECT reason FROM verdicts WHERE run = i.run AND scope = 'run'), '') "
                    "FROM suite_items i LEFT JOIN runs r ON r.id = i.run WHERE i.suite = ? ORDER BY i.item",
                    schema >= kSchemaOfPrunedItems
                        ? "pruned_run_id, pruned_verdict, pruned_reason, pruned_started_realtime_ns, "
                          "pruned_finished_realtime_ns, pruned_figures_json"
                        : "'', '', '', 0, 0, '[]'"));
    bind_all(statement, data.suite.id);
    while (statement.executeStep()) {
        Columns c(statement);
        data.items.push_back({c.int64(),
                              c.int32(),
                              c.text(),
                              c.text(),
                              c.text(),
                              c.int32(),
                              c.text(),
                              c.text(),
                              c.int64(),
                              c.int32(),
                              c.text(),
                              {c.text(), c.text(), c.text(), c.int64(), c.int64(), c.text()}});
        const SuiteItemRow& item = data.items.back();
        data.run_ids.push_back(c.text());
        std::string verdict = c.text();
        std::string reason = c.text();
        data.verdicts.push_back(item.run != 0 ? std::move(verdict) : item.pruned.verdict);
        data.reasons.push_back(!item.reason.empty() ? item.reason
                               : item.run != 0      ? std::move(reason)
                                                    : item.pruned.reason);
    }
}

constexpr std::string_view kSelectBaselines =
    "SELECT b.tag, b.run, r.run_id, b.set_realtime_ns, b.note FROM baselines b JOIN runs r ON r.id = b.run ";

BaselineRow read_baseline(Columns& c) {
    return {c.text(), c.int64(), c.text(), c.int64(), c.text()};
}

std::string tags(SQLite::Database& database) {
    std::string list;
    SQLite::Statement statement(database, "SELECT DISTINCT tag FROM baselines ORDER BY tag");
    while (statement.executeStep()) {
        list += fmt::format("{}{}", list.empty() ? "" : ", ", statement.getColumn(0).getString());
    }
    return list;
}

} // namespace

Result<SuiteData> RunReader::load_suite(std::string_view which) const {
    return flatten(guarded(impl_->path, "read a suite", [&]() -> Result<SuiteData> {
        SQLite::Transaction transaction(*impl_->database);
        if (impl_->schema() < kSchemaOfManyRuns) {
            return fail(ErrorKind::kInput,
                        fmt::format("database {}: there is no suite in it yet", impl_->path.string()));
        }
        const Result<std::int64_t> id = find_named(*impl_->database, impl_->path, kSuites, which);
        if (!id) {
            return tl::unexpected(id.error());
        }
        SuiteData data;
        const std::string sql = std::string(kSelectSuites) + "WHERE id = ?";
        data.suite = rows_of<SuiteRow>(*impl_->database, sql.c_str(), *id, read_suite).at(0);
        read_items(*impl_->database, impl_->schema(), data);
        return data;
    }));
}

Result<std::vector<SuiteRow>> RunReader::list_suites(std::int32_t limit) const {
    return guarded(impl_->path, "list the suites", [&]() -> std::vector<SuiteRow> {
        if (impl_->schema() < kSchemaOfManyRuns) {
            return {};
        }
        SQLite::Statement statement(*impl_->database, std::string(kSelectSuites) + "ORDER BY id DESC LIMIT ?");
        bind_all(statement, limit);
        return all_rows<SuiteRow>(statement, read_suite);
    });
}

Result<std::vector<BaselineRow>> RunReader::baseline(std::string_view tag) const {
    return flatten(guarded(impl_->path, "read a baseline", [&]() -> Result<std::vector<BaselineRow>> {
        std::string known;
        if (impl_->schema() >= kSchemaOfManyRuns) {
            SQLite::Statement statement(*impl_->database,
                                        std::string(kSelectBaselines) + "WHERE b.tag = ? ORDER BY b.run");
            bind_all(statement, std::string(tag));
            auto rows = all_rows<BaselineRow>(statement, read_baseline);
            if (!rows.empty()) {
                return rows;
            }
            known = tags(*impl_->database);
        }
        return fail(
            Error(ErrorKind::kInput, fmt::format("database {}: there is no baseline \"{}\"", impl_->path.string(), tag))
                .advise(known.empty() ? std::string("make one with railbreak baseline set TAG RUN...")
                                      : fmt::format("give one of: {}", known)));
    }));
}

Result<std::vector<BaselineRow>> RunReader::list_baselines() const {
    return guarded(impl_->path, "list the baselines", [&]() -> std::vector<BaselineRow> {
        if (impl_->schema() < kSchemaOfManyRuns) {
            return {};
        }
        SQLite::Statement statement(*impl_->database, std::string(kSelectBaselines) + "ORDER BY b.tag, b.run");
        return all_rows<BaselineRow>(statement, read_baseline);
    });
}

} // namespace railbreak::record
