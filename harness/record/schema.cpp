#include "harness/record/schema.hpp"

#include <array>

#include "base/check.hpp"

namespace railbreak::record {

namespace {

// Times named *_at are nanoseconds of the controller's monotonic clock, 0 for "did not happen". The seed is text
// because it is an unsigned 64-bit number, which SQLite does not have.
constexpr std::string_view kTables = R"sql(
CREATE TABLE runs(
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE CHECK(run_id <> ''),
    scenario_name TEXT NOT NULL,
    scenario_text TEXT NOT NULL,
    plan_json TEXT NOT NULL,
    plan_hash TEXT NOT NULL,
    seed TEXT NOT NULL,
    backend TEXT NOT NULL,
    version TEXT NOT NULL,
    command_line TEXT NOT NULL,
    environment_json TEXT NOT NULL,
    started_realtime_ns INTEGER NOT NULL,
    finished_realtime_ns INTEGER NOT NULL,
    hosts INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    dtype TEXT NOT NULL,
    rate_bits_per_s INTEGER NOT NULL
) STRICT;

CREATE TABLE hosts(
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    host INTEGER NOT NULL,
    name TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    netns TEXT NOT NULL,
    clock_offset_ns INTEGER NOT NULL,
    clock_error_ns INTEGER NOT NULL,
    PRIMARY KEY(run, host)
) STRICT, WITHOUT ROWID;

CREATE TABLE nics(
    run INTEGER NOT NULL,
    host INTEGER NOT NULL,
    nic INTEGER NOT NULL,
    name TEXT NOT NULL,
    mac TEXT NOT NULL,
    address TEXT NOT NULL,
    line_rate_bits_per_s INTEGER NOT NULL,
    send_goodput_bits_per_s INTEGER NOT NULL,
    receive_goodput_bits_per_s INTEGER NOT NULL,
    PRIMARY KEY(run, host, nic),
    FOREIGN KEY(run, host) REFERENCES hosts(run, host) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE ranks(
    run INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    host INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    PRIMARY KEY(run, rank),
    FOREIGN KEY(run, host) REFERENCES hosts(run, host) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE injections(
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    fault INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    host INTEGER NOT NULL,
    nic INTEGER NOT NULL,
    direction TEXT NOT NULL CHECK(direction IN ('send', 'receive', 'both', '')),
    wanted_rate_bits_per_s INTEGER NOT NULL,
    ordered_at INTEGER NOT NULL,
    applied_at INTEGER NOT NULL,
    observed_at INTEGER NOT NULL,
    reverted_at INTEGER NOT NULL,
    restored_at INTEGER NOT NULL,
    mechanism TEXT NOT NULL,
    realism TEXT NOT NULL,
    data_path TEXT NOT NULL,
    observation_json TEXT NOT NULL,
    measured_send_bits_per_s INTEGER NOT NULL,
    measured_receive_bits_per_s INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;
CREATE INDEX injections_by_run ON injections(run);

CREATE TABLE events(
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    level TEXT NOT NULL CHECK(level IN ('debug', 'info', 'warning', 'error')),
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    facts_json TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_run ON events(run);

CREATE TABLE iterations(
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    algorithm TEXT NOT NULL,
    phase TEXT NOT NULL CHECK(phase IN ('warmup', 'steady', 'degraded', 'recovered', 'comparison')),
    iteration INTEGER NOT NULL,
    schedule TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    expected_digest TEXT NOT NULL,
    correct INTEGER NOT NULL CHECK(correct IN (0, 1)),
    error TEXT NOT NULL,
    UNIQUE(run, algorithm, phase, iteration)
) STRICT;

CREATE TABLE rank_iterations(
    iteration INTEGER NOT NULL REFERENCES iterations(id) ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    bytes_sent INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY(iteration, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters(
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    host INTEGER NOT NULL,
    nic INTEGER NOT NULL,
    at INTEGER NOT NULL,
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL
) STRICT;
CREATE INDEX counters_by_run ON counters(run);

CREATE TABLE bounds(
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    algorithm TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    model TEXT NOT NULL CHECK(model IN ('exclusive', 'fluid')),
    branch TEXT NOT NULL,
    slowdown REAL NOT NULL,
    time_over_n REAL NOT NULL,
    time_ns INTEGER NOT NULL,
    PRIMARY KEY(run, algorithm, phase, model, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdicts(
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    scope TEXT NOT NULL CHECK(scope IN ('run', 'teardown', 'expectation', 'correctness', 'fault', 'bound')),
    subject TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK(verdict IN ('pass', 'fail', 'inconclusive', 'invalid', 'refused', 'aborted')),
    reason TEXT NOT NULL CHECK(reason <> '' OR verdict = 'pass'),
    measured REAL,
    limit_min REAL,
    limit_max REAL
) STRICT;
CREATE INDEX verdicts_by_run ON verdicts(run);

CREATE TABLE artefacts(
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY(run, name)
) STRICT;

CREATE VIEW v_runs AS
SELECT r.run_id, r.scenario_name AS scenario, r.backend, r.hosts, r.bytes, r.dtype, r.seed, r.plan_hash,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.started_realtime_ns / 1000000000, 'unixepoch') AS started,
       CASE r.finished_realtime_ns WHEN 0 THEN NULL
            ELSE round((r.finished_realtime_ns - r.started_realtime_ns) / 1e9, 3) END AS took_s,
       coalesce(v.verdict, 'unfinished') AS verdict, coalesce(v.reason, '') AS reason
FROM runs r LEFT JOIN verdicts v ON v.run = r.id AND v.scope = 'run'
ORDER BY r.started_realtime_ns DESC, r.id DESC;

CREATE VIEW v_iterations AS
SELECT r.run_id, i.algorithm, i.phase, i.iteration, i.schedule,
       round((i.started_at - (SELECT min(f.started_at) FROM iterations f WHERE f.run = i.run)) / 1e6, 3) AS start_ms,
       round(i.duration_ns / 1e6, 3) AS time_ms, i.correct, i.error
FROM iterations i JOIN runs r ON r.id = i.run
ORDER BY r.started_realtime_ns, i.id;

CREATE VIEW v_rank_iterations AS
SELECT r.run_id, i.algorithm, i.phase, i.iteration, k.rank,
       round((k.ended_at - k.started_at) / 1e6, 3) AS time_ms, k.bytes_sent, k.bytes_received, k.digest,
       k.digest = i.expected_digest AS correct
FROM rank_iterations k JOIN iterations i ON i.id = k.iteration JOIN runs r ON r.id = i.run
ORDER BY r.started_realtime_ns, i.id, k.rank;

CREATE VIEW v_injections AS
SELECT r.run_id, j.name, j.kind, j.algorithm, j.host, j.nic, j.direction,
       round(j.wanted_rate_bits_per_s / 1e6, 3) AS wanted_mbit_per_s,
       round(j.measured_send_bits_per_s / 1e6, 3) AS measured_send_mbit_per_s,
       round(j.measured_receive_bits_per_s / 1e6, 3) AS measured_receive_mbit_per_s,
       CASE WHEN j.applied_at > 0 THEN round((j.applied_at - j.ordered_at) / 1e6, 3) END AS applied_after_ms,
       CASE WHEN j.observed_at > 0 THEN round((j.observed_at - j.ordered_at) / 1e6, 3) END AS observed_after_ms,
       CASE WHEN j.reverted_at > 0 THEN round((j.reverted_at - j.ordered_at) / 1e6, 3) END AS reverted_after_ms,
       CASE WHEN j.restored_at > 0 THEN round((j.restored_at - j.ordered_at) / 1e6, 3) END AS restored_after_ms,
       j.mechanism, j.realism, j.data_path, j.error
FROM injections j JOIN runs r ON r.id = j.run
ORDER BY r.started_realtime_ns, j.id;

CREATE VIEW v_events AS
SELECT r.run_id, e.at, e.level, e.source, e.kind, e.text
FROM events e JOIN runs r ON r.id = e.run
ORDER BY r.started_realtime_ns, e.at, e.id;

CREATE VIEW v_verdicts AS
SELECT r.run_id, v.scope, v.subject, v.verdict, v.reason, v.measured, v.limit_min, v.limit_max
FROM verdicts v JOIN runs r ON r.id = v.run
ORDER BY r.started_realtime_ns, v.id;

CREATE VIEW v_summary AS
WITH ranked AS (
    SELECT run, algorithm, phase, duration_ns,
           row_number() OVER w AS place, count(*) OVER (PARTITION BY run, algorithm, phase) AS n
    FROM iterations WHERE error = '' AND duration_ns > 0
    WINDOW w AS (PARTITION BY run, algorithm, phase ORDER BY duration_ns)
), median AS (
    SELECT run, algorithm, phase, n, avg(duration_ns) AS time_ns
    FROM ranked WHERE place IN ((n + 1) / 2, (n + 2) / 2) GROUP BY run, algorithm, phase
), limits AS (
    SELECT run, algorithm, phase, max(CASE model WHEN 'exclusive' THEN time_ns END) AS exclusive_ns,
           max(CASE model WHEN 'fluid' THEN time_ns END) AS fluid_ns
    FROM bounds GROUP BY run, algorithm, phase
)
SELECT r.run_id, m.algorithm, m.phase, m.n, round(m.time_ns / 1e6, 3) AS median_ms,
       round(r.bytes / m.time_ns, 6) AS algbw_gb_per_s,
       round(m.time_ns / h.time_ns, 4) AS vs_healthy,
       round(m.time_ns / nullif(l.exclusive_ns, 0), 4) AS overhead_exclusive,
       round(m.time_ns / nullif(l.fluid_ns, 0), 4) AS overhead_fluid
FROM median m JOIN runs r ON r.id = m.run
LEFT JOIN median h ON h.run = m.run AND h.algorithm = 'ring' AND h.phase = 'steady'
LEFT JOIN limits l ON l.run = m.run AND l.algorithm = m.algorithm AND l.phase = m.phase
ORDER BY r.started_realtime_ns, m.algorithm, m.phase;
)sql";

// Faults of every kind: on ranks as well as on NICs (nic is -1 then), with strengths other than a rate, and with what
// else changed on the host.
constexpr std::string_view kEveryKindOfFault = R"sql(
ALTER TABLE injections ADD COLUMN rank INTEGER NOT NULL DEFAULT -1;
ALTER TABLE injections ADD COLUMN params_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE injections ADD COLUMN collateral_json TEXT NOT NULL DEFAULT '[]';

DROP VIEW v_injections;
CREATE VIEW v_injections AS
SELECT r.run_id, j.name, j.kind, j.algorithm, j.host, CASE WHEN j.nic >= 0 THEN j.nic END AS nic,
       CASE WHEN j.rank >= 0 THEN j.rank END AS rank, j.direction,
       round(j.wanted_rate_bits_per_s / 1e6, 3) AS wanted_mbit_per_s, j.params_json AS params,
       round(j.measured_send_bits_per_s / 1e6, 3) AS measured_send_mbit_per_s,
       round(j.measured_receive_bits_per_s / 1e6, 3) AS measured_receive_mbit_per_s,
       CASE WHEN j.applied_at > 0 THEN round((j.applied_at - j.ordered_at) / 1e6, 3) END AS applied_after_ms,
       CASE WHEN j.observed_at > 0 THEN round((j.observed_at - j.ordered_at) / 1e6, 3) END AS observed_after_ms,
       CASE WHEN j.reverted_at > 0 THEN round((j.reverted_at - j.ordered_at) / 1e6, 3) END AS reverted_after_ms,
       CASE WHEN j.restored_at > 0 THEN round((j.restored_at - j.ordered_at) / 1e6, 3) END AS restored_after_ms,
       j.mechanism, j.realism, j.data_path, j.collateral_json AS collateral, j.error
FROM injections j JOIN runs r ON r.id = j.run
ORDER BY r.started_realtime_ns, j.id;
)sql";

// Evidence over many runs: suites, baselines, where a run ran and whether its controller lives. A baseline protects its
// runs from deletion; an item of a suite outlives its run. The indexes are what lists and comparisons walk over; the
// one by scenario holds every column that they select by, since a run's own row has its scenario and plan in between.
constexpr std::string_view kManyRuns = R"sql(
ALTER TABLE runs ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN controller TEXT NOT NULL DEFAULT '';
UPDATE runs SET cluster = 'sim' WHERE backend = 'sim';
CREATE INDEX runs_by_scenario ON runs(scenario_name, plan_hash, cluster, finished_realtime_ns);

CREATE TABLE suites(
    id INTEGER PRIMARY KEY,
    suite_id TEXT NOT NULL UNIQUE CHECK(suite_id <> ''),
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    plan_json TEXT NOT NULL,
    plan_hash TEXT NOT NULL,
    seed TEXT NOT NULL,
    backend TEXT NOT NULL,
    cluster TEXT NOT NULL,
    version TEXT NOT NULL,
    command_line TEXT NOT NULL,
    environment_json TEXT NOT NULL,
    started_realtime_ns INTEGER NOT NULL,
    finished_realtime_ns INTEGER NOT NULL,
    controller TEXT NOT NULL
) STRICT;

CREATE TABLE suite_items(
    suite INTEGER NOT NULL REFERENCES suites(id) ON DELETE CASCADE,
    item INTEGER NOT NULL CHECK(item >= 0),
    name TEXT NOT NULL,
    scenario_name TEXT NOT NULL,
    params_json TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    plan_hash TEXT NOT NULL,
    state TEXT NOT NULL CHECK(state IN ('waiting', 'running', 'done', 'skipped')),
    run INTEGER REFERENCES runs(id) ON DELETE SET NULL,
    attempts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY(suite, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX suite_items_by_run ON suite_items(run);

CREATE TABLE baselines(
    tag TEXT NOT NULL CHECK(tag <> ''),
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE RESTRICT,
    set_realtime_ns INTEGER NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY(tag, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX baselines_by_run ON baselines(run);

DROP VIEW v_runs;
CREATE VIEW v_runs AS
SELECT r.run_id, r.scenario_name AS scenario, r.backend, r.cluster, r.hosts, r.bytes, r.dtype, r.seed, r.plan_hash,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.started_realtime_ns / 1000000000, 'unixepoch') AS started,
       CASE r.finished_realtime_ns WHEN 0 THEN NULL
            ELSE round((r.finished_realtime_ns - r.started_realtime_ns) / 1e9, 3) END AS took_s,
       coalesce(v.verdict, 'unfinished') AS verdict, coalesce(v.reason, '') AS reason
FROM runs r LEFT JOIN verdicts v ON v.run = r.id AND v.scope = 'run'
ORDER BY r.id DESC;

CREATE VIEW v_suites AS
SELECT s.suite_id, s.name, s.backend, s.cluster, s.seed, s.plan_hash,
       strftime('%Y-%m-%dT%H:%M:%SZ', s.started_realtime_ns / 1000000000, 'unixepoch') AS started,
       CASE s.finished_realtime_ns WHEN 0 THEN NULL
            ELSE round((s.finished_realtime_ns - s.started_realtime_ns) / 1e9, 3) END AS took_s,
       (SELECT count(*) FROM suite_items i WHERE i.suite = s.id) AS items,
       (SELECT count(*) FROM suite_items i WHERE i.suite = s.id AND i.state = 'done') AS done,
       (SELECT count(*) FROM suite_items i JOIN verdicts v ON v.run = i.run AND v.scope = 'run' AND v.verdict = 'pass'
        WHERE i.suite = s.id) AS passed
FROM suites s
ORDER BY s.id DESC;

CREATE VIEW v_suite_items AS
SELECT s.suite_id, i.item, i.name, i.scenario_name AS scenario, i.params_json AS params, i.repeat, i.state, i.attempts,
       r.run_id, v.verdict, CASE i.reason WHEN '' THEN coalesce(v.reason, '') ELSE i.reason END AS reason
FROM suite_items i JOIN suites s ON s.id = i.suite
LEFT JOIN runs r ON r.id = i.run
LEFT JOIN verdicts v ON v.run = i.run AND v.scope = 'run'
ORDER BY s.id, i.item;

CREATE VIEW v_baselines AS
SELECT b.tag, r.run_id, r.scenario_name AS scenario, r.plan_hash, r.cluster, v.verdict,
       strftime('%Y-%m-%dT%H:%M:%SZ', b.set_realtime_ns / 1000000000, 'unixepoch') AS "set", b.note
FROM baselines b JOIN runs r ON r.id = b.run
LEFT JOIN verdicts v ON v.run = b.run AND v.scope = 'run'
ORDER BY b.tag, b.run;
)sql";

// A suite outlives the runs of its items: what its reports need of a run stays with the item when the run is pruned.
constexpr std::string_view kPrunedItems = R"sql(
ALTER TABLE suite_items ADD COLUMN pruned_run_id TEXT NOT NULL DEFAULT '';
ALTER TABLE suite_items ADD COLUMN pruned_verdict TEXT NOT NULL DEFAULT '';
ALTER TABLE suite_items ADD COLUMN pruned_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE suite_items ADD COLUMN pruned_started_realtime_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suite_items ADD COLUMN pruned_finished_realtime_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suite_items ADD COLUMN pruned_figures_json TEXT NOT NULL DEFAULT '[]';

DROP VIEW v_suites;
CREATE VIEW v_suites AS
SELECT s.suite_id, s.name, s.backend, s.cluster, s.seed, s.plan_hash,
       strftime('%Y-%m-%dT%H:%M:%SZ', s.started_realtime_ns / 1000000000, 'unixepoch') AS started,
       CASE s.finished_realtime_ns WHEN 0 THEN NULL
            ELSE round((s.finished_realtime_ns - s.started_realtime_ns) / 1e9, 3) END AS took_s,
       (SELECT count(*) FROM suite_items i WHERE i.suite = s.id) AS items,
       (SELECT count(*) FROM suite_items i WHERE i.suite = s.id AND i.state = 'done') AS done,
       (SELECT count(*) FROM suite_items i LEFT JOIN verdicts v ON v.run = i.run AND v.scope = 'run'
        WHERE i.suite = s.id AND coalesce(v.verdict, i.pruned_verdict) = 'pass') AS passed
FROM suites s
ORDER BY s.id DESC;

DROP VIEW v_suite_items;
CREATE VIEW v_suite_items AS
SELECT s.suite_id, i.item, i.name, i.scenario_name AS scenario, i.params_json AS params, i.repeat, i.state, i.attempts,
       r.run_id, coalesce(v.verdict, nullif(i.pruned_verdict, '')) AS verdict,
       CASE i.reason WHEN '' THEN coalesce(v.reason, i.pruned_reason) ELSE i.reason END AS reason,
       nullif(i.pruned_run_id, '') AS pruned_run_id
FROM suite_items i JOIN suites s ON s.id = i.suite
LEFT JOIN runs r ON r.id = i.run
LEFT JOIN verdicts v ON v.run = i.run AND v.scope = 'run'
ORDER BY s.id, i.item;
)sql";

constexpr std::array<std::string_view, kSchemaVersion> kMigrations{kTables, kEveryKindOfFault, kManyRuns, kPrunedItems};

} // namespace

std::string_view migration_to(std::int32_t version) {
    RB_CHECK(version >= 1 && version <= kSchemaVersion, "there is a migration for this version");
    return kMigrations[static_cast<std::size_t>(version - 1)];
}

} // namespace railbreak::record
