// A run made by hand, spoiled in one way, and what must come of it: what the tests of the analysis share.
#pragma once

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analyse/analyse.hpp"
#include "scenarios/model.hpp"
#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::analyse {

inline std::vector<scenarios::AlgorithmSpec> named(std::initializer_list<const char*> names) {
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
inline Plan fixture_plan() {
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

inline void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

inline record::IterationRow& iteration(RunData& data, std::string_view algorithm, std::string_view phase,
                                       std::size_t index) {
    return *iterations_of(data, algorithm, phase).at(index);
}

inline void stop(RunData& data, ErrorKind kind) {
    data.events.push_back(stop_event(1, Nanoseconds(1), Error(kind, "it stopped").with("host", "h3")));
}

/// Spoils the fixture's run and judges it: the verdict that is asked for must be among the rows, and be the run's where
/// it is not a pass; judging again must give the same.
inline void judges_as_documented(const Case& c) {
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

inline std::string name_of(const ::testing::TestParamInfo<Case>& info) {
    return info.param.name;
}

} // namespace railbreak::analyse
