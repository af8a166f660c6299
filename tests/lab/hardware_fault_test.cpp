// Faults that a NIC makes itself, their whole course: the InfiniBand port in a simulated fabric (ibsim), rates in the
// NIC and the PCIe speed on pretended hardware, whose state outlives the processes that are killed.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/stepped_host_ops.hpp"
#include "tests/lab/injector_lab.hpp"
#include "tests/unit/injectors/hardware/sysfs_tree.hpp"

namespace railbreak::injectors {
namespace {

using hardware::IbPhysicalState;
using hardware::IbPortInfo;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kFunction = "0000:00:01.0/0000:01:00.2";
constexpr const char* kCooling = "class/thermal/cooling_device3";
const hardware::RateKey kLeaf{"pci", "0000:01:00.0", 3, ""};
const hardware::IbPortAddress kPort{"ibsim0", 1, {}, 1};

constexpr BitRate gbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000'000);
}

/// What the pretended NIC keeps.
struct Registers {
    std::array<std::uint64_t, hardware::kTrafficClasses> classes{};
    std::uint64_t vf_min = 0;
    std::uint64_t vf_max = 0;
    std::uint64_t leaf_share = 0;
    std::uint64_t leaf_max = 0;
    bool has_dcb = true;
    bool host_owns_dcb = true;
    bool switchdev = false; ///< devlink has the rates, else the physical function
};

/// A process that asks and changes the fabric's port for all others: the simulator's library keeps a thread, which
/// agents that are forked later would not have.
class Fabric {
public:
    struct Order {
        enum class What : std::uint8_t { kQuery, kChange, kEnd };
        What what = What::kQuery;
        hardware::IbPortChange change;
    };
    /// Reads the port, and changes it before that if so ordered.
    [[nodiscard]] Result<IbPortInfo> ask(const Order& order) const {
        IbPortInfo info;
        const bool answered = ::send(ours_.get(), &order, sizeof order, MSG_NOSIGNAL) == sizeof order &&
                              readable(ours_.get(), kPatience) &&
                              ::recv(ours_.get(), &info, sizeof info, 0) == sizeof info;
        return answered ? Result<IbPortInfo>(info) : fail(ErrorKind::kHarness, "the fabric does not answer");
    }
    void start(HostOps& ops) {
        std::array<int, 2> ends{};
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        ours_ = UniqueFd(ends[0]);
        UniqueFd theirs(ends[1]);
        std::fflush(nullptr);
        server_ = fork();
        if (server_ == 0) {
            ours_.reset();
            serve(ops, theirs.get());
        }
    }
    void end() {
        if (server_ > 0) {
            const Order order{Order::What::kEnd, {}};
            static_cast<void>(::send(ours_.get(), &order, sizeof order, MSG_NOSIGNAL));
            wait_ended(server_, kPatience);
            server_ = 0;
        }
    }

private:
    [[noreturn]] static void serve(HostOps& ops, int fd) {
        Order order;
        while (::recv(fd, &order, sizeof order, 0) == sizeof order && order.what != Order::What::kEnd) {
            const auto changed =
                order.what == Order::What::kChange ? ops.change_ib_port(kPort, order.change) : Result<void>();
            const auto info = ops.ib_port(kPort);
            static_cast<void>(::send(fd, info ? &*info : nullptr, changed && info ? sizeof *info : 0, MSG_NOSIGNAL));
        }
        std::exit(0); // the library says good-bye to the simulator, which has room for few
    }
    UniqueFd ours_;
    pid_t server_ = 0;
};

/// nic0 as a virtual function of peer0 with class rates of its own, a PCIe port whose speed is a file, and the fabric's
/// port, which is said to train as a real one would: the simulator leaves it in polling.
class PretendedOps final : public SteppedHostOps {
public:
    PretendedOps(HostOps& inner, Registers& registers, const hardware::Sysfs& sysfs, const Fabric& fabric)
        : SteppedHostOps(inner, [](std::string_view) { return Result<void>(); }), registers_(registers), sysfs_(sysfs),
          fabric_(fabric) {}
    Result<std::vector<LinkRecord>> links() override {
        return SteppedHostOps::links().map([](std::vector<LinkRecord> links) {
            for (LinkRecord& link : links) {
                link.kind = link.name == "nic0" || link.name == "peer0" ? "" : link.kind;
            }
            return links;
        });
    }
    const hardware::Sysfs& sysfs() const override { return sysfs_; }
    hardware::Privileges privileges() override { return privileges_; }
    Result<hardware::DcbState> dcb(std::int32_t ifindex) override {
        if (!registers_.has_dcb) {
            return SteppedHostOps::dcb(ifindex);
        }
        hardware::DcbState state;
        state.max_rates.emplace();
        std::transform(registers_.classes.begin(), registers_.classes.end(), state.max_rates->begin(),
                       [](std::uint64_t rate) { return BitRate::bits_per_s(rate); });
        state.dcbx = static_cast<std::uint8_t>(registers_.host_owns_dcb ? DCB_CAP_DCBX_HOST : DCB_CAP_DCBX_LLD_MANAGED);
        return state;
    }
    Result<void> set_class_rates(std::int32_t, const hardware::ClassRates& rates) override {
        std::transform(rates.begin(), rates.end(), registers_.classes.begin(),
                       [](BitRate rate) { return rate.bits_per_s(); });
        return {};
    }
    Result<std::vector<hardware::VfRecord>> vfs(std::int32_t) override {
        hardware::VfRecord record;
        record.min_rate = BitRate::bits_per_s(registers_.vf_min);
        record.max_rate = BitRate::bits_per_s(registers_.vf_max);
        return std::vector{record};
    }
    Result<void> set_vf_rates(std::int32_t, std::uint32_t, BitRate min, BitRate max) override {
        registers_.vf_min = min.bits_per_s();
        registers_.vf_max = max.bits_per_s();
        return {};
    }
    Result<std::vector<hardware::DevlinkPort>> devlink_ports() override {
        hardware::DevlinkPort port{kLeaf.bus, kLeaf.device, *kLeaf.port, 0, 0, {}};
        port.vf = std::uint16_t{0};
        return std::vector{port};
    }
    Result<std::vector<hardware::RateObject>> devlink_rates() override {
        std::vector<hardware::RateObject> objects;
        if (registers_.switchdev) {
            objects.push_back(
                {kLeaf, {BitRate::bits_per_s(registers_.leaf_share), BitRate::bits_per_s(registers_.leaf_max)}, ""});
        }
        return objects;
    }
    Result<void> set_devlink_rate(const hardware::RateKey&, BitRate max) override {
        registers_.leaf_max = max.bits_per_s();
        return {};
    }
    Result<IbPortInfo> ib_port(const hardware::IbPortAddress&) override {
        return mute_ ? fail(ErrorKind::kHarness, "the port does not answer") : fabric_.ask({}).map(trained);
    }
    Result<void> change_ib_port(const hardware::IbPortAddress&, const hardware::IbPortChange& change) override {
        return fabric_.ask({Fabric::Order::What::kChange, change}).map([](const IbPortInfo&) {});
    }
    hardware::Privileges privileges_{true, true, true, 0};
    bool mute_ = false; ///< the fabric's port answers nobody

private:
    static IbPortInfo trained(IbPortInfo info) {
        if (info.physical_state == IbPhysicalState::kDisabled) {
            info.state = hardware::IbPortState::kDown;
            return info;
        }
        info.physical_state = IbPhysicalState::kLinkUp;
        info.state = hardware::IbPortState::kActive;
        for (const std::uint8_t width : {hardware::kIbWidth1x, hardware::kIbWidth2x, hardware::kIbWidth4x}) {
            info.width_active = (info.width_enabled & width) != 0 ? width : info.width_active;
        }
        for (const std::uint8_t speed : {hardware::kIbSpeedSdr, hardware::kIbSpeedDdr, hardware::kIbSpeedQdr}) {
            info.speed_active = (info.speed_enabled & speed) != 0 ? speed : info.speed_active;
        }
        return info;
    }
    Registers& registers_;
    const hardware::Sysfs& sysfs_;
    const Fabric& fabric_;
};

/// In the network namespace that this program was started in, where the fabric is.
class HardwareLab : public InjectorLab {
protected:
    void SetUp() override {
        if (std::getenv("RAILBREAK_PRIVATE_NETNS") == nullptr) {
            GTEST_SKIP() << "no new network namespace here";
        }
        prctl(PR_SET_CHILD_SUBREAPER, 1); // of guards of killed agents
        auto opened = open_host_ops();
        auto channel = NetlinkChannel::open();
        ASSERT_TRUE(opened.has_value() && channel.has_value());
        real_ = std::move(*opened);
        channel_ = std::make_unique<NetlinkChannel>(std::move(*channel));
        make_veth();
        void* memory = mmap(nullptr, sizeof(Registers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        registers_ = new (memory) Registers();
        auto pretended = std::make_unique<PretendedOps>(*real_, *registers_, tree_.sysfs(), fabric_);
        pretended_ = pretended.get();
        ops_ = std::move(pretended);
        nic_ = index_of("nic0");
        make_tree();
        std::string pattern = ::testing::TempDir() + "railbreak-hardware-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override {
        fabric_.end();
        if (!folder_.empty()) {
            std::filesystem::remove_all(folder_);
            static_cast<void>(real_->remove_link(nic_));
            munmap(registers_, sizeof(Registers));
        }
    }
    [[nodiscard]] std::vector<std::string> snapshot() const override {
        std::vector<std::string> lines{fmt::format("classes {}", fmt::join(registers_->classes, " ")),
                                       fmt::format("VF {} {}", registers_->vf_min, registers_->vf_max),
                                       fmt::format("leaf {} {}", registers_->leaf_share, registers_->leaf_max),
                                       "PCIe " +
                                           tree_.sysfs().read(std::string(kCooling) + "/cur_state").value_or("?")};
        if (fabric_counts_) {
            const IbPortInfo info = ops_->ib_port(kPort).value_or(IbPortInfo{});
            lines.push_back(fmt::format("port {} {} width {}/{} speed {}/{}", to_string(info.state),
                                        to_string(info.physical_state), info.width_enabled, info.width_active,
                                        info.speed_enabled, info.speed_active));
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    }
    [[nodiscard]] static bool has_fabric() { return std::getenv("RAILBREAK_IBSIM") != nullptr; }
    [[nodiscard]] static FaultRequest request(FaultKind kind, BitRate rate = gbit(1)) {
        return {.id = 1, .kind = kind, .nic = "nic0", .direction = Direction::kSend, .rate = rate};
    }
    /// The line of a refusal, after which nothing has changed.
    std::string refusal(const FaultRequest& request) { return refusal(*ops_, request); }
    std::string refusal(HostOps& ops, const FaultRequest& request) {
        const auto before = snapshot();
        FaultKeeper keeper = open_keeper(ops, options());
        const auto refused = keeper.apply(request);
        expect_as_before(before, 0);
        EXPECT_TRUE(keeper.close().has_value());
        return refused ? std::string("not refused") : refused.error().to_line();
    }

    std::unique_ptr<HostOps> real_;
    hardware::SysfsTree tree_;
    PretendedOps* pretended_ = nullptr;
    Registers* registers_ = nullptr;
    Fabric fabric_;
    bool fabric_counts_ = false; ///< its port is part of the snapshot

private:
    void make_veth() {
        NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        message.append_header(ifinfomsg{});
        message.put_string(IFLA_IFNAME, "nic0");
        nlattr* info = message.begin_nest(IFLA_LINKINFO);
        message.put_string(IFLA_INFO_KIND, "veth");
        nlattr* data = message.begin_nest(IFLA_INFO_DATA);
        nlattr* other = message.begin_nest(VETH_INFO_PEER);
        message.append_header(ifinfomsg{});
        message.put_string(IFLA_IFNAME, "peer0");
        message.end_nest(other);
        message.end_nest(data);
        message.end_nest(info);
        send(message, "create a veth pair");
    }
    void make_tree() {
        const std::string device = std::string("devices/pci0000:00/") + kFunction;
        tree_.pci_function("0000:00:01.0", "0x060400", "pcieport");
        tree_.pci_function("0000:00:01.0/0000:01:00.0", "0x020000", "mlx5_core");
        tree_.pci_function(kFunction, "0x020000", "mlx5_core");
        tree_.nic("0000:00:01.0/0000:01:00.0", "peer0", "02:00:00:00:00:01");
        tree_.nic(kFunction, "nic0", "02:00:00:00:00:02");
        tree_.file(device + "/net/nic0/ifindex", std::to_string(nic_));
        tree_.file(device + "/current_link_width", "4");
        tree_.link(device + "/physfn", "devices/pci0000:00/0000:00:01.0/0000:01:00.0");
        tree_.link("devices/pci0000:00/0000:00:01.0/0000:01:00.0/virtfn0", device);
        tree_.file(std::string(kCooling) + "/type", "PCIe_Port_Link_Speed_0000:00:01.0");
        tree_.file(std::string(kCooling) + "/cur_state", "0");
        tree_.file(std::string(kCooling) + "/max_state", "3");
        tree_.file("class/infiniband/ibsim0/ports/1/link_layer", "InfiniBand");
        tree_.link("class/infiniband/ibsim0/device", device);
        if (fabric_counts_) { // as a subnet manager would
            fabric_.start(*real_);
            hardware::IbPortChange change;
            change.lid_when_none = std::uint16_t{7};
            change.speed_enabled = std::uint8_t{7}; // up to QDR
            ASSERT_TRUE(pretended_->change_ib_port(kPort, change).has_value());
        }
    }
};

/// One fault of the hardware and what is seen of it.
struct HardwareForm {
    const char* name;
    FaultKind kind;
    BitRate rate;
    const char* mechanism;
    const char* readback;
    const char* value;
};
void PrintTo(const HardwareForm& form, std::ostream* out) {
    *out << form.name;
}

class HardwareFault : public HardwareLab, public ::testing::WithParamInterface<HardwareForm> {
protected:
    void SetUp() override {
        if (needs_fabric() && !has_fabric()) {
            GTEST_SKIP() << "needs ibsim: apt-get install ibsim-utils libumad2sim0";
        }
        fabric_counts_ = needs_fabric();
        HardwareLab::SetUp();
        if (registers_ != nullptr) {
            registers_->switchdev = GetParam().kind == FaultKind::kDevlinkRate;
            registers_->classes[2] = 500'000'000;
            registers_->vf_min = registers_->leaf_share = 100'000'000;
        }
    }
    [[nodiscard]] static bool needs_fabric() {
        return GetParam().kind == FaultKind::kIbRate || GetParam().kind == FaultKind::kIbDown;
    }
    /// A cell as the conformance suite prints it. Its other cells lie above the mechanism and are the same for all
    /// kinds.
    static void say(const char* cell, int effects) {
        fmt::print("conformance | {:17} | {} 1..{} |\n", GetParam().name, cell, effects);
        EXPECT_GT(effects, 5);
    }
    [[nodiscard]] static FaultRequest wanted() { return request(GetParam().kind, GetParam().rate); }
};

TEST_P(HardwareFault, IsMadeSeenAndPutBack) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(wanted());
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, GetParam().mechanism);
    EXPECT_EQ(applied->realism, "port");
    EXPECT_THAT(applied->readback, Contains(Pair(GetParam().readback, GetParam().value)));
    EXPECT_GT(applied->observed_at, applied->applied_at);
    EXPECT_NE(snapshot(), before);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_P(HardwareFault, ComesBackWhicheverEffectFails) {
    say("B_FailAtStep", fail_at_every_effect(apply_and_revert(wanted())));
}

TEST_P(HardwareFault, ComesBackFromTheJournalWhereverAgentAndGuardAreKilled) {
    say("D_KillAgentAndGuardThenRecover", kill_at_every_effect(apply_and_revert(wanted()), true));
}

INSTANTIATE_TEST_SUITE_P(
    All, HardwareFault,
    ::testing::Values(HardwareForm{"dcb_class_rate", FaultKind::kClassRate, BitRate::bits_per_s(1'230'000'000),
                                   "DCB rate limit per traffic class", "class_rate_bits_per_s", "1200000000"},
                      HardwareForm{"vf_rate", FaultKind::kVfRate, BitRate::bits_per_s(250'700'000),
                                   "VF rate of the physical function", "vf_rate_bits_per_s", "250000000"},
                      HardwareForm{"devlink_rate", FaultKind::kDevlinkRate, gbit(1), "devlink rate of the function",
                                   "devlink_rate_bits_per_s", "1000000000"},
                      HardwareForm{"pcie_speed", FaultKind::kPcieSpeed, gbit(20), "PCIe speed of the port above",
                                   "pcie_rate_bits_per_s", "16000000000"},
                      HardwareForm{"ib_rate", FaultKind::kIbRate, gbit(10), "InfiniBand PortInfo: width and speed",
                                   "ib_rate_bits_per_s", "10000000000"},
                      HardwareForm{"ib_down", FaultKind::kIbDown, BitRate(), "InfiniBand PortInfo: port disabled",
                                   "physical_state", "disabled"}),
    [](const auto& form) { return form.param.name; });

TEST_F(HardwareLab, ThePreviewSaysWhatWouldChangeAndItsUndo) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto classes = keeper.preview(request(FaultKind::kClassRate));
    const auto vf = keeper.preview(request(FaultKind::kVfRate));
    const auto speed = keeper.preview(request(FaultKind::kPcieSpeed, gbit(16)));
    ASSERT_TRUE(classes.has_value() && vf.has_value() && speed.has_value());
    EXPECT_THAT(classes->steps.changes,
                ElementsAre("nic0: rate limit of its 8 traffic classes from unlimited to 1 Gbit/s"));
    EXPECT_THAT(classes->steps.undo, ElementsAre("nic0: rate limit of its 8 traffic classes back to unlimited"));
    EXPECT_EQ(classes->data_path, "what the port sends, RoCE included");
    EXPECT_THAT(vf->steps.changes, ElementsAre("nic0: its rate as VF 0 of peer0 from unlimited to 1 Gbit/s"));
    EXPECT_THAT(speed->steps.changes,
                ElementsAre("nic0: PCIe link below 0000:00:01.0 from 63.02 Gbit/s to 16 Gbit/s (state 2 of its cooling "
                            "device); slows peer0 too"));
    EXPECT_THAT(speed->steps.undo, ElementsAre("nic0: PCIe link below 0000:00:01.0 back to 63.02 Gbit/s (state 0)"));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(HardwareLab, WhatTheHardwareCannotOrMayNotIsRefusedAndNothingIsChanged) {
    registers_->host_owns_dcb = false;
    EXPECT_THAT(refusal(request(FaultKind::kClassRate)), HasSubstr("nic0: a DCBX agent owns the port's DCB settings"));
    registers_->has_dcb = false;
    EXPECT_THAT(refusal(request(FaultKind::kClassRate)), HasSubstr("nic0: the driver has no rate limit per traffic"));
    EXPECT_THAT(refusal(request(FaultKind::kDevlinkRate)), HasSubstr("nic0 has no rate of its own in devlink"));
    registers_->switchdev = true;
    EXPECT_THAT(refusal(request(FaultKind::kVfRate)), HasSubstr("nic0 keeps its rate in devlink"));
    registers_->leaf_share = 2'000'000'000;
    EXPECT_THAT(refusal(request(FaultKind::kDevlinkRate)), HasSubstr("nic0 is guaranteed 2 Gbit/s"));
    EXPECT_THAT(refusal(request(FaultKind::kPcieSpeed)), HasSubstr("Its lower speeds carry: 31.51 Gbit/s, 16 Gbit/s"));
    EXPECT_THAT(refusal(request(FaultKind::kPciRemove)), HasSubstr("nic0 may not be touched: it is down already"));
    pretended_->privileges_ = {true, false, false, 0};
    registers_->has_dcb = registers_->host_owns_dcb = true;
    EXPECT_THAT(refusal(request(FaultKind::kClassRate)), HasSubstr("asks for CAP_NET_ADMIN in the first user"));
    EXPECT_THAT(refusal(request(FaultKind::kPcieSpeed, gbit(20))), HasSubstr("files in sysfs that only root may"));
    EXPECT_THAT(refusal(*real_, request(FaultKind::kVfRate)), HasSubstr("nic0 is no hardware (veth)"));
}

class IbFabric : public HardwareLab {
protected:
    void SetUp() override {
        if (!has_fabric()) {
            GTEST_SKIP() << "needs ibsim: apt-get install ibsim-utils libumad2sim0";
        }
        fabric_counts_ = true;
        HardwareLab::SetUp();
    }
};

TEST_F(IbFabric, AnInfiniBandPortRunsAtWhatItHasAndIsDisabledOnTop) {
    const auto before = snapshot();
    EXPECT_THAT(refusal(request(FaultKind::kIbRate, gbit(7))),
                HasSubstr("the InfiniBand port of nic0 cannot run at 7 Gbit/s"));
    FaultKeeper keeper = open_keeper(*ops_, options());
    FaultRequest down = request(FaultKind::kIbDown);
    down.id = 2;
    for (const std::int32_t first : {1, 2}) {
        // 4x DDR; 2x QDR is the same, but ...
        const auto slower = keeper.apply(request(FaultKind::kIbRate, gbit(20)));
        ASSERT_TRUE(slower.has_value()) << slower.error().to_line();
        ASSERT_TRUE(keeper.apply(down).has_value());
        EXPECT_TRUE(keeper.revert(first).has_value());
        EXPECT_NE(snapshot(), before);
        EXPECT_TRUE(keeper.revert(3 - first).has_value());
        expect_as_before(before, first);
    }
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(IbFabric, APortThatDoesNotAnswerHasNotGoneWithItsInterface) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(request(FaultKind::kIbDown)).has_value());
    ASSERT_TRUE(delete_link(*channel_, nic_).has_value());
    pretended_->mute_ = true;
    EXPECT_FALSE(keeper.revert(1).has_value());
    EXPECT_FALSE(keeper.open_faults().empty());
    pretended_->mute_ = false;
    EXPECT_TRUE(keeper.revert(1).has_value());
    const auto port = ops_->ib_port(kPort);
    ASSERT_TRUE(port.has_value());
    EXPECT_EQ(port->physical_state, IbPhysicalState::kLinkUp);
    EXPECT_TRUE(keeper.close().has_value());
}

} // namespace
} // namespace railbreak::injectors
