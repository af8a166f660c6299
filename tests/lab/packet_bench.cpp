#include "tests/lab/packet_bench.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "injectors/programs/packet_program.h"
#include "injectors/real_host_ops.hpp"
#include "injectors/shaping.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint32_t kBatch = 50; ///< fits every queue on the way

sockaddr_in any_port(const char* address) {
    sockaddr_in found{};
    found.sin_family = AF_INET;
    inet_pton(AF_INET, address, &found.sin_addr);
    return found;
}

UniqueFd bound_socket(int type, const char* address) {
    const sockaddr_in local = any_port(address);
    UniqueFd fd(socket(AF_INET, type | SOCK_CLOEXEC, 0));
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local), 0);
    return fd;
}

sockaddr_in name_of(int fd) {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
    return name;
}

void take_arrived(int fd, std::vector<std::uint32_t>& arrived) {
    std::uint32_t number = 0;
    while (recv(fd, &number, sizeof number, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof number)) {
        arrived.push_back(number);
    }
}

std::array<unsigned char, 6> mac_bytes(const std::string& text) {
    std::array<unsigned char, 6> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes.at(i) = static_cast<unsigned char>(std::stoi(text.substr(3 * i, 2), nullptr, 16));
    }
    return bytes;
}

/// Interface of that name in the namespace.
LinkRecord link_in(HostOps& ops, const std::string& name) {
    const auto links = ops.links();
    EXPECT_TRUE(links.has_value());
    for (const LinkRecord& each : links.value_or(std::vector<LinkRecord>())) {
        if (each.name == name) {
            return each;
        }
    }
    ADD_FAILURE() << "there is no " << name;
    return {};
}

} // namespace

TcDirection hook_of(Direction direction) {
    return direction == Direction::kSend ? TcDirection::kEgress : TcDirection::kIngress;
}

Result<KernelFeatures> WithoutFeatures::features() {
    return SteppedHostOps::features().map([this](KernelFeatures found) {
        for (const KernelFeature each : hidden_) {
            found.set_missing(each, fmt::format("the test hides {}", to_string(each)));
        }
        return found;
    });
}

template <class What> auto PacketBench::at(bool host, What what) const {
    EXPECT_EQ(setns(host ? host_netns_.get() : peer_netns_.get(), CLONE_NEWNET), 0);
    auto result = what();
    EXPECT_EQ(setns(host_netns_.get(), CLONE_NEWNET), 0);
    return result;
}

void PacketBench::SetUp() {
    InjectorLab::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
        return;
    }
    for (const bool host : {true, false}) {
        const bool quiet = at(host, [&] {
            std::ofstream file(
                fmt::format("/proc/thread-self/root/proc/sys/net/ipv6/conf/{}/disable_ipv6", host ? "nic0" : "peer0"));
            return static_cast<bool>(file << "1" << std::flush);
        });
        ASSERT_TRUE(quiet);
    }
    know_each_other();
}

void PacketBench::know_each_other() const {
    auto peer = open_host_ops_in(peer_netns_.get());
    ASSERT_TRUE(peer.has_value());
    const LinkRecord near = link_in(*ops_, "nic0");
    const LinkRecord far = link_in(**peer, "peer0");
    const auto teach = [](NetlinkChannel& channel, std::int32_t ifindex, const char* address, const LinkRecord& other) {
        NetlinkMessage message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
        ndmsg header{};
        header.ndm_family = AF_INET;
        header.ndm_ifindex = ifindex;
        header.ndm_state = NUD_PERMANENT;
        message.append_header(header);
        in_addr binary{};
        inet_pton(AF_INET, address, &binary);
        message.put_bytes(NDA_DST, &binary, sizeof binary);
        const auto mac = mac_bytes(other.mac);
        message.put_bytes(NDA_LLADDR, mac.data(), mac.size());
        const auto done = channel.request(message, "add a neighbour");
        ASSERT_TRUE(done.has_value()) << done.error().to_line();
    };
    auto there = NetlinkChannel::open_in(peer_netns_.get());
    ASSERT_TRUE(there.has_value());
    teach(*channel_, near.ifindex, "10.9.0.2", far);
    teach(*there, far.ifindex, "10.9.0.1", near);
}

DatagramPath PacketBench::open_path(Direction direction) const {
    const bool host_sends = direction == Direction::kSend;
    DatagramPath path;
    path.to = at(!host_sends, [&] { return bound_socket(SOCK_DGRAM, host_sends ? "10.9.0.2" : "10.9.0.1"); });
    path.from = at(host_sends, [&] { return bound_socket(SOCK_DGRAM, host_sends ? "10.9.0.1" : "10.9.0.2"); });
    const sockaddr_in target = name_of(path.to.get());
    EXPECT_EQ(connect(path.from.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target), 0);
    return path;
}

DatagramPath PacketBench::open_stream(Direction direction) const {
    const bool host_sends = direction == Direction::kSend;
    DatagramPath path;
    const UniqueFd listener =
        at(!host_sends, [&] { return bound_socket(SOCK_STREAM, host_sends ? "10.9.0.2" : "10.9.0.1"); });
    EXPECT_EQ(listen(listener.get(), 1), 0);
    path.from = at(host_sends, [&] { return bound_socket(SOCK_STREAM, host_sends ? "10.9.0.1" : "10.9.0.2"); });
    const sockaddr_in target = name_of(listener.get());
    EXPECT_EQ(connect(path.from.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target), 0);
    path.to.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(path.to.valid());
    return path;
}

std::vector<std::uint32_t> PacketBench::exchange_in_order(const DatagramPath& path, std::uint32_t count,
                                                          std::size_t expected) {
    std::vector<std::uint32_t> arrived;
    for (std::uint32_t number = 0; number < count; ++number) {
        EXPECT_EQ(::send(path.from.get(), &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
        if (number % kBatch == kBatch - 1) {
            take_arrived(path.to.get(), arrived);
        }
    }
    take_arrived(path.to.get(), arrived);
    while (arrived.size() < expected && readable(path.to.get(), kPatience)) {
        take_arrived(path.to.get(), arrived);
    }
    take_arrived(path.to.get(), arrived);
    return arrived;
}

std::vector<std::uint32_t> PacketBench::exchange(const DatagramPath& path, std::uint32_t count, std::size_t expected) {
    std::vector<std::uint32_t> arrived = exchange_in_order(path, count, expected);
    // Each CPU has its own queue of what arrived: a sender that is moved to another CPU overtakes itself.
    std::sort(arrived.begin(), arrived.end());
    return arrived;
}

std::vector<std::uint32_t> PacketBench::let_through(const PacketProgram& program, std::uint64_t first,
                                                    std::uint32_t count) {
    packet_settings settings{};
    settings.seed = program.seed;
    settings.loss = program.treatment.loss;
    if (const auto& bursts = program.treatment.bursts) {
        settings.bursts = 1;
        settings.good_to_bad = bursts->good_to_bad;
        settings.bad_to_good = bursts->bad_to_good;
        settings.loss_in_bad = bursts->loss_in_bad;
        settings.loss_in_good = bursts->loss_in_good;
    }
    std::vector<std::uint32_t> through;
    std::uint32_t bad = 0;
    for (std::uint64_t packet = 0; packet < first + count; ++packet) {
        const bool lost = packet_is_lost(&settings, packet, &bad) != 0;
        if (lost || packet < first) {
            continue;
        }
        const auto number = static_cast<std::uint32_t>(packet - first);
        if (packet_happens(&settings, packet, PACKET_IS_DUPLICATED, program.treatment.duplicate) != 0) {
            through.push_back(number);
        }
        if (packet_happens(&settings, packet, PACKET_IS_CORRUPTED, program.treatment.corrupt) == 0) {
            through.push_back(number);
        }
    }
    return through;
}

PacketProgramRecord PacketBench::program(Direction direction) const {
    const auto found = ops_->packet_program(nic_, hook_of(direction), kProgramPriority);
    EXPECT_TRUE(found.has_value()) << found.error().to_line();
    EXPECT_TRUE(found && *found) << "there is no packet program";
    return found && *found ? **found : PacketProgramRecord{};
}

std::uint64_t PacketBench::counter_of_receiver(Direction direction, const std::string& table,
                                               const std::string& name) const {
    return at(direction == Direction::kReceive, [&]() -> std::uint64_t {
        std::ifstream file("/proc/thread-self/net/snmp");
        std::string names;
        std::string values;
        while (std::getline(file, names) && std::getline(file, values)) {
            std::istringstream name_words(names);
            std::istringstream value_words(values);
            std::string word;
            std::string value;
            while (names.starts_with(table + ":") && name_words >> word && value_words >> value) {
                if (word == name) {
                    return std::stoull(value);
                }
            }
        }
        ADD_FAILURE() << "there is no counter " << table << " " << name;
        return 0;
    });
}

std::string PacketBench::missing(KernelFeature feature) const {
    const auto features = ops_->features();
    return features ? features->missing(feature) : features.error().message();
}

void ProgramBench::SetUp() {
    PacketBench::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
        return;
    }
    if (const std::string why = missing(KernelFeature::kPacketProgram); !why.empty()) {
        GTEST_SKIP() << why;
    }
    no_netem_ = std::make_unique<WithoutFeatures>(*ops_, std::vector{KernelFeature::kNetem});
}

FaultRequest packets(std::int32_t id, FaultKind kind, Direction direction, const PacketTreatment& treatment) {
    return {.id = id, .kind = kind, .nic = "nic0", .direction = direction, .packets = treatment};
}

FaultRequest loss(std::int32_t id, Direction direction, Millionths part) {
    return packets(id, FaultKind::kLoss, direction, {.loss = part});
}

std::string value_of(const FaultEvidence& evidence, const std::string& name) {
    for (const auto& [each, value] : evidence.readback) {
        if (each == name) {
            return value;
        }
    }
    return "none";
}

} // namespace railbreak::injectors
