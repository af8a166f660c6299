// Errors that are expected, and faults of every kind.
#include "tests/unit/analyse/analyse_case.hpp"

namespace railbreak::analyse {
namespace {

class FaultCase : public ::testing::TestWithParam<Case> {};

TEST_P(FaultCase, JudgesAsDocumented) {
    judges_as_documented(GetParam());
}

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

INSTANTIATE_TEST_SUITE_P(Outcomes, FaultCase, ::testing::ValuesIn(kOutcomes), name_of);
INSTANTIATE_TEST_SUITE_P(Kinds, FaultCase, ::testing::ValuesIn(kKinds), name_of);

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

} // namespace
} // namespace railbreak::analyse
