// A cap by link modes: refused on what is no hardware, and its whole course on the e1000e of the virtual machine.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <net/if.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "injectors/fault_keeper.hpp"
#include "injectors/journal.hpp"
#include "injectors/link_state.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/stepped_host_ops.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

using hardware::LinkMode;
using hardware::LinkModes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr BitRate kFull = BitRate::bits_per_s(1'000'000'000);
constexpr BitRate kSlow = BitRate::bits_per_s(100'000'000);

class PortSpeedOfASoftwareNic : public InjectorLab {};

TEST_F(PortSpeedOfASoftwareNic, IsRefusedByName) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto refused = keeper.apply({.id = 1, .kind = FaultKind::kPortSpeed, .nic = "nic0", .rate = kSlow});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(refused.error().message(), "nic0 cannot change its speed: it is no hardware (veth)");
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

/// The virtual machine's NIC runs at 1 Gbit/s whatever it offers. Here it is said to run at the one speed that it
/// offers, as a real port would; everything else is the driver's.
class TrainedOps final : public SteppedHostOps {
public:
    explicit TrainedOps(HostOps& inner) : SteppedHostOps(inner, [](std::string_view) { return Result<void>(); }) {}
    Result<LinkModes> link_modes(std::int32_t ifindex) override {
        return SteppedHostOps::link_modes(ifindex).map([](LinkModes modes) {
            bool only_slow = true;
            for (const LinkMode& mode : modes.modes) {
                only_slow = only_slow && (!mode.advertised || speed_of(mode) == BitRate() || speed_of(mode) == kSlow);
            }
            modes.speed = only_slow ? kSlow : modes.speed;
            return modes;
        });
    }
};

class PortSpeed : public InjectorLab {
protected:
    void SetUp() override {
        std::error_code ignored;
        const auto driver = std::filesystem::read_symlink("/sys/class/net/eth0/device/driver", ignored).filename();
        if (access("/run/guest/module_names", F_OK) != 0 || driver != "e1000e") {
            GTEST_SKIP() << "runs on the e1000e of railbreak's own virtual machine only (./dev test guest)";
        }
        // Tests before this one may have left it for a namespace of their own.
        const UniqueFd machine(open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(setns(machine.get(), CLONE_NEWNET), 0);
        auto opened = open_host_ops();
        ASSERT_TRUE(opened.has_value()) << opened.error().to_line();
        real_ = std::move(*opened);
        prctl(PR_SET_CHILD_SUBREAPER, 1); // of guards of killed agents
        std::string pattern = ::testing::TempDir() + "railbreak-speed-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        ops_ = std::make_unique<TrainedOps>(*real_);
        for (const char* nic : {"eth1", "eth0"}) {
            ASSERT_TRUE(real_->set_link_flags(index(nic), IFF_UP, IFF_UP).has_value());
        }
        ASSERT_TRUE(carrier());
    }
    void TearDown() override {
        if (!folder_.empty()) {
            std::filesystem::remove_all(folder_);
        }
    }
    [[nodiscard]] static std::int32_t index(const char* nic) { return static_cast<std::int32_t>(if_nametoindex(nic)); }
    /// Waits until eth0 runs.
    [[nodiscard]] bool carrier() const {
        return wait_running(*real_, index("eth0"), Deadline::after(kPatience)).value_or(false);
    }
    [[nodiscard]] std::vector<std::string> snapshot() const override {
        EXPECT_TRUE(carrier());
        const LinkModes modes = real_->link_modes(index("eth0")).value();
        const std::vector<AddressRecord> addresses = real_->addresses().value();
        std::vector<std::string> lines;
        for (const LinkMode& mode : modes.modes) {
            lines.push_back(fmt::format("{} {}", mode.name, mode.advertised));
        }
        for (const AddressRecord& address : addresses) {
            lines.push_back(fmt::format("address {} of {}", address.address, address.ifindex));
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    }
    [[nodiscard]] static FaultRequest slow(std::int32_t id, BitRate rate = kSlow) {
        return {.id = id, .kind = FaultKind::kPortSpeed, .nic = "eth0", .rate = rate};
    }

    std::unique_ptr<HostOps> real_;
};

TEST_F(PortSpeed, IsLoweredAndPutBack) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(slow(1));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "link modes");
    EXPECT_EQ(applied->data_path, "all traffic of the port, RoCE included");
    EXPECT_NE(snapshot(), before);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(PortSpeed, ALinkThatTrainsAtAnotherSpeedIsNoFault) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*real_, options()); // the machine's own NIC stays at its speed
    const auto applied = keeper.apply(slow(1));
    ASSERT_FALSE(applied.has_value());
    EXPECT_THAT(applied.error().to_line(), HasSubstr("offers 100 Mbit/s alone, but the link runs at 1 Gbit/s"));
    EXPECT_TRUE(keeper.revert_all().has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PortSpeed, RefusesWhatThePortCannotOrDoesAlready) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto odd = keeper.apply(slow(1, BitRate::bits_per_s(250'000'000)));
    const auto full = keeper.apply(slow(2, kFull));
    ASSERT_FALSE(odd.has_value());
    ASSERT_FALSE(full.has_value());
    EXPECT_THAT(odd.error().to_line(), HasSubstr("no link mode of 250 Mbit/s"));
    EXPECT_THAT(full.error().message(), HasSubstr("eth0 offers no more than 1 Gbit/s as it is"));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PortSpeed, GoesWithALinkDownInAnyOrder) {
    const auto before = snapshot();
    const FaultRequest down{.id = 2, .kind = FaultKind::kLinkDown, .nic = "eth0"};
    for (const std::int32_t applied : {1, 2}) {
        for (const std::int32_t first : {1, 2}) {
            FaultKeeper keeper = open_keeper(*ops_, options());
            for (const std::int32_t id : {applied, 3 - applied}) {
                const auto done = keeper.apply(id == 1 ? slow(1) : down);
                ASSERT_TRUE(done.has_value()) << id << ": " << done.error().to_line();
            }
            for (const std::int32_t id : {first, 3 - first}) {
                const auto reverted = keeper.revert(id);
                EXPECT_TRUE(reverted.has_value()) << id << ": " << reverted.error().to_line();
            }
            expect_as_before(before, first);
            EXPECT_TRUE(keeper.close().has_value());
        }
    }
}

TEST_F(PortSpeed, ASecondIsHeldToWhatThePortHas) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(slow(1)).has_value());
    const auto odd = keeper.apply(slow(2, BitRate::bits_per_s(250'000'000)));
    ASSERT_FALSE(odd.has_value());
    EXPECT_THAT(odd.error().to_line(), HasSubstr("no link mode of 250 Mbit/s"));
    ASSERT_TRUE(keeper.apply(slow(3)).has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_NE(snapshot(), before); // the other still holds it
    ASSERT_TRUE(keeper.revert(3).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PortSpeed, ComesBackWhicheverStepFails) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(slow(1))), 5);
}

TEST_F(PortSpeed, ComesBackFromTheJournalWhereverAgentAndGuardAreKilled) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(slow(1)), true), 5);
}

} // namespace
} // namespace railbreak::injectors
