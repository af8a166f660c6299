#include "harness/analyse/analyse.hpp"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/statistics.hpp"
#include "scenarios/model.hpp"
#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::analyse {
namespace {

std::vector<scenarios::AlgorithmSpec> named(std::initializer_list<const char*> names) {
    std::vector<scenarios::AlgorithmSpec> algorithms;
    for (const char* name : names) {
        algorithms.push_back({.name = name, .label = name});
    }
    return algorithms;
}

using record::RunData;
using record::VerdictRow;
using scenarios::Metric;
using scenarios::Phase;
using scenarios::Plan;
using ::testing::HasSubstr;

// The plan that the hand-made run carried out.
Plan fixture_plan() {
    Plan plan;
    plan.scenario_name = "half-rate-nic";
    plan.cluster.hosts = 8;
    plan.cluster.rate = BitRate::bits_per_s(500'000'000);
    plan.workload.bytes = ByteCount::bytes(32U << 20);
    plan.workload.algorithms = named({"ring", "optcc", "optcc-shared"});
    scenarios::PlannedFault fault;
    fault.name = "half";
    fault.host = 3;
    fault.rate = BitRate::bits_per_s(250'000'000);
    plan.faults = {fault};
    scenarios::Expectation expectation;
    expectation.algorithm = "optcc";
    expectation.max = 1.10;
    plan.expectations = {expectation};
    return plan;
}

// A spoiled run and what must come of it.
struct Case {
    std::string name;
    std::function<void(RunData&, Plan&)> spoil;
    std::string scope;
    std::string subject;
    Verdict verdict = Verdict::kPass;
    std::string reason; // part of it
    ExitCode exit_code = ExitCode::kPass;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

record::IterationRow& iteration(RunData& data, std::string_view algorithm, std::string_view phase, std::size_t index) {
    return *iterations_of(data, algorithm, phase).at(index);
}

void stop(RunData& data, ErrorKind kind) {
    data.events.push_back(stop_event(1, Nanoseconds(1), Error(kind, "it stopped").with("host", "h3")));
}

class AnalyseCase : public ::testing::TestWithParam<Case> {};

TEST_P(AnalyseCase, JudgesAsDocumented) {
    const Case& c = GetParam();
    RunData data = record::fixture_run();
    Plan plan = fixture_plan();
    c.spoil(data, plan);
    const Analysis analysis = analyse(data, plan);

    std::string all;
    for (const VerdictRow& row : analysis.verdicts) {
        all += row.scope + " | " + row.subject + " | " + row.verdict + " | " + row.reason + "\n";
        EXPECT_FALSE(row.reason.empty());
        EXPECT_EQ(row.reason.find('\n'), std::string::npos);
        EXPECT_EQ(row.run, 1);
    }
    EXPECT_EQ(analysis.exit_code, c.exit_code) << all;
    const auto found = std::find_if(analysis.verdicts.begin(), analysis.verdicts.end(), [&](const VerdictRow& row) {
        return row.scope == c.scope && row.subject == c.subject && row.verdict == to_string(c.verdict) &&
               row.reason.find(c.reason) != std::string::npos;
    });
    EXPECT_NE(found, analysis.verdicts.end()) << "wanted: " << c.scope << " | " << c.subject << " | "
                                              << to_string(c.verdict) << " | " << c.reason << "\ngot:\n"
                                              << all;
    if (c.scope != "teardown" && c.verdict != Verdict::kPass) {
        EXPECT_EQ(analysis.verdict, c.verdict) << all;
        EXPECT_THAT(analysis.reason, HasSubstr(c.reason)) << "the run's reason is the check's";
    }
    EXPECT_EQ(analysis.verdicts.front().scope, "run");
    EXPECT_EQ(analysis.verdicts.front().verdict, to_string(analysis.verdict));

    const Analysis again = analyse(data, plan);
    EXPECT_EQ(again.verdicts, analysis.verdicts) << "the same rows give the same verdicts";
}

const std::vector<Case> kGood{
    {"Good", [](RunData&, Plan&) {}, "run", "", Verdict::kPass, "checks passed", ExitCode::kPass},
    {"GoodTeardown", [](RunData&, Plan&) {}, "teardown", "", Verdict::kPass, "all 3 injections", ExitCode::kPass},
    {"GoodFigures", [](RunData&, Plan&) {}, "fault", "half/ring", Verdict::kPass,
     "send 239.1 Mbit/s, receive 238.7 Mbit/s where a cap of 250 Mbit/s leaves 239.1 Mbit/s (taken as seen from",
     ExitCode::kPass},
};

const std::vector<Case> kCorrectness{
    {"WrongDigestOnOneRank",
     [](RunData& d, Plan&) {
         const auto id = iteration(d, "optcc", "degraded", 1).id;
         for (auto& row : d.rank_iterations) {
             if (row.iteration == id && row.rank == 5) {
                 row.digest = "0000";
             }
         }
     },
     "correctness", "optcc", Verdict::kFail, "degraded iteration 2: wrong result at rank 5 of 8", ExitCode::kFail},
    {"WrongFlagAlone", [](RunData& d, Plan&) { iteration(d, "ring", "steady", 0).correct = false; }, "correctness",
     "ring", Verdict::kFail, "steady iteration 1: wrong result", ExitCode::kFail},
    {"WrongInWarmup", [](RunData& d, Plan&) { iteration(d, "ring", "warmup", 0).correct = false; }, "correctness",
     "ring", Verdict::kFail, "warmup iteration 1: wrong result", ExitCode::kFail},
    {"IterationFailed",
     [](RunData& d, Plan&) { iteration(d, "optcc", "degraded", 2).error = "rank 3 on h3:\nno progress"; },
     "correctness", "optcc", Verdict::kFail, "degraded iteration 3 failed: rank 3 on h3: no progress", ExitCode::kFail},
    {"DigestMissing",
     [](RunData& d, Plan&) {
         const auto id = iteration(d, "ring", "steady", 0).id;
         std::erase_if(d.rank_iterations, [&](const auto& row) { return row.iteration == id && row.rank > 4; });
     },
     "correctness", "ring", Verdict::kInconclusive, "only 5 of 8 ranks", ExitCode::kInconclusive},
    {"NoReference",
     [](RunData& d, Plan&) {
         auto& row = iteration(d, "ring", "steady", 0);
         row.expected_digest.clear();
     },
     "correctness", "ring", Verdict::kInconclusive, "no expected digest", ExitCode::kInconclusive},
    {"IterationsMissing",
     [](RunData& d, Plan&) {
         std::erase_if(d.iterations, [](const auto& row) {
             return row.algorithm == "optcc-shared" && row.phase == "recovered" && row.iteration > 1;
         });
     },
     "correctness", "optcc-shared", Verdict::kInconclusive, "only 1 of 3 recovered iterations",
     ExitCode::kInconclusive},
    {"AlgorithmMissing", [](RunData&, Plan& p) { p.workload.algorithms.push_back({.name = "tree", .label = "tree"}); },
     "correctness", "tree", Verdict::kInconclusive, "no iteration was recorded", ExitCode::kInconclusive},
    {"AlgorithmDoesNotApply",
     [](RunData& d, Plan& p) {
         p.workload.algorithms.push_back({.name = "tree", .label = "tree"});
         d.events.push_back({.kind = "no_plan", .text = "ring: not this one"});
         d.events.push_back({.kind = "no_plan", .text = "tree: takes one rank a server"});
     },
     "correctness", "tree", Verdict::kInconclusive, "no iteration was recorded: takes one rank a server",
     ExitCode::kInconclusive},
};

const std::vector<Case> kEvidence{
    {"NeverOrdered", [](RunData& d, Plan&) { d.injections.erase(d.injections.begin()); }, "fault", "half/ring",
     Verdict::kInconclusive, "never ordered", ExitCode::kInconclusive},
    {"NotApplied",
     [](RunData& d, Plan&) {
         d.injections[0].applied_at = 0;
         d.injections[0].observed_at = 0;
         d.injections[0].error = injection_error(Error(ErrorKind::kHarness, "cannot change the class"));
     },
     "fault", "half/ring", Verdict::kInconclusive, "not applied: cannot change the class", ExitCode::kInconclusive},
    {"NeverObserved", [](RunData& d, Plan&) { d.injections[1].observed_at = 0; }, "fault", "half/optcc",
     Verdict::kInconclusive, "never observed", ExitCode::kInconclusive},
    {"Refused",
     [](RunData& d, Plan&) {
         auto& row = d.injections[0];
         row.applied_at = row.observed_at = row.reverted_at = row.restored_at = 0;
         row.error = injection_error(Error(ErrorKind::kRefused, "foreign qdisc on rail0"));
         std::erase_if(d.iterations, [](const auto& i) { return i.phase == "degraded"; });
     },
     "fault", "half/ring", Verdict::kRefused, "foreign qdisc on rail0", ExitCode::kRefused},
    {"TooFastForTheCap", [](RunData& d, Plan&) { d.injections[0].measured_receive_bits_per_s = 478'000'000; }, "fault",
     "half/ring", Verdict::kInconclusive, "fault not seen in goodput: send 239.1 Mbit/s, receive 478",
     ExitCode::kInconclusive},
    {"TooSlowForTheCap", [](RunData& d, Plan&) { d.injections[0].measured_send_bits_per_s = 200'000'000; }, "fault",
     "half/ring", Verdict::kInconclusive, "fault not seen in goodput", ExitCode::kInconclusive},
    {"GoodputNotMeasured", [](RunData& d, Plan&) { d.injections[0].measured_send_bits_per_s = 0; }, "fault",
     "half/ring", Verdict::kInconclusive, "send was not measured", ExitCode::kInconclusive},
    {"OneDirectionNeedsOnlyItsOwnGoodput",
     [](RunData& d, Plan&) {
         d.injections[0].direction = "receive";
         d.injections[0].measured_send_bits_per_s = 478'000'000;
     },
     "fault", "half/ring", Verdict::kPass, "seen in goodput: receive", ExitCode::kPass},
    {"JumboFramesLeaveMore",
     [](RunData& d, Plan& p) {
         p.cluster.mtu_bytes = 9000;
         for (auto& row : d.injections) {
             row.measured_send_bits_per_s = row.measured_receive_bits_per_s = 248'000'000;
         }
     },
     "fault", "half/ring", Verdict::kPass, "leaves 248.2 Mbit/s", ExitCode::kPass},
    {"ACapWithinAnIterationMayCarryLess",
     [](RunData& d, Plan& p) {
         p.faults[0].at_iteration = 1;
         d.injections[0].measured_send_bits_per_s = d.injections[0].measured_receive_bits_per_s = 150'000'000;
     },
     "fault", "half/ring", Verdict::kPass, "seen in goodput", ExitCode::kPass},
    {"ACapWithinAnIterationMayNotCarryMore",
     [](RunData& d, Plan& p) {
         p.faults[0].at_iteration = 1;
         d.injections[0].measured_send_bits_per_s = 300'000'000;
     },
     "fault", "half/ring", Verdict::kInconclusive, "fault not seen in goodput", ExitCode::kInconclusive},
    {"AnIdlePortProvesNothing",
     [](RunData& d, Plan& p) {
         p.faults[0].at_iteration = 1;
         d.injections[0].measured_send_bits_per_s = 50'000'000;
     },
     "fault", "half/ring", Verdict::kInconclusive, "fault not seen in goodput", ExitCode::kInconclusive},
    {"LinkDownNeedsNoGoodput",
     [](RunData& d, Plan& p) {
         p.faults[0].kind = scenarios::FaultKind::kLinkDown;
         for (auto& row : d.injections) {
             row.kind = "link_down";
             row.measured_send_bits_per_s = 0;
         }
         std::erase_if(d.bounds, [](const auto& b) { return b.phase == "degraded"; });
         p.expectations.clear();
     },
     "fault", "half/ring", Verdict::kPass, "observed 1.377 ms after", ExitCode::kPass},
};

/// The degraded phase of optcc ends with an error in its second iteration, 700 ms after a fault began to act in it.
void expect_error(RunData& data, Plan& plan) {
    plan.expectations = {{.algorithm = "optcc", .outcome = scenarios::Outcome::kError}};
    auto& failed = iteration(data, "optcc", "degraded", 1);
    failed.error = "rank 2 ended: killed by signal 9 (SIGKILL)";
    failed.correct = false;
    failed.duration_ns = 900'000'000;
    const std::int64_t id = failed.id;
    const std::int64_t later = iteration(data, "optcc", "degraded", 2).id;
    auto& injection = data.injections.at(1);
    injection.kind = "kill";
    injection.applied_at = injection.observed_at = failed.started_at + 200'000'000;
    std::erase_if(data.rank_iterations, [&](const auto& row) { return row.iteration == id || row.iteration == later; });
    std::erase_if(data.iterations, [&](const auto& row) { return row.id == later; });
}

const std::vector<Case> kOutcomes{
    {"ExpectedErrorPasses", expect_error, "run", "", Verdict::kPass, "checks passed", ExitCode::kPass},
    {"ExpectedErrorIsTold", expect_error, "expectation", "optcc/degraded outcome", Verdict::kPass,
     "degraded iteration 2 ended with an error 700 ms after a fault began to act in it: rank 2 ended: killed",
     ExitCode::kPass},
    {"ExpectedErrorIsNoWrongResult", expect_error, "correctness", "optcc", Verdict::kPass, "8 iterations",
     ExitCode::kPass},
    {"ExpectedErrorInTime",
     [](RunData& d, Plan& p) {
         expect_error(d, p);
         p.expectations[0].within = std::chrono::milliseconds(700);
     },
     "expectation", "optcc/degraded outcome", Verdict::kPass, "700 ms", ExitCode::kPass},
    {"ExpectedErrorTooLate",
     [](RunData& d, Plan& p) {
         expect_error(d, p);
         p.expectations[0].within = std::chrono::milliseconds(699);
     },
     "expectation", "optcc/degraded outcome", Verdict::kFail, "700 ms after a fault began to act in it, later than 699",
     ExitCode::kFail},
    {"ExpectedErrorOfAFaultThatActedBefore",
     [](RunData& d, Plan& p) {
         expect_error(d, p);
         d.injections[1].applied_at = iteration(d, "optcc", "degraded", 1).started_at - 1;
     },
     "expectation", "optcc/degraded outcome", Verdict::kPass, "900 ms after", ExitCode::kPass},
    {"ExpectedErrorThatDidNotCome",
     [](RunData&, Plan& p) { p.expectations = {{.outcome = scenarios::Outcome::kError}}; }, "expectation",
     "ring/degraded outcome", Verdict::kFail, "all 3 degraded iterations ended well", ExitCode::kFail},
    {"ErrorWithoutExpectationFails",
     [](RunData& d, Plan& p) {
         expect_error(d, p);
         p.expectations.clear();
     },
     "correctness", "optcc", Verdict::kFail, "rank 2 ended", ExitCode::kFail},
    {"ErrorOfAnotherPhaseFails",
     [](RunData& d, Plan& p) {
         expect_error(d, p);
         iteration(d, "optcc", "recovered", 0).error = "rank 2 ended";
     },
     "correctness", "optcc", Verdict::kFail, "recovered iteration 1 failed", ExitCode::kFail},
    {"ErrorOfAnotherAlgorithmFails",
     [](RunData& d, Plan& p) {
         expect_error(d, p);
         iteration(d, "ring", "degraded", 0).error = "rank 2 ended";
     },
     "correctness", "ring", Verdict::kFail, "degraded iteration 1 failed", ExitCode::kFail},
};

const std::vector<Case> kKinds{
    {"AFaultThatIsOffNeedsNoEvidence",
     [](RunData&, Plan& p) {
         p.faults.push_back({.id = 1, .name = "zero", .kind = scenarios::FaultKind::kLoss, .host = 1});
     },
     "fault", "zero/ring", Verdict::kPass, "off", ExitCode::kPass},
    {"AFaultOfAnyKindNeedsEvidence",
     [](RunData&, Plan& p) {
         p.faults.push_back({.id = 1, .name = "stop", .kind = scenarios::FaultKind::kPause, .host = 1});
     },
     "fault", "stop/ring", Verdict::kInconclusive, "never ordered", ExitCode::kInconclusive},
    {"CollateralIsADoubt",
     [](RunData& d, Plan&) { d.injections[0].collateral_json = R"(["MTU of rail1 went from \"1500\" to \"1400\""])"; },
     "fault", "half/ring collateral", Verdict::kInconclusive, "MTU of rail1 went from", ExitCode::kInconclusive},
    {"ACapBesideALossMayCarryLess",
     [](RunData& d, Plan& p) {
         p.faults.push_back({.id = 1,
                             .name = "l",
                             .kind = scenarios::FaultKind::kDelay,
                             .host = 3,
                             .strength = {.delay = Nanoseconds(1)}});
         for (const auto& row : std::vector(d.injections)) {
             d.injections.push_back(row);
             d.injections.back().fault = 1;
             d.injections.back().kind = "delay";
         }
         d.injections[0].measured_send_bits_per_s = 10'000'000;
     },
     "fault", "half/ring", Verdict::kPass, "seen in goodput: send 10 Mbit/s", ExitCode::kPass},
    {"ARankThatIsNotRestoredIsNamed",
     [](RunData& d, Plan&) {
         d.injections[0].rank = 3;
         d.injections[0].nic = -1;
         d.injections[0].restored_at = 0;
     },
     "teardown", "half/ring", Verdict::kFail, "h3 rank 3 was not verified as restored", ExitCode::kTeardown},
};

const std::vector<Case> kBounds{
    {"BeatsTheFluidBound",
     [](RunData& d, Plan&) {
         auto& row = iteration(d, "optcc", "degraded", 0);
         row.duration_ns = static_cast<std::int64_t>(
             0.994 * static_cast<double>(record::binding_bound(d, "optcc", "degraded", "fluid")->time_ns));
     },
     "bound", "optcc/degraded", Verdict::kInvalid, "0.9940 of the fluid bound", ExitCode::kInconclusive},
    {"BeatsTheFluidBoundWithinTheTolerance",
     [](RunData& d, Plan&) {
         auto& row = iteration(d, "optcc", "degraded", 0);
         row.duration_ns = static_cast<std::int64_t>(
             0.996 * static_cast<double>(record::binding_bound(d, "optcc", "degraded", "fluid")->time_ns));
     },
     "bound", "optcc/degraded", Verdict::kPass, "0.9960", ExitCode::kPass},
    {"ASmallMessageMayBeatItByTheShapersBurst",
     [](RunData& d, Plan&) {
         d.run.bytes = 2 << 20;
         auto& row = iteration(d, "ring", "steady", 0);
         row.duration_ns = static_cast<std::int64_t>(
             0.989 * static_cast<double>(record::binding_bound(d, "ring", "steady", "fluid")->time_ns));
     },
     "bound", "ring/steady", Verdict::kPass, "0.9890", ExitCode::kPass},
    {"BeatsOnlyTheExclusiveBound",
     [](RunData& d, Plan&) {
         for (auto& bound : d.bounds) {
             bound.time_ns *= bound.model == "exclusive" ? 2 : 1;
         }
     },
     "run", "", Verdict::kPass, "passed", ExitCode::kPass},
    {"InvalidAndFailed",
     [](RunData& d, Plan&) {
         iteration(d, "optcc", "degraded", 0).duration_ns = 1000;
         iteration(d, "ring", "steady", 0).error = "rank 2 died";
     },
     "bound", "optcc/degraded", Verdict::kInvalid, "beats the bound", ExitCode::kFail},
    {"NoBound",
     [](RunData& d, Plan& p) {
         d.bounds.clear();
         p.expectations.clear();
     },
     "bound", "ring/steady", Verdict::kInconclusive, "no bound", ExitCode::kInconclusive},
};

const std::vector<Case> kExpectations{
    {"LimitHeld", [](RunData&, Plan&) {}, "expectation", "optcc/degraded overhead_exclusive", Verdict::kPass,
     "median overhead_exclusive of 3 iterations is 1.0782, not above the maximum of 1.1", ExitCode::kPass},
    {"AboveTheMaximum", [](RunData&, Plan& p) { p.expectations[0].max = 1.05; }, "expectation",
     "optcc/degraded overhead_exclusive", Verdict::kFail, "is 1.0782, above the maximum of 1.05", ExitCode::kFail},
    {"BelowTheMinimum",
     [](RunData&, Plan& p) {
         p.expectations[0] = {"ring", Phase::kDegraded, Metric::kVsHealthy, 2.5, std::nullopt};
     },
     "expectation", "ring/degraded vs_healthy", Verdict::kFail, "below the minimum of 2.5", ExitCode::kFail},
    {"EveryAlgorithm",
     [](RunData&, Plan& p) {
         p.expectations[0] = {std::nullopt, Phase::kRecovered, Metric::kVsSteady, 0.97, 1.03};
     },
     "expectation", "optcc-shared/recovered vs_steady", Verdict::kPass, "not below the minimum of 0.97, not above",
     ExitCode::kPass},
    {"NoSamples",
     [](RunData& d, Plan& p) {
         p.expectations[0].algorithm = "tree";
         static_cast<void>(d);
     },
     "expectation", "tree/degraded overhead_exclusive", Verdict::kInconclusive, "no data", ExitCode::kInconclusive},
    {"NoHealthyRing",
     [](RunData& d, Plan& p) {
         p.expectations[0].metric = Metric::kVsHealthy;
         p.workload.algorithms = named({"optcc", "optcc-shared"});
         std::erase_if(d.iterations, [](const auto& i) { return i.algorithm == "ring"; });
     },
     "expectation", "optcc/degraded vs_healthy", Verdict::kInconclusive, "no data: there is no steady phase",
     ExitCode::kInconclusive},
    {"WarmupIsNotJudgedByTime", [](RunData& d, Plan&) { iteration(d, "ring", "warmup", 0).duration_ns = 1; }, "run", "",
     Verdict::kPass, "", ExitCode::kPass},
};

const std::vector<Case> kTeardown{
    {"NotRestored",
     [](RunData& d, Plan&) {
         d.injections[2].restored_at = 0;
         d.injections[2].error = "class still at 250 Mbit/s";
     },
     "teardown", "half/optcc-shared", Verdict::kFail,
     "h3 rail0 was not verified as restored: class still at 250 Mbit/s; run railbreak recover", ExitCode::kTeardown},
    {"NotRestoredLeavesTheVerdict", [](RunData& d, Plan&) { d.injections[2].restored_at = 0; }, "run", "",
     Verdict::kPass, "passed", ExitCode::kTeardown},
    {"TeardownStop", [](RunData& d, Plan&) { stop(d, ErrorKind::kTeardown); }, "teardown", "controller", Verdict::kFail,
     "it stopped [host=h3]", ExitCode::kTeardown},
};

const std::vector<Case> kStops{
    {"StoppedByOutcome", [](RunData& d, Plan&) { stop(d, ErrorKind::kOutcome); }, "run", "", Verdict::kFail,
     "it stopped [host=h3]", ExitCode::kFail},
    {"StoppedByHarness",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kHarness);
         std::erase_if(d.iterations, [](const auto& i) { return i.algorithm == "optcc-shared"; });
     },
     "run", "", Verdict::kAborted, "it stopped [host=h3] (and ", ExitCode::kAborted},
    {"StoppedByHarnessInAnIteration",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kHarness);
         iteration(d, "ring", "degraded", 2).error = "interrupted by SIGINT";
     },
     "run", "", Verdict::kAborted, "it stopped [host=h3] (and 1 more)", ExitCode::kAborted},
    {"StoppedByOutcomeInAnIteration",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kOutcome);
         stop(d, ErrorKind::kTeardown);
         iteration(d, "ring", "degraded", 2).error = "rank 3 died";
     },
     "run", "", Verdict::kFail, "it stopped [host=h3] (and 1 more)", ExitCode::kTeardown},
    {"StoppedByRefusal",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kRefused);
         d.iterations.clear();
     },
     "run", "", Verdict::kRefused, "it stopped [host=h3] (and ", ExitCode::kRefused},
    {"StoppedAfterAWrongResult",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kHarness);
         iteration(d, "ring", "steady", 0).correct = false;
     },
     "correctness", "ring", Verdict::kFail, "wrong result", ExitCode::kFail},
};

const std::vector<Case> kWithoutFaults{
    {"NoFaults",
     [](RunData& d, Plan& p) {
         p.faults.clear();
         p.expectations.clear();
         d.injections.clear();
         std::erase_if(d.iterations, [](const auto& i) { return i.phase == "degraded" || i.phase == "recovered"; });
     },
     "run", "", Verdict::kPass, "passed", ExitCode::kPass},
    {"NothingAtAll",
     [](RunData& d, Plan& p) {
         d = RunData{};
         d.run.id = 1;
         p = Plan{};
     },
     "run", "", Verdict::kInconclusive, "nothing was judged", ExitCode::kInconclusive},
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
    return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Good, AnalyseCase, ::testing::ValuesIn(kGood), name_of);
INSTANTIATE_TEST_SUITE_P(Correctness, AnalyseCase, ::testing::ValuesIn(kCorrectness), name_of);
INSTANTIATE_TEST_SUITE_P(Evidence, AnalyseCase, ::testing::ValuesIn(kEvidence), name_of);
INSTANTIATE_TEST_SUITE_P(Bounds, AnalyseCase, ::testing::ValuesIn(kBounds), name_of);
INSTANTIATE_TEST_SUITE_P(Outcomes, AnalyseCase, ::testing::ValuesIn(kOutcomes), name_of);
INSTANTIATE_TEST_SUITE_P(Kinds, AnalyseCase, ::testing::ValuesIn(kKinds), name_of);
INSTANTIATE_TEST_SUITE_P(Expectations, AnalyseCase, ::testing::ValuesIn(kExpectations), name_of);
INSTANTIATE_TEST_SUITE_P(Teardown, AnalyseCase, ::testing::ValuesIn(kTeardown), name_of);
INSTANTIATE_TEST_SUITE_P(Stops, AnalyseCase, ::testing::ValuesIn(kStops), name_of);
INSTANTIATE_TEST_SUITE_P(WithoutFaults, AnalyseCase, ::testing::ValuesIn(kWithoutFaults), name_of);

TEST(Outcome, OfARunThatWasBrokenOffIsUnknown) {
    RunData data = record::fixture_run();
    Plan plan = fixture_plan();
    plan.expectations = {{.algorithm = "optcc", .outcome = scenarios::Outcome::kError}};
    stop(data, ErrorKind::kHarness);
    const Analysis analysis = analyse(data, plan);
    EXPECT_EQ(analysis.verdict, Verdict::kAborted);
    EXPECT_EQ(analysis.verdicts.back().verdict, "inconclusive");
    EXPECT_THAT(analysis.verdicts.back().reason, HasSubstr("broken off before an error came"));
}

TEST(PayloadShare, IsWhatTcpLeavesOfAFrame) {
    EXPECT_DOUBLE_EQ(payload_share(1500), 1448.0 / 1514.0);
    EXPECT_DOUBLE_EQ(payload_share(9000), 8948.0 / 9014.0);
}

TEST(Verdicts, HaveTheDocumentedOrderAndWords) {
    constexpr std::array kFromBestToWorst{Verdict::kPass,    Verdict::kInconclusive, Verdict::kRefused,
                                          Verdict::kAborted, Verdict::kFail,         Verdict::kInvalid};
    EXPECT_TRUE(std::is_sorted(kFromBestToWorst.begin(), kFromBestToWorst.end()));
    for (const Verdict verdict : kFromBestToWorst) {
        EXPECT_EQ(parse_verdict(to_string(verdict)), verdict);
    }
    EXPECT_EQ(parse_verdict("passed"), std::nullopt);
}

TEST(ExitCodes, FollowTheTable) {
    EXPECT_EQ(exit_code_of(ErrorKind::kUsage), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of(ErrorKind::kInput), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of(ErrorKind::kRefused), ExitCode::kRefused);
    EXPECT_EQ(exit_code_of(ErrorKind::kOutcome), ExitCode::kFail);
    EXPECT_EQ(exit_code_of(ErrorKind::kHarness), ExitCode::kAborted);
    EXPECT_EQ(exit_code_of(ErrorKind::kTeardown), ExitCode::kTeardown);
    EXPECT_EQ(exit_code_of(ErrorKind::kInternal), ExitCode::kInternal);
    EXPECT_EQ(static_cast<int>(ExitCode::kPass), 0);
    EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 64);
    EXPECT_EQ(static_cast<int>(ExitCode::kInternal), 70);
    EXPECT_EQ(exit_code_of(std::vector<VerdictRow>{}), ExitCode::kInconclusive);
}

} // namespace
} // namespace railbreak::analyse
