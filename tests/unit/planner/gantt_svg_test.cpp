#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

#include "harness/planner/gantt_svg.hpp"
#include "harness/planner/listed_schedule.hpp"
#include "tests/unit/planner/simulated.hpp"

namespace railbreak::planner::test {

namespace {

using collective::PortModel;
using ::testing::HasSubstr;
using ::testing::Not;

std::string svg_of(const Simulated& sample, const GanttLimits& limits = {}) {
    std::ostringstream out;
    const GanttInput input{*sample.schedule, sample.options,
                           sample.flows,     static_cast<std::int64_t>(sample.flows.size()),
                           sample.makespan,  sample.bound};
    const Result<void> written = write_gantt_svg(input, out, limits);
    EXPECT_TRUE(written) << written.error().to_line();
    return out.str();
}

/// The boxes of flows: rectangles with a tooltip.
struct Box {
    double y = 0;
    double x = 0;
    double width = 0;
    std::string title;
};

std::vector<Box> boxes_of(const std::string& svg) {
    pugi::xml_document document;
    EXPECT_TRUE(document.load_string(svg.c_str()));
    std::vector<Box> boxes;
    for (const pugi::xml_node rect : document.child("svg").children("rect")) {
        if (rect.child("title")) {
            boxes.push_back({rect.attribute("y").as_double(), rect.attribute("x").as_double(),
                             rect.attribute("width").as_double(), rect.child_value("title")});
        }
    }
    return boxes;
}

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(RAILBREAK_SOURCE_DIR) + "/tests/golden/planner/" + name;
    if (std::getenv("RAILBREAK_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path) << text;
        return;
    }
    std::ifstream file(path);
    std::stringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(text, golden.str()) << "differs from " << path << " (RAILBREAK_UPDATE_GOLDEN=1 writes it anew)";
}

} // namespace

TEST(GanttSvg, SmallCaseLooksAsReviewed) {
    const Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    const std::string svg = svg_of(sample);
    expect_golden("optcc-5.svg", svg);
    EXPECT_EQ(svg, svg_of(sample));
}

TEST(GanttSvg, EveryFlowHasABoxAtBothEndsWhereItsTimesSay) {
    const Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    const std::vector<Box> boxes = boxes_of(svg_of(sample));
    EXPECT_EQ(boxes.size(), 2 * sample.flows.size());
    std::map<std::string, std::vector<Box>> of_flow;
    double first = boxes.front().x;
    for (const Box& box : boxes) {
        of_flow[box.title].push_back(box);
        first = std::min(first, box.x);
    }
    ASSERT_EQ(of_flow.size(), sample.flows.size());
    // The straggler always sends or waits, so the picture's scale follows from one flow of 1000 elements at half rate.
    double scale = 0;
    for (const auto& [title, pair] : of_flow) {
        ASSERT_EQ(pair.size(), 2U) << title;
        EXPECT_NE(pair[0].y, pair[1].y);
        EXPECT_EQ(pair[0].x, pair[1].x);
        EXPECT_EQ(pair[0].width, pair[1].width);
        if (title.starts_with("upload")) {
            scale = pair[0].width / 200; // pixels a microsecond
        }
    }
    ASSERT_GT(scale, 0);
    for (const collective::SimulatedFlow& flow : sample.flows) {
        const double x = first + static_cast<double>(flow.start.count()) / 1000 * scale;
        const double width = static_cast<double>((flow.end - flow.start).count()) / 1000 * scale;
        EXPECT_TRUE(std::ranges::any_of(boxes, [&](const Box& box) {
            return std::abs(box.x - x) < 0.2 && std::abs(box.width - width) < 0.2;
        })) << flow.start.count();
    }
}

TEST(GanttSvg, BoxesOfARowDoNotOverlap) {
    for (const bool shared : {false, true}) {
        const Simulated sample = simulated_optcc(shared ? PortModel::kFluid : PortModel::kExclusive, shared);
        std::map<double, double> end_of_row;
        for (const Box& box : boxes_of(svg_of(sample))) {
            double& end = end_of_row.try_emplace(box.y, 0).first->second;
            EXPECT_GE(box.x, end - 0.011) << box.title; // coordinates have two decimals
            end = box.x + box.width;
        }
        EXPECT_EQ(end_of_row.size(), shared ? 18U : 10U); // the straggler has no ring lane
    }
}

TEST(GanttSvg, SaysWhatItShows) {
    const std::string svg = svg_of(simulated_optcc(PortModel::kExclusive, false));
    for (const std::string words :
         {"5 servers of 1 rank and 1 NIC, 320 Mbit/s healthy; server 4: slowdown 2", "exclusive ports",
          "x lower bound 1.6 ms (theorem 6); 64 flows", ">lower bound 1.6 ms<", ">makespan ", ">reduce-scatter<",
          ">upload<", ">download<", ">allgather<", ">NIC 0 send<", ">NIC 0 receive<", "time since the start",
          "slice 0: elements 0 to 999 (1000)"}) {
        EXPECT_THAT(svg, HasSubstr(words));
    }
    EXPECT_THAT(svg, Not(HasSubstr("Only ")));
    EXPECT_THAT(svg, Not(HasSubstr("href")));
    EXPECT_THAT(svg, Not(HasSubstr("script")));
    EXPECT_THAT(svg, Not(HasSubstr(">star-up<")));
}

TEST(GanttSvg, ShowsTheSlowServersOfALargeSchedule) {
    const Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    const std::string svg = svg_of(sample, {.ranks = 2});
    EXPECT_THAT(svg, HasSubstr("Only 2 of 5 ranks are shown, those of slow servers first; both ends are shown of 4 of "
                               "64 flows."));
    EXPECT_THAT(svg, HasSubstr(">rank 0<"));
    EXPECT_THAT(svg, HasSubstr(">rank 4<"));
    EXPECT_THAT(svg, Not(HasSubstr(">rank 1<")));
    EXPECT_THAT(svg_of(sample, {.ranks = 64, .boxes = 60}), HasSubstr("Only 2 of 5 ranks"));
}

TEST(GanttSvg, FlowsTooNarrowShareABox) {
    Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    sample.flows.clear();
    for (int i = 0; i < 10000; ++i) { // against 100 us, of which the axis has at least 1000 pixels
        collective::SimulatedFlow flow{.from = 0, .to = 1, .send_index = i, .receive_index = i, .slice = {0, 8}};
        flow.stage = i % 2 == 0 ? collective::Stage::kReduceScatter : collective::Stage::kAllGather;
        flow.start = Nanoseconds(i * 10);
        flow.end = Nanoseconds(i * 10 + 10);
        sample.flows.push_back(flow);
    }
    sample.makespan = Nanoseconds(100'000'000);
    const std::string svg = svg_of(sample);
    EXPECT_THAT(svg, HasSubstr("Flows too short to be drawn apart share a box"));
    EXPECT_THAT(svg, HasSubstr(">several stages<"));
    EXPECT_LT(boxes_of(svg).size(), 40U);
}

TEST(GanttSvg, AnEmptyPictureIsStillOne) {
    Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    sample.flows.clear();
    sample.makespan = Nanoseconds(0);
    sample.bound.reset();
    EXPECT_THAT(svg_of(sample), HasSubstr("No flow carries data."));
}

TEST(GanttSvg, NamesAreEscaped) {
    Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    std::vector<LaneQueues> queues(5);
    sample.schedule = std::make_unique<ListedSchedule>(
        ScheduleHead{.name = "<b>&\"", .ranks = 5, .lanes = 1, .elements = 8000}, std::move(queues));
    const std::string svg = svg_of(sample);
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(svg.c_str()));
    EXPECT_STREQ(document.child("svg").child_value("title"), "<b>&\"");
}

TEST(GanttSvg, ATopologyOfAnotherSizeIsAnError) {
    Simulated sample = simulated_optcc(PortModel::kExclusive, false);
    sample.options.topology = collective::healthy_topology(4);
    std::ostringstream out;
    const Result<void> written =
        write_gantt_svg({*sample.schedule, sample.options, sample.flows, 0, sample.makespan, sample.bound}, out);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message(), "the topology has 4 ranks, the schedule 5");
}

} // namespace railbreak::planner::test
