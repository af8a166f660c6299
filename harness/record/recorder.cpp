#include "harness/record/recorder.hpp"

#include <fmt/format.h>

#include "harness/record/controller_mark.hpp"
#include "harness/record/location.hpp"
#include "harness/record/recorder_impl.hpp"

namespace railbreak::record {

Recorder::Recorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recorder::Recorder(Recorder&&) noexcept = default;
Recorder& Recorder::operator=(Recorder&&) noexcept = default;
Recorder::~Recorder() = default;

const std::filesystem::path& Recorder::path() const {
    return impl_->path;
}

Result<Recorder> Recorder::open(const std::filesystem::path& path, std::chrono::milliseconds lock_wait) {
    auto database = open_for_writing(path, lock_wait);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    return Recorder(std::make_unique<Impl>(Impl{path, std::move(*database)}));
}

namespace {

std::int64_t insert_run(SQLite::Database& database, const RunRow& run) {
    return execute(database,
                   "INSERT INTO runs(run_id, scenario_name, scenario_text, plan_json, plan_hash, seed, backend, "
                   "version, command_line, environment_json, started_realtime_ns, finished_realtime_ns, hosts, "
                   "bytes, dtype, rate_bits_per_s, cluster, controller) "
                   "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                   run.run_id, run.scenario_name, run.scenario_text, run.plan_json, run.plan_hash,
                   std::to_string(run.seed), run.backend, run.version, run.command_line, run.environment_json,
                   run.started_realtime_ns, run.finished_realtime_ns, run.hosts, run.bytes, run.dtype,
                   run.rate_bits_per_s, run.cluster, this_controller());
}

bool is_taken(SQLite::Database& database, const std::string& run_id) {
    SQLite::Statement statement(database, "SELECT 1 FROM runs WHERE run_id = ?");
    bind_all(statement, run_id);
    return statement.executeStep();
}

} // namespace

Result<std::int64_t> Recorder::begin_run(const RunRow& run) {
    return impl_->write("add a run", [&] { return insert_run(*impl_->database, run); });
}

Result<std::int64_t> Recorder::begin_new_run(RunRow& run, std::uint64_t salt) {
    return impl_->write("add a run", [&] {
        return in_transaction(*impl_->database, [&] {
            constexpr int kTries = 1000; // of the 65536 names that there are for a scenario in a second
            for (int i = 0; i < kTries; ++i) {
                run.run_id = make_run_id(Nanoseconds(run.started_realtime_ns), run.scenario_name,
                                         salt + static_cast<std::uint64_t>(i));
                if (!is_taken(*impl_->database, run.run_id)) {
                    break;
                }
            }
            return insert_run(*impl_->database, run);
        });
    });
}

Result<void> Recorder::add_host(const HostRow& host) {
    return impl_->write("add a host", [&] {
        execute(*impl_->database,
                "INSERT INTO hosts(run, host, name, boot_id, netns, clock_offset_ns, clock_error_ns) "
                "VALUES(?,?,?,?,?,?,?) ON CONFLICT(run, host) DO UPDATE SET name = excluded.name, "
                "boot_id = excluded.boot_id, netns = excluded.netns, clock_offset_ns = excluded.clock_offset_ns, "
                "clock_error_ns = excluded.clock_error_ns",
                host.run, host.host, host.name, host.boot_id, host.netns, host.clock_offset_ns, host.clock_error_ns);
    });
}

Result<void> Recorder::add_nic(const NicRow& nic) {
    return impl_->write("add a NIC", [&] {
        execute(*impl_->database,
                "INSERT INTO nics(run, host, nic, name, mac, address, line_rate_bits_per_s, send_goodput_bits_per_s, "
                "receive_goodput_bits_per_s) VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(run, host, nic) DO UPDATE SET "
                "name = excluded.name, mac = excluded.mac, address = excluded.address, "
                "line_rate_bits_per_s = excluded.line_rate_bits_per_s, "
                "send_goodput_bits_per_s = excluded.send_goodput_bits_per_s, "
                "receive_goodput_bits_per_s = excluded.receive_goodput_bits_per_s",
                nic.run, nic.host, nic.nic, nic.name, nic.mac, nic.address, nic.line_rate_bits_per_s,
                nic.send_goodput_bits_per_s, nic.receive_goodput_bits_per_s);
    });
}

Result<void> Recorder::add_rank(const RankRow& rank) {
    return impl_->write("add a rank", [&] {
        execute(*impl_->database,
                "INSERT INTO ranks(run, rank, host, pid) VALUES(?,?,?,?) ON CONFLICT(run, rank) DO UPDATE SET "
                "host = excluded.host, pid = excluded.pid",
                rank.run, rank.rank, rank.host, rank.pid);
    });
}

Result<void> Recorder::add_bound(const BoundRow& bound) {
    return impl_->write("add a bound", [&] {
        execute(*impl_->database,
                "INSERT INTO bounds(run, algorithm, phase, name, model, branch, slowdown, time_over_n, time_ns) "
                "VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(run, algorithm, phase, model, name) DO UPDATE SET "
                "branch = excluded.branch, slowdown = excluded.slowdown, time_over_n = excluded.time_over_n, "
                "time_ns = excluded.time_ns",
                bound.run, bound.algorithm, bound.phase, bound.name, bound.model, bound.branch, bound.slowdown,
                bound.time_over_n, bound.time_ns);
    });
}

Result<void> Recorder::add_event(const EventRow& event) {
    return impl_->write("add an event", [&] {
        execute(*impl_->database,
                "INSERT INTO events(run, at, level, source, kind, text, facts_json) VALUES(?,?,?,?,?,?,?)", event.run,
                event.at, event.level, event.source, event.kind, event.text, event.facts_json);
    });
}

Result<void> Recorder::add_counters(const std::vector<CounterRow>& counters) {
    return impl_->write("add counters", [&] {
        in_transaction(*impl_->database, [&] {
            SQLite::Statement insert(*impl_->database, "INSERT INTO counters(run, host, nic, at, source, name, value) "
                                                       "VALUES(?,?,?,?,?,?,?)");
            for (const CounterRow& row : counters) {
                bind_all(insert, row.run, row.host, row.nic, row.at, row.source, row.name, row.value);
                insert.exec();
                insert.reset();
            }
        });
    });
}

Result<std::int64_t> Recorder::add_iteration(const IterationRow& iteration,
                                             const std::vector<RankIterationRow>& ranks) {
    return impl_->write("add an iteration", [&] {
        return in_transaction(*impl_->database, [&] {
            const std::int64_t id =
                execute(*impl_->database,
                        "INSERT INTO iterations(run, algorithm, phase, iteration, schedule, started_at, duration_ns, "
                        "expected_digest, correct, error) VALUES(?,?,?,?,?,?,?,?,?,?)",
                        iteration.run, iteration.algorithm, iteration.phase, iteration.iteration, iteration.schedule,
                        iteration.started_at, iteration.duration_ns, iteration.expected_digest, iteration.correct,
                        iteration.error);
            SQLite::Statement insert(*impl_->database,
                                     "INSERT INTO rank_iterations(iteration, rank, started_at, ended_at, bytes_sent, "
                                     "bytes_received, digest) VALUES(?,?,?,?,?,?,?)");
            for (const RankIterationRow& row : ranks) {
                bind_all(insert, id, row.rank, row.started_at, row.ended_at, row.bytes_sent, row.bytes_received,
                         row.digest);
                insert.exec();
                insert.reset();
            }
            return id;
        });
    });
}

Result<std::int64_t> Recorder::add_injection(const InjectionRow& row) {
    return impl_->write("add an injection", [&] {
        return execute(*impl_->database,
                       "INSERT INTO injections(run, fault, name, kind, algorithm, host, nic, direction, "
                       "wanted_rate_bits_per_s, ordered_at, applied_at, observed_at, reverted_at, restored_at, "
                       "mechanism, realism, data_path, observation_json, measured_send_bits_per_s, "
                       "measured_receive_bits_per_s, error, rank, params_json, collateral_json) "
                       "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                       row.run, row.fault, row.name, row.kind, row.algorithm, row.host, row.nic, row.direction,
                       row.wanted_rate_bits_per_s, row.ordered_at, row.applied_at, row.observed_at, row.reverted_at,
                       row.restored_at, row.mechanism, row.realism, row.data_path, row.observation_json,
                       row.measured_send_bits_per_s, row.measured_receive_bits_per_s, row.error, row.rank,
                       row.params_json, row.collateral_json);
    });
}

Result<void> Recorder::update_injection(const InjectionRow& row) {
    const auto changed = impl_->write("update an injection", [&] {
        SQLite::Statement update(*impl_->database,
                                 "UPDATE injections SET ordered_at = ?, applied_at = ?, observed_at = ?, "
                                 "reverted_at = ?, restored_at = ?, mechanism = ?, realism = ?, data_path = ?, "
                                 "observation_json = ?, measured_send_bits_per_s = ?, measured_receive_bits_per_s = ?, "
                                 "error = ?, collateral_json = ? WHERE id = ?");
        bind_all(update, row.ordered_at, row.applied_at, row.observed_at, row.reverted_at, row.restored_at,
                 row.mechanism, row.realism, row.data_path, row.observation_json, row.measured_send_bits_per_s,
                 row.measured_receive_bits_per_s, row.error, row.collateral_json, row.id);
        return update.exec();
    });
    if (!changed) {
        return tl::unexpected(changed.error());
    }
    if (*changed != 1) {
        return fail(ErrorKind::kInternal,
                    fmt::format("database {}: there is no injection {} to update", impl_->path.string(), row.id));
    }
    return {};
}

Result<void> Recorder::add_artefact(const ArtefactRow& artefact) {
    return impl_->write("add an artefact", [&] {
        execute(
            *impl_->database,
            "INSERT INTO artefacts(run, name, media_type, content) VALUES(?,?,?,?) ON CONFLICT(run, name) DO UPDATE "
            "SET media_type = excluded.media_type, content = excluded.content",
            artefact.run, artefact.name, artefact.media_type, artefact.content);
    });
}

Result<void> Recorder::finish_run(std::int64_t run, std::int64_t finished_realtime_ns,
                                  const std::vector<VerdictRow>& verdicts) {
    const auto changed = impl_->write("finish a run", [&] {
        return in_transaction(*impl_->database, [&] {
            execute(*impl_->database, "DELETE FROM verdicts WHERE run = ?", run);
            for (const VerdictRow& row : verdicts) {
                execute(*impl_->database,
                        "INSERT INTO verdicts(run, scope, subject, verdict, reason, measured, limit_min, limit_max) "
                        "VALUES(?,?,?,?,?,?,?,?)",
                        run, row.scope, row.subject, row.verdict, row.reason, row.measured, row.limit_min,
                        row.limit_max);
            }
            SQLite::Statement update(*impl_->database, "UPDATE runs SET finished_realtime_ns = ? WHERE id = ?");
            bind_all(update, finished_realtime_ns, run);
            return update.exec();
        });
    });
    if (!changed) {
        return tl::unexpected(changed.error());
    }
    if (*changed != 1) {
        return fail(ErrorKind::kInternal,
                    fmt::format("database {}: there is no run {} to finish", impl_->path.string(), run));
    }
    return {};
}

} // namespace railbreak::record
