#include <regex>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <pugixml.hpp>

#include "harness/planner/listed_schedule.hpp"
#include "harness/planner/msccl_chunks.hpp"
#include "harness/planner/msccl_xml.hpp"
#include "tests/unit/planner/msccl_checker.hpp"
#include "tests/unit/planner/sample_schedules.hpp"

namespace railbreak::planner::test {

namespace {

using collective::OptccPlan;
using collective::Schedule;

std::string program(const Schedule& schedule) {
    std::ostringstream out;
    const Result<MscclSummary> summary = write_msccl_xml(schedule, out);
    EXPECT_TRUE(summary) << summary.error().to_line();
    return out.str();
}

/// "s0 rrc1 s1 r0": the steps of the only thread block of a gpu.
std::string steps_of(const std::string& xml, int gpu) {
    pugi::xml_document document;
    EXPECT_TRUE(document.load_string(xml.c_str()));
    const pugi::xml_node node =
        document.child("algo").find_child_by_attribute("gpu", "id", std::to_string(gpu).c_str());
    std::string steps;
    for (const pugi::xml_node step : node.child("tb").children("step")) {
        steps +=
            std::string(steps.empty() ? "" : " ") + step.attribute("type").value() + step.attribute("srcoff").value();
    }
    EXPECT_FALSE(node.child("tb").next_sibling("tb"));
    return steps;
}

/// The program with nothing but the order of its thread blocks.
std::string without_waits(const std::string& xml) {
    pugi::xml_document document;
    EXPECT_TRUE(document.load_string(xml.c_str()));
    for (const pugi::xpath_node& nop : document.select_nodes("//step[@type='nop']")) {
        nop.node().parent().remove_child(nop.node());
    }
    for (const pugi::xpath_node& block : document.select_nodes("//tb")) {
        int number = 0;
        for (pugi::xml_node step : block.node().children("step")) {
            step.attribute("s") = number++;
            step.attribute("depid") = -1;
            step.attribute("deps") = -1;
            step.attribute("hasdep") = 0;
        }
    }
    std::ostringstream out;
    document.save(out);
    return out.str();
}

} // namespace

TEST(MscclXml, RingOfTwoIsOneThreadBlockWithFourSteps) {
    const std::string xml = program(*collective::make_ring(2, 8));
    EXPECT_EQ(steps_of(xml, 0), "s0 rrc1 s1 r0");
    EXPECT_EQ(steps_of(xml, 1), "s1 rrc0 s0 r1");
    EXPECT_EQ(what_is_wrong_with_program(xml), "");
}

TEST(MscclXml, EveryPlanIsAnAllReduceAsAProgram) {
    for (const auto& schedule : sample_schedules()) {
        SCOPED_TRACE(schedule->name());
        EXPECT_EQ(what_is_wrong_with_program(program(*schedule)), "");
    }
}

TEST(MscclXml, LongMessagesAreCutIntoStepsThatARuntimeTakes) {
    // Sections of one part and of 100 parts of the vector: the checker refuses steps of more than 71 chunks.
    const auto schedule = optcc(OptccPlan::kBalanced, 3, 100, 2 * 100 * 101);
    std::ostringstream out;
    const Result<MscclSummary> summary = write_msccl_xml(*schedule, out);
    ASSERT_TRUE(summary) << summary.error().to_line();
    EXPECT_EQ(summary->chunk_elements, 1);
    EXPECT_FALSE(summary->fits_runtime());
    const auto smaller = optcc(OptccPlan::kBalanced, 3, 75, 2 * 75 * 76);
    EXPECT_NE(program(*smaller).find("cnt=\"71\""), std::string::npos);
}

TEST(MscclXml, ASmallPlanFitsARuntime) {
    std::ostringstream out;
    const Result<MscclSummary> summary = write_msccl_xml(*collective::make_ring(4, 1 << 20), out);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->chunks, 4);
    EXPECT_EQ(summary->chunk_elements, 1 << 18);
    EXPECT_EQ(summary->most_blocks, 1);
    EXPECT_EQ(summary->most_steps, 12);
    EXPECT_TRUE(summary->fits_runtime());
}

TEST(MscclXml, TheCheckerSeesDamage) {
    const std::string good = program(*optcc(OptccPlan::kUniform, 5, 2, 8));
    ASSERT_EQ(what_is_wrong_with_program(good), "");
    EXPECT_NE(what_is_wrong_with_program(without_waits(good)).find(" race"), std::string::npos);
    for (const auto& [from, to] :
         {std::pair("type=\"rrc\"", "type=\"r\""), std::pair("type=\"r\"", "type=\"rrc\""),
          std::pair("srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\"", "srcoff=\"1\" dstbuf=\"i\" dstoff=\"1\"")}) {
        std::string bad = good;
        const std::size_t at = bad.find(from);
        ASSERT_NE(at, std::string::npos);
        bad.replace(at, std::string(from).size(), to);
        EXPECT_NE(what_is_wrong_with_program(bad), "") << from;
    }
}

TEST(MscclXml, NamesTheVectorLengthsThatWouldDo) {
    const std::int64_t elements = 1'000'003;
    struct Case {
        OptccPlan plan;
        std::int64_t segments;
        std::int64_t parts;
    };
    for (const Case& c : {Case{OptccPlan::kUniform, 16, 64}, Case{OptccPlan::kBalanced, 8, 8 * 9 * 4}}) {
        const auto make = [&](std::int64_t length) { return optcc(c.plan, 5, c.segments, length); };
        std::ostringstream out;
        const Result<MscclSummary> refused = write_msccl_xml(*make(elements), out);
        ASSERT_FALSE(refused);
        EXPECT_EQ(out.str(), "");
        EXPECT_EQ(refused.error().kind(), ErrorKind::kInput);
        const std::string& advice = refused.error().advice();
        std::smatch lengths;
        ASSERT_TRUE(std::regex_search(advice, lengths, std::regex("multiple of ([0-9]+): take ([0-9]+) or ([0-9]+)")))
            << refused.error().to_line();
        EXPECT_EQ(std::stoll(lengths[1]), c.parts);
        for (const std::size_t i : {2U, 3U}) {
            const auto chunk = common_chunk(*make(std::stoll(lengths[i])), kMostMscclChunks);
            ASSERT_TRUE(chunk) << lengths[i];
            EXPECT_EQ(std::stoll(lengths[i]) / *chunk, c.parts);
        }
    }
}

TEST(MscclXml, ADeadlockIsAnError) {
    collective::Step step{.peer = 1, .slice = {0, 4}};
    step.after[0] = 1;
    collective::Step back = step;
    back.peer = 0;
    std::vector<LaneQueues> queues(2);
    queues[0].sends = queues[0].receives = {step};
    queues[1].sends = queues[1].receives = {back};
    const ListedSchedule stuck({.name = "stuck", .ranks = 2, .lanes = 1, .elements = 4}, std::move(queues));
    std::ostringstream out;
    const Result<MscclSummary> summary = write_msccl_xml(stuck, out);
    ASSERT_FALSE(summary);
    EXPECT_NE(summary.error().message().find("stuck deadlocks: rank 0"), std::string::npos);
}

} // namespace railbreak::planner::test
