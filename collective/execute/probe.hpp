// Bandwidth measurement of the NICs of all servers at once.
#pragma once

#include <utility>
#include <vector>

#include "base/units.hpp"
#include "collective/execute/executor.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Usual length of the flow that opens a path, as a part of the one that counts.
inline constexpr double kWarmShare = 0.5;

/// What a LinkProbe measures.
struct LinkProbeSpec {
    Rank servers = 0;
    Rank ranks_per_server = 1;
    std::int32_t nics_per_server = 1;
    /// NICs first_nic .. first_nic + kMaxLanes * ranks_per_server - 1 are measured, as far as there are any.
    std::int32_t first_nic = 0;
    Rank shift = 1;                     ///< server s sends to server s + shift (mod servers); 1..servers-1
    std::int64_t warm_elements = 0;     ///< of the flow that opens the path
    std::int64_t measured_elements = 0; ///< of the flow that counts
    /// By server, a bit for every NIC that carries nothing: it neither sends nor receives. Empty: all NICs are alive.
    std::vector<std::uint64_t> dead_nics{};
};

/// Every NIC of every server sends to the same NIC of another server. A NIC is driven by one rank, in one lane: NIC n
/// by rank n mod ranks_per_server of the server. Each lane has two steps of Stage::kProbe, one after the other without
/// a pause: the first opens the congestion window and fills the queues, the second meets both as they are in the middle
/// of a long transfer. What arrives overwrites the vector.
class LinkProbe final : public Schedule {
public:
    explicit LinkProbe(LinkProbeSpec spec) : spec_(std::move(spec)) {}
    [[nodiscard]] std::string name() const override { return "link-probe"; }
    [[nodiscard]] Rank ranks() const override { return spec_.servers * spec_.ranks_per_server; }
    [[nodiscard]] Lane lanes() const override;
    [[nodiscard]] Rank ranks_per_server() const override { return spec_.ranks_per_server; }
    [[nodiscard]] Port port(Rank rank, Lane lane) const override { return {PortKind::kNic, nic(rank, lane)}; }
    [[nodiscard]] std::int64_t elements() const override;
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override;
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override;
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override;
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override;

    /// The NIC that a rank drives in a lane; there may be no such NIC, then the lane is empty.
    [[nodiscard]] std::int32_t nic(Rank rank, Lane lane) const;

private:
    [[nodiscard]] Rank source(Rank rank) const;
    [[nodiscard]] bool alive(Rank rank, Lane lane) const;

    LinkProbeSpec spec_;
};

/// Payload rate at which the last receive step of a lane arrived: bytes after the first read, over the time from the
/// first read to the last. Leaving the first read out removes the latency of the start, and the burst that a shaper
/// lets through after an idle time weighs one read at most. Zero when the step arrived in fewer than two reads.
[[nodiscard]] BitRate received_goodput(const ExecutionStats& stats, Lane lane = 0);

} // namespace railbreak::collective
