// Numbered datagrams over the bench's first cable, whose neighbours are quiet: what a packet fault does to each of them
// can be told exactly.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "injectors/stepped_host_ops.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {

/// Two UDP sockets, one in each namespace; `from` is connected to `to`.
struct DatagramPath {
    UniqueFd from;
    UniqueFd to;
};

/// The real host without some features of its kernel.
class WithoutFeatures : public SteppedHostOps {
public:
    WithoutFeatures(HostOps& inner, std::vector<KernelFeature> hidden)
        : SteppedHostOps(inner, [](std::string_view) { return Result<void>(); }), hidden_(std::move(hidden)) {}
    Result<KernelFeatures> features() override;

private:
    std::vector<KernelFeature> hidden_;
};

/// nic0 and its peer have no IPv6, know each other's hardware address, and say nothing by themselves.
class PacketBench : public InjectorLab {
protected:
    void SetUp() override;

    /// From the host to the peer, or back.
    [[nodiscard]] DatagramPath open_path(Direction direction) const;
    /// A connected pair of TCP sockets, the first at the side that sends.
    [[nodiscard]] DatagramPath open_stream(Direction direction) const;
    /// Sends datagrams that carry the numbers 0 to `count` - 1, and gives the numbers that arrived, sorted. Waits
    /// until `expected` of them are there, and looks whether there are more.
    [[nodiscard]] static std::vector<std::uint32_t> exchange(const DatagramPath& path, std::uint32_t count,
                                                             std::size_t expected);
    /// The same in the order of arrival.
    [[nodiscard]] static std::vector<std::uint32_t> exchange_in_order(const DatagramPath& path, std::uint32_t count,
                                                                      std::size_t expected);
    /// What the packet program lets through of so many packets, the first being number `first` that it sees.
    [[nodiscard]] static std::vector<std::uint32_t> let_through(const PacketProgram& program, std::uint64_t first,
                                                                std::uint32_t count);
    /// The program on that side of nic0; a failure without one.
    [[nodiscard]] PacketProgramRecord program(Direction direction) const;
    /// A counter of /proc/net/snmp or netstat, for example "Ip" and "InHdrErrors", on the side that receives.
    [[nodiscard]] std::uint64_t counter_of_receiver(Direction direction, const std::string& table,
                                                    const std::string& name) const;
    /// Why a kind of fault cannot be tried here; empty when it can.
    [[nodiscard]] std::string missing(KernelFeature feature) const;

private:
    /// Calls `what` in the namespace of that end.
    template <class What> auto at(bool host, What what) const;
    void know_each_other() const;
};

/// Where the packet program can be loaded; elsewhere its tests are skipped.
class ProgramBench : public PacketBench {
protected:
    void SetUp() override;
    std::unique_ptr<WithoutFeatures> no_netem_; ///< the program is taken in any case
};

[[nodiscard]] TcDirection hook_of(Direction direction);

/// The two sides that can be looked at one by one.
inline constexpr std::array kSides{Direction::kSend, Direction::kReceive};

/// A packet fault on nic0.
[[nodiscard]] FaultRequest packets(std::int32_t id, FaultKind kind, Direction direction,
                                   const PacketTreatment& treatment);
[[nodiscard]] FaultRequest loss(std::int32_t id, Direction direction, Millionths part);

/// What was read back under that name; "none" when nothing was.
[[nodiscard]] std::string value_of(const FaultEvidence& evidence, const std::string& name);

} // namespace railbreak::injectors
