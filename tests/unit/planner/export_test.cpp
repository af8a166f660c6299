#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "harness/planner/export.hpp"
#include "harness/planner/schedule_json.hpp"
#include "tests/unit/planner/msccl_checker.hpp"
#include "tests/unit/planner/simulated.hpp"

namespace railbreak::planner::test {

namespace {

using collective::PortModel;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string exported(Format format, const Simulated& sample) {
    std::ostringstream out;
    const Result<Notes> notes = export_plan(format, sample.plan(), out);
    EXPECT_TRUE(notes) << notes.error().to_line();
    return out.str();
}

std::int64_t nanoseconds(const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
}

} // namespace

TEST(ChromeTrace, HasEveryFlowAtBothEndsAtItsNanosecond) {
    const Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    const nlohmann::json trace = nlohmann::json::parse(exported(Format::kChromeTrace, sample));
    std::map<std::pair<int, std::int64_t>, const collective::SimulatedFlow*> sends;
    for (const collective::SimulatedFlow& flow : sample.flows) {
        sends[{flow.from, flow.send_index}] = &flow;
    }
    std::map<std::pair<int, int>, std::string> names;
    std::map<std::pair<int, int>, std::int64_t> free_at;
    std::size_t events = 0;
    for (const nlohmann::json& event : trace["traceEvents"]) {
        const std::pair<int, int> thread(event["pid"], event.value("tid", 0));
        if (event["name"] == "thread_name") {
            names[thread] = event["args"]["name"];
        }
        if (event["ph"] != "X") {
            continue;
        }
        ++events;
        const nlohmann::json& args = event["args"];
        const collective::SimulatedFlow& flow = *sends.at({args["from"], args["send_index"]});
        EXPECT_EQ(nanoseconds(event["ts"]), flow.start.count());
        EXPECT_EQ(nanoseconds(event["dur"]), (flow.end - flow.start).count());
        EXPECT_EQ(args["offset"], flow.slice.offset);
        const bool sending = thread.first == flow.from;
        EXPECT_EQ(thread.first, sending ? flow.from : flow.to);
        EXPECT_THAT(names.at(thread), HasSubstr(sending ? "send" : "receive"));
        // A port side has one flow at a time, and its events come in order of time.
        EXPECT_GE(flow.start.count(), free_at[thread]);
        free_at[thread] = flow.end.count();
    }
    EXPECT_EQ(events, 2 * sample.flows.size());
    EXPECT_EQ(names.size(), 10U);
}

TEST(ChromeTrace, NamesServersAndMarksBoundAndMakespan) {
    const Simulated sample = simulated_optcc(PortModel::kFluid, true);
    const nlohmann::json trace = nlohmann::json::parse(exported(Format::kChromeTrace, sample));
    EXPECT_EQ(trace["displayTimeUnit"], "ns");
    EXPECT_EQ(trace["otherData"]["schedule"], sample.schedule->name());
    std::map<std::string, std::int64_t> marks;
    std::string straggler;
    for (const nlohmann::json& event : trace["traceEvents"]) {
        if (event["ph"] == "i") {
            marks[event["name"]] = nanoseconds(event["ts"]);
        }
        if (event["name"] == "process_name" && event["pid"] == 4) {
            straggler = event["args"]["name"];
        }
    }
    EXPECT_EQ(straggler, "server 4 (slowdown 2)");
    EXPECT_EQ(marks.at("makespan"), sample.makespan.count());
    EXPECT_EQ(marks.at("lower bound (theorem 6)"), sample.bound->time.count());
}

TEST(ExportPlan, EveryFormIsWhatItSays) {
    const Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    EXPECT_THAT(exported(Format::kGantt, sample), StartsWith("<?xml version=\"1.0\"?>\n<svg "));
    std::istringstream json(exported(Format::kJson, sample));
    EXPECT_TRUE(read_schedule_json(json));
    EXPECT_EQ(what_is_wrong_with_program(exported(Format::kMscclXml, sample)), "");
}

TEST(ExportPlan, TellsWhenAProgramIsTooLargeForARuntime) {
    Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    sample.schedule = collective::make_ring(200, 200);
    std::ostringstream out;
    const Result<Notes> notes = export_plan(Format::kMscclXml, sample.plan(), out);
    ASSERT_TRUE(notes);
    ASSERT_EQ(notes->size(), 1U);
    EXPECT_THAT(notes->front(), HasSubstr("796 steps in a thread block (at most 256)"));
}

TEST(ExportPlan, AScheduleThatCannotBeSimulatedIsAnErrorAndLeavesNoFile) {
    Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    sample.options.topology = collective::healthy_topology(4);
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("railbreak-export-" + std::to_string(::getpid()));
    for (const Format format : {Format::kGantt, Format::kChromeTrace}) {
        const Result<Notes> notes = export_plan(format, sample.plan(), path);
        ASSERT_FALSE(notes);
        EXPECT_EQ(notes.error().kind(), ErrorKind::kInput);
        EXPECT_FALSE(std::filesystem::exists(path));
    }
}

TEST(ExportPlan, FormatsHaveNames) {
    for (const Format format : {Format::kGantt, Format::kJson, Format::kMscclXml, Format::kChromeTrace}) {
        EXPECT_EQ(parse_format(to_string(format)), format);
    }
    const Result<Format> unknown = parse_format("pdf");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kUsage);
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("svg, json, msccl-xml, chrome-trace"));
}

} // namespace railbreak::planner::test
