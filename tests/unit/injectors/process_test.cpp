// What /proc and the cgroup trees say, read from recorded text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "injectors/process_control.hpp"
#include "injectors/process_group.hpp"

namespace railbreak::injectors {
namespace {

/// A line of /proc/PID/stat with this name, state, number of threads and flags.
std::string stat_line(const std::string& name, char state, int threads, unsigned flags) {
    return "4711 (" + name + ") " + state + " 42 4711 4711 0 -1 " + std::to_string(flags) + " 97 0 0 0 1 2 0 0 20 0 " +
           std::to_string(threads) + " 0 123456789 4096 100 18446744073709551615 0\n";
}

TEST(ProcessStat, ReadsANameWithSpacesAndParentheses) {
    const auto record = parse_stat(stat_line("a) S 1 (b) c", 'R', 1, 0x400000));
    ASSERT_TRUE(record.has_value()) << record.error().to_line();
    EXPECT_EQ(record->identity.pid, 4711);
    EXPECT_EQ(record->identity.command, "a) S 1 (b) c");
    EXPECT_EQ(record->identity.start_ticks, 123456789U);
    EXPECT_EQ(record->parent, 42);
    EXPECT_EQ(record->state, 'R');
    EXPECT_FALSE(record->kernel_thread);
}

TEST(ProcessStat, KnowsThreadsOfTheKernelAndProcessesWithoutTheirFirstThread) {
    EXPECT_TRUE(parse_stat(stat_line("kworker/0:1", 'I', 1, 0x4208060))->kernel_thread);
    EXPECT_EQ(parse_stat(stat_line("dead", 'Z', 1, 0))->state, 'Z');
    EXPECT_EQ(parse_stat(stat_line("half", 'Z', 2, 0))->state, '?'); // others go on
}

TEST(ProcessStat, RefusesWhatIsNoSuchLine) {
    const std::string whole = stat_line("name", 'S', 1, 0);
    for (std::size_t size = 0; size < whole.find(" 4096"); ++size) {
        const auto record = parse_stat(whole.substr(0, size));
        // A number may end early, but never turn into a whole record of another form.
        EXPECT_TRUE(!record.has_value() || record->identity.start_ticks != 123456789U) << size;
    }
    EXPECT_FALSE(parse_stat("").has_value());
    EXPECT_FALSE(parse_stat(") (").has_value());
    EXPECT_FALSE(parse_stat("x (name) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0").has_value());
}

constexpr const char* kHybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                                "33 31 0:30 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
                                "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:8 - cgroup cgroup rw,cpu,cpuacct\n"
                                "37 31 0:34 /pod /cg\\040roups/freezer rw - cgroup cgroup rw,freezer\n"
                                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(CgroupMounts, AreFoundByControllerWhereverTheyAre) {
    EXPECT_EQ(find_mount(kHybrid, CgroupTree::kUnified)->folder, "/sys/fs/cgroup/unified");
    EXPECT_EQ(find_mount(kHybrid, CgroupTree::kCpu)->folder, "/sys/fs/cgroup/cpu,cpuacct");
    const auto freezer = find_mount(kHybrid, CgroupTree::kFreezer);
    EXPECT_EQ(freezer->folder, "/cg roups/freezer");
    EXPECT_EQ(freezer->root, "/pod");
    EXPECT_FALSE(find_mount("41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", CgroupTree::kCpu).has_value());
    EXPECT_FALSE(find_mount("", CgroupTree::kUnified).has_value());
}

TEST(CgroupPlaces, ComeBackFromTheJournalOrNotAtAll) {
    Encoder out;
    put_place(out, {CgroupTree::kCpu, "/a/b", "railbreak-run-7"});
    const std::string bytes = out.take();
    GroupPlace place;
    Decoder in(bytes);
    ASSERT_TRUE(get_place(in, place));
    EXPECT_EQ(place.tree, CgroupTree::kCpu);
    EXPECT_EQ(place.former, "/a/b");
    EXPECT_EQ(place.name, "railbreak-run-7");
    // A name that is none of ours could make the undo empty somebody else's cgroup.
    for (const char* name : {"system.slice", "railbreak-x/../../y", "railbreak", "railbreak-7", "railbreak-x",
                             "railbreak-recover.service", "railbreak-run-7.service"}) {
        Encoder other;
        put_place(other, {CgroupTree::kCpu, "/a/b", name});
        const std::string wrong = other.take();
        Decoder decoder(wrong);
        EXPECT_FALSE(get_place(decoder, place)) << name;
    }
}

TEST(FlatFiles, GiveTheValueOfAName) {
    EXPECT_EQ(flat_value("populated 1\nfrozen 0\n", "frozen"), "0");
    EXPECT_EQ(flat_value("nr_periods 12\nnr_throttled 3\n", "nr_throttled"), "3");
    EXPECT_EQ(flat_value("nr_periods 12\n", "nr"), "");
    EXPECT_EQ(flat_value("", "frozen"), "");
}

} // namespace
} // namespace railbreak::injectors
