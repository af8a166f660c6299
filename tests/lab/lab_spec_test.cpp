// What a lab may be, and what is remembered of it: no privilege needed.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/lab/lab.hpp"
#include "harness/lab/state.hpp"

namespace railbreak::lab {
namespace {

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

LabSpec spec_of(const std::string& name, unsigned hosts, unsigned nics, BitRate rate) {
    return {name, hosts, nics, rate, 1500};
}

template <class T> testing::AssertionResult ok(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

TEST(LabSpecCheck, NamesTheFieldThatIsOutOfRange) {
    const auto rejected = [](LabSpec spec) {
        const auto checked = check_spec(spec);
        return !checked && checked.error().kind() == ErrorKind::kInput ? checked.error().facts().front().first
                                                                       : std::string("accepted");
    };
    const auto good = spec_of("a", 2, 1, mbit(1));
    EXPECT_TRUE(ok(check_spec(good)));
    EXPECT_TRUE(ok(check_spec(spec_of("A.b_c-9", 64, 8, BitRate::bits_per_s(8)))));
    EXPECT_EQ(rejected(spec_of("a", 1, 1, mbit(1))), "hosts");
    EXPECT_EQ(rejected(spec_of("a", 65, 1, mbit(1))), "hosts");
    EXPECT_EQ(rejected(spec_of("a", 2, 0, mbit(1))), "nics_per_host");
    EXPECT_EQ(rejected(spec_of("a", 2, 9, mbit(1))), "nics_per_host");
    EXPECT_EQ(rejected(spec_of("a", 2, 1, BitRate())), "rate_bits_per_s");
    EXPECT_EQ(rejected(spec_of("a", 2, 1, BitRate::bits_per_s(7))), "rate_bits_per_s");
    EXPECT_EQ(rejected({"a", 2, 1, mbit(1), 100}), "mtu_bytes");
    for (const char* name : {"", ".hidden", "a/b", "a b", "../up", "0123456789012345678901234567890123"}) {
        EXPECT_EQ(rejected(spec_of(name, 2, 1, mbit(1))), "name") << name;
    }
}

TEST(LabSpecCheck, EveryNicHasItsOwnNameAddressAndPort) {
    const auto hosts = hosts_of(spec_of("a", 64, 8, mbit(1)));
    ASSERT_EQ(hosts.size(), 64U);
    EXPECT_EQ(hosts[3].name, "h3");
    EXPECT_EQ(hosts[3].nics[2].name, "rail2");
    EXPECT_EQ(hosts[3].nics[2].address, "10.77.2.4");
    EXPECT_EQ(hosts[3].nics[2].switch_port, "h3r2");
    std::vector<std::string> seen;
    for (const auto& host : hosts) {
        for (const auto& nic : host.nics) {
            seen.insert(seen.end(), {nic.address, nic.mac, nic.switch_port, std::to_string(nic.switch_ifindex)});
        }
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
    EXPECT_EQ(seen.size(), 64U * 8U * 4U);
}

TEST(LabRecordText, SurvivesTheWayThroughJson) {
    LabRecord record;
    record.spec = spec_of("a", 2, 1, mbit(400'000));
    record.kept = true;
    record.owner = {17, 12345678901ULL};
    record.keeper = {18, 12345678902ULL};
    record.created_at = Nanoseconds(1'700'000'000'123'456'789LL);
    record.boot_id = "some-boot";
    record.namespaces = {{4026532001ULL, 77}, {4026532002ULL, 78}, {4026532003ULL, 79}};
    const auto back = parse_record(to_json(record));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->spec, record.spec);
    EXPECT_EQ(back->kept, record.kept);
    EXPECT_EQ(back->owner, record.owner);
    EXPECT_EQ(back->keeper, record.keeper);
    EXPECT_EQ(back->created_at, record.created_at);
    EXPECT_EQ(back->boot_id, record.boot_id);
    EXPECT_EQ(back->namespaces, record.namespaces);
    EXPECT_FALSE(parse_record("{}"));
    EXPECT_FALSE(parse_record("not json"));
}

TEST(LabStateFolder, ThatOthersMayWriteToIsRefused) {
    std::string pattern = testing::TempDir() + "railbreak-open-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    ::chmod(pattern.c_str(), 0777);
    ::setenv("RAILBREAK_STATE_DIR", pattern.c_str(), 1);
    const auto opened = StateFolder::open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind(), ErrorKind::kRefused);
    ::rmdir(pattern.c_str());
}

/// A state folder of the test's own.
class LabRecords : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "railbreak-records-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        ::setenv("RAILBREAK_STATE_DIR", folder_.c_str(), 1);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static void write(const std::string& name, const ProcessId& owner, const ProcessId& keeper,
                      const std::string& boot_id) {
        LabRecord record;
        record.spec = spec_of(name, 2, 1, mbit(1));
        record.owner = owner;
        record.keeper = keeper;
        record.boot_id = boot_id;
        auto folder = StateFolder::open();
        ASSERT_TRUE(ok(folder));
        ASSERT_TRUE(ok(folder->write(record)));
    }
    [[nodiscard]] std::vector<std::string> files() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            found.push_back(entry.path().filename().string());
        }
        std::sort(found.begin(), found.end());
        return found;
    }
    std::string folder_;
};

/// Process 1 runs, but it did not start at this time: whoever had this identity is dead.
constexpr ProcessId kDead{1, ~std::uint64_t{0}};

TEST_F(LabRecords, WithNothingBehindThemAreRemovedByTheList) {
    const ProcessId self = identify_process(::getpid());
    write("being-built", self, {}, read_boot_id());
    write("killed-at-once", kDead, {}, read_boot_id());
    write("keeper-killed", self, kDead, read_boot_id()); // its owner takes it down
    write("both-killed", kDead, kDead, read_boot_id());
    write("earlier-boot", self, self, "another");
    const auto list = lab_list();
    ASSERT_TRUE(ok(list));
    std::vector<std::pair<std::string, bool>> recorded; // without the labs of other folders, found by their keepers
    for (const auto& lab : *list) {
        if (lab.has_record) {
            recorded.emplace_back(lab.spec.name, lab.alive);
        }
    }
    const std::vector<std::pair<std::string, bool>> expected{{"being-built", true}, {"keeper-killed", false}};
    EXPECT_EQ(recorded, expected);
    EXPECT_EQ(files(), (std::vector<std::string>{"being-built.lab.json", "keeper-killed.lab.json"}));
}

TEST_F(LabRecords, HalfWrittenByAKilledProcessAreRemovedByTheList) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::string of_the_living = ".b.lab.json." + std::to_string(::getpid());
    for (const std::string& name :
         {".a.lab.json." + std::to_string(child), of_the_living, std::string(".c.lab.json.")}) {
        std::ofstream(folder_ + "/" + name) << "{";
    }
    ASSERT_TRUE(ok(lab_list()));
    EXPECT_EQ(files(), (std::vector<std::string>{of_the_living, ".c.lab.json."}));
}

} // namespace
} // namespace railbreak::lab
