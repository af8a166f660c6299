#include "harness/analyse/analyse.hpp"

#include "harness/record/statistics.hpp"
#include "tests/unit/analyse/analyse_case.hpp"

namespace railbreak::analyse {
namespace {

class AnalyseCase : public ::testing::TestWithParam<Case> {};

TEST_P(AnalyseCase, JudgesAsDocumented) {
    judges_as_documented(GetParam());
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
    {"StoppedAfterAWrongResultIsToldFirst",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kHarness);
         iteration(d, "ring", "steady", 0).correct = false;
     },
     "run", "", Verdict::kFail, "it stopped [host=h3]; before that: correctness of ring: ", ExitCode::kFail},
    {"StoppedAfterABeatenBound",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kHarness);
         iteration(d, "ring", "steady", 0).duration_ns /= 2;
     },
     "run", "", Verdict::kAborted, "it stopped [host=h3] (and ", ExitCode::kAborted},
    {"TeardownStopBeforeAnyIteration",
     [](RunData& d, Plan&) {
         stop(d, ErrorKind::kTeardown);
         d.iterations.clear();
     },
     "run", "", Verdict::kInconclusive, "it stopped [host=h3] (and ", ExitCode::kTeardown},
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

INSTANTIATE_TEST_SUITE_P(Good, AnalyseCase, ::testing::ValuesIn(kGood), name_of);
INSTANTIATE_TEST_SUITE_P(Correctness, AnalyseCase, ::testing::ValuesIn(kCorrectness), name_of);
INSTANTIATE_TEST_SUITE_P(Evidence, AnalyseCase, ::testing::ValuesIn(kEvidence), name_of);
INSTANTIATE_TEST_SUITE_P(Bounds, AnalyseCase, ::testing::ValuesIn(kBounds), name_of);
INSTANTIATE_TEST_SUITE_P(Expectations, AnalyseCase, ::testing::ValuesIn(kExpectations), name_of);
INSTANTIATE_TEST_SUITE_P(Teardown, AnalyseCase, ::testing::ValuesIn(kTeardown), name_of);
INSTANTIATE_TEST_SUITE_P(Stops, AnalyseCase, ::testing::ValuesIn(kStops), name_of);
INSTANTIATE_TEST_SUITE_P(WithoutFaults, AnalyseCase, ::testing::ValuesIn(kWithoutFaults), name_of);

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
    EXPECT_EQ(exit_code_of(std::vector<VerdictRow>{}), ExitCode::kAborted) << "it did not reach its end";
}

} // namespace
} // namespace railbreak::analyse
