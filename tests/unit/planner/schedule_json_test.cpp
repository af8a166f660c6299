#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "collective/verify.hpp"
#include "harness/planner/listed_schedule.hpp"
#include "harness/planner/schedule_json.hpp"
#include "tests/unit/planner/sample_schedules.hpp"

namespace railbreak::planner::test {

namespace {

using collective::Lane;
using collective::Rank;
using collective::Schedule;
using collective::Step;

std::string written(const Schedule& schedule) {
    std::ostringstream out;
    EXPECT_TRUE(write_schedule_json(schedule, out));
    return out.str();
}

Result<std::unique_ptr<const Schedule>> read(const std::string& text) {
    std::istringstream in(text);
    return read_schedule_json(in);
}

void expect_equal(const Step& left, const Step& right) {
    EXPECT_EQ(left.peer, right.peer);
    EXPECT_EQ(left.slice, right.slice);
    EXPECT_EQ(left.stage, right.stage);
    EXPECT_EQ(left.combine, right.combine);
    EXPECT_EQ(left.after, right.after);
}

void expect_equal(const Schedule& left, const Schedule& right) {
    EXPECT_EQ(left.name(), right.name());
    ASSERT_EQ(left.ranks(), right.ranks());
    ASSERT_EQ(left.lanes(), right.lanes());
    EXPECT_EQ(left.ranks_per_server(), right.ranks_per_server());
    EXPECT_EQ(left.elements(), right.elements());
    for (Rank rank = 0; rank < left.ranks(); ++rank) {
        for (Lane lane = 0; lane < left.lanes(); ++lane) {
            EXPECT_EQ(left.port(rank, lane), right.port(rank, lane));
            ASSERT_EQ(left.send_count(rank, lane), right.send_count(rank, lane));
            ASSERT_EQ(left.receive_count(rank, lane), right.receive_count(rank, lane));
            for (std::int64_t i = 0; i < left.send_count(rank, lane); ++i) {
                expect_equal(left.send_step(rank, lane, i), right.send_step(rank, lane, i));
            }
            for (std::int64_t i = 0; i < left.receive_count(rank, lane); ++i) {
                expect_equal(left.receive_step(rank, lane, i), right.receive_step(rank, lane, i));
            }
        }
    }
}

/// A schedule of two ranks on one server, with an intra-host port and a NIC that is not the first.
ListedSchedule local_pair() {
    const Step up{
        .peer = 1, .slice = {0, 4}, .stage = collective::Stage::kLocalReduce, .combine = collective::Combine::kReduce};
    Step down = up;
    down.stage = collective::Stage::kLocalGather;
    down.combine = collective::Combine::kCopy;
    std::vector<LaneQueues> queues(4);
    queues[0].port = queues[2].port = {collective::PortKind::kLocal, 0};
    queues[1].port = queues[3].port = {collective::PortKind::kNic, 3};
    queues[0].sends = {up};
    queues[0].receives = {down};
    down.peer = up.peer == 1 ? 0 : 1;
    down.after[0] = 1;
    queues[2].sends = {down};
    Step arrives = up;
    arrives.peer = 0;
    queues[2].receives = {arrives};
    return {{.name = "pair \"<&>\"", .ranks = 2, .lanes = 2, .ranks_per_server = 2, .elements = 4}, std::move(queues)};
}

} // namespace

TEST(ScheduleJson, ComesBackAsItWas) {
    for (const auto& schedule : sample_schedules()) {
        SCOPED_TRACE(schedule->name());
        const std::string text = written(*schedule);
        const auto back = read(text);
        ASSERT_TRUE(back) << back.error().to_line();
        expect_equal(*schedule, **back);
        EXPECT_EQ(text, written(**back));
        EXPECT_TRUE(collective::verify(**back).empty());
    }
}

TEST(ScheduleJson, KeepsPortsServersAndNames) {
    const ListedSchedule pair = local_pair();
    ASSERT_TRUE(collective::verify(pair).empty());
    const auto back = read(written(pair));
    ASSERT_TRUE(back) << back.error().to_line();
    expect_equal(pair, **back);
}

TEST(ScheduleJson, IsOrdinaryJson) {
    const nlohmann::json document = nlohmann::json::parse(written(*collective::make_ring(2, 8)));
    EXPECT_EQ(document["schema"], "railbreak-schedule");
    EXPECT_EQ(document["version"], 1);
    EXPECT_EQ(
        document["queues"][1]["receives"][1],
        nlohmann::json::parse(R"({"peer":0,"offset":4,"count":4,"stage":"allgather","combine":"copy","after":[0]})"));
}

TEST(ScheduleJson, TheExampleOfTheDocumentIsACorrectSchedule) {
    std::ifstream file(std::string(RAILBREAK_SOURCE_DIR) + "/docs/schedule-format.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::string document = text.str();
    const std::size_t begin = document.find("```json\n");
    ASSERT_NE(begin, std::string::npos);
    const std::string example = document.substr(begin + 8, document.find("```", begin + 8) - begin - 8);
    const auto schedule = read(example);
    ASSERT_TRUE(schedule) << schedule.error().to_line();
    EXPECT_TRUE(collective::verify(**schedule).empty());
    EXPECT_EQ(written(**schedule), example);
}

TEST(ScheduleJson, RefusesWhatIsNotASchedule) {
    const std::string good = written(*collective::make_ring(2, 8));
    ASSERT_TRUE(read(good));
    struct Damage {
        std::string find; ///< first occurrence
        std::string replacement;
        std::string message; ///< part of the error
    };
    const std::vector<Damage> damages = {
        {"railbreak-schedule", "other", "the schema is not \"railbreak-schedule\""},
        {"\"version\":1", "\"version\":2", "version 2 is unknown"},
        {"\"version\":1,", "", "\"version\" must come before \"queues\""},
        {"\"version\":1", "\"version\":1,\"version\":1", "\"version\" stands twice"},
        {"\"version\":1", "\"version\":1.5", "1.5 is not a whole number"},
        {"\"version\":1", "\"version\":true", "true and false have no place here"},
        {"\"version\":1", "\"version\":null", "null has no place here"},
        {"\"version\":1", "\"version\":\"1\"", "the text \"1\" has no place here"},
        {"\"version\":1", "\"version\":[1]", "a list has no place here"},
        {"\"version\":1", "\"version\":{}", "an object has no place here"},
        {"\"name\"", "\"title\"", "the key \"title\" is unknown"},
        {"\"ranks\":2", "\"ranks\":0", "0 is not allowed"},
        {"\"ranks\":2", "\"ranks\":3", "there are 2 queues for 3 ranks and 1 lanes"},
        {"\n]}\n", ",{}\n]}\n", "more queues than ranks times lanes (2 x 1)"},
        {"\"ranks\":2", "\"ranks\":18446744073709551615", "is too large"},
        {"\"ranks_per_server\":1", "\"ranks_per_server\":3", "2 ranks do not make servers of 3"},
        {"\"lanes\":1", "\"lanes\":5", "5 is not allowed; from 1 to 4 is"},
        {"\"elements\":8", "\"elements\":7", "elements 4 to 7 are not all in a vector of 7"},
        {"\"elements\":8", "\"elements\":-8", "-8 is not allowed"},
        {"\"rank\":1", "\"rank\":0", "here is the place of rank 1"},
        {"\"lane\":0", "\"lane\":1", "here is the place of lane 0"},
        {"\"nic\":0", "\"nic\":64", "64 is not allowed"},
        {"\"kind\":\"nic\"", "\"kind\":\"local\"", "has a port of another kind on this lane"},
        {"\"kind\":\"nic\"", "\"kind\":\"wire\"", "the text \"wire\" has no place here"},
        {"\"peer\":1", "\"peer\":2", "rank 0 lane 0: send 0: at \"peer\": 2 is not allowed"},
        {"\"peer\":1", "\"peer\":0", "a rank does not send to itself"},
        {"\"count\":4", "\"count\":9223372036854775807", "is not allowed"},
        {"\"stage\":\"reduce-scatter\"", "\"stage\":\"scatter\"", "\"scatter\" is no stage"},
        {"\"combine\":\"reduce\"", "\"combine\":\"add\"", "the text \"add\" has no place here"},
        {"\"after\":[0]", "\"after\":[]", "\"after\" has 0 numbers for 1 lanes"},
        {"\"after\":[0]", "\"after\":[0,0]", "more numbers than there are lanes"},
        {"\"after\":[0]", "\"after\":[3]", "waits for 3 steps of lane 0, which has 2"},
        {"\"after\":[0]", "\"after\":[-1]", "-1 is not allowed"},
        {",\"after\":[0]", "", "the key \"after\" is missing"},
        {"]}\n", "]", "not JSON at byte"},
    };
    for (const Damage& damage : damages) {
        SCOPED_TRACE(damage.replacement);
        std::string bad = good;
        const std::size_t at = bad.find(damage.find);
        ASSERT_NE(at, std::string::npos) << damage.find;
        bad.replace(at, damage.find.size(), damage.replacement);
        const auto result = read(bad);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind(), ErrorKind::kInput);
        EXPECT_NE(result.error().message().find(damage.message), std::string::npos) << result.error().message();
    }
    for (const std::string text : {"", "7", "[]", "{}", "\"x\"", "{\"queues\":[]}"}) {
        EXPECT_FALSE(read(text)) << text;
    }
    EXPECT_FALSE(read(good + good));
}

TEST(ScheduleJson, AnyPrefixIsRefusedWithoutHarm) {
    const std::string good = written(*optcc(collective::OptccPlan::kUniform, 3, 1, 8));
    for (std::size_t length = 0; length + 1 < good.size(); ++length) {
        EXPECT_FALSE(read(good.substr(0, length))) << length;
    }
}

TEST(ScheduleJson, AStreamThatTakesNothingIsAnError) {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_FALSE(write_schedule_json(*collective::make_ring(2, 8), out));
}

} // namespace railbreak::planner::test
