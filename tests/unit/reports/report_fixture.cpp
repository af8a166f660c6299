#include "tests/unit/reports/report_fixture.hpp"

#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::reports {

using record::RunData;

RunData good_run() {
    RunData data = record::fixture_run();
    data.verdicts = {{1, "run", "", "pass", "all 5 checks passed", {}, {}, {}},
                     {1, "teardown", "", "pass", "all 3 injections verified as restored", {}, {}, {}},
                     {1, "correctness", "ring", "pass", "10 iterations, every digest right on 8 ranks", {}, {}, {}},
                     {1, "fault", "half/ring", "pass", "seen in goodput", 238'700'000.0, 215'000'000.0, 263'000'000.0},
                     {1,
                      "expectation",
                      "optcc/degraded overhead_exclusive",
                      "pass",
                      "median overhead_exclusive of 3 iterations is 1.0782, not above the maximum of 1.1",
                      1.0782,
                      {},
                      1.1}};
    return data;
}

RunData bad_run() {
    RunData data = record::fixture_run();
    std::erase_if(data.iterations, [](const auto& row) { return row.algorithm == "optcc-shared"; });
    data.iterations.back().error = "rank 3 on h3: \xE2\x98\xA0 no progress \x1b[31mfor 5 s";
    iterations_of(data, "ring", "steady").at(1)->correct = false;
    data.injections.pop_back();
    data.injections[1].observed_at = 0;
    data.injections[1].measured_send_bits_per_s = 0;
    data.injections[1].measured_receive_bits_per_s = 0;
    data.injections[1].restored_at = 0;
    data.injections[1].error = "the class on the switch's port h3-rail0 still has the rate 250 Mbit/s after three "
                               "tries over netlink, although "
                               "each was acknowledged";
    data.verdicts = {
        {1, "run", "", "fail", "correctness of ring: steady iteration 2: wrong result (and 2 more)", {}, {}, {}},
        {1,
         "teardown",
         "half/optcc",
         "fail",
         "h3 rail0 was not verified as restored: the class on the switch's port h3-rail0 still has the rate 250 "
         "Mbit/s; "
         "run railbreak recover --all on that host",
         {},
         {},
         {}},
        {1, "correctness", "ring", "fail", "steady iteration 2: wrong result", {}, {}, {}},
        {1, "fault", "half/optcc", "inconclusive", "the fault was applied but never observed", {}, {}, {}},
        {1,
         "expectation",
         "tree/degraded vs_healthy",
         "inconclusive",
         "no data: no iteration was completed",
         {},
         {},
         1.1}};
    data.run.finished_realtime_ns = 0;
    return data;
}

RunData unfinished_run() {
    RunData data;
    data.run = record::fixture_run().run;
    data.run.finished_realtime_ns = 0;
    data.run.environment_json = "";
    return data;
}

std::vector<record::RunSummary> summaries() {
    const record::RunRow run = record::fixture_run().run;
    const record::RunSummary good{run.run_id,
                                  run.scenario_name,
                                  "lab",
                                  run.plan_hash,
                                  run.seed,
                                  8,
                                  run.started_realtime_ns,
                                  run.finished_realtime_ns,
                                  "pass",
                                  "all 17 checks passed",
                                  ""};
    record::RunSummary bad = good;
    bad.run_id = "20260131T120000Z-half-rate-nic-0001";
    bad.verdict = "inconclusive";
    bad.reason = "fault of half/optcc: the fault was applied but never observed, which takes more room than there is";
    bad.teardown_problem = "h3 rail0 was not verified as restored";
    record::RunSummary running = good;
    running.run_id = "20260131T110000Z-half-rate-nic-0002";
    running.finished_realtime_ns = 0;
    running.verdict = "";
    running.reason = "";
    return {good, bad, running};
}

} // namespace railbreak::reports
