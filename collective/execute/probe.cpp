#include "collective/execute/probe.hpp"

#include <algorithm>

namespace railbreak::collective {

Lane LinkProbe::lanes() const {
    const std::int32_t left = spec_.nics_per_server - spec_.first_nic;
    const std::int32_t needed = (left + spec_.ranks_per_server - 1) / spec_.ranks_per_server;
    return std::clamp<Lane>(needed, 1, kMaxLanes);
}

std::int64_t LinkProbe::elements() const {
    return std::max(spec_.warm_elements, spec_.measured_elements);
}

std::int32_t LinkProbe::nic(Rank rank, Lane lane) const {
    return spec_.first_nic + rank % spec_.ranks_per_server + lane * spec_.ranks_per_server;
}

bool LinkProbe::alive(Rank rank, Lane lane) const {
    const std::int32_t number = nic(rank, lane);
    const auto server = static_cast<std::size_t>(rank / spec_.ranks_per_server);
    return number < spec_.nics_per_server && (spec_.dead_nics.empty() || (spec_.dead_nics[server] >> number & 1U) == 0);
}

std::int64_t LinkProbe::send_count(Rank rank, Lane lane) const {
    const Rank destination = (rank + spec_.shift * spec_.ranks_per_server) % ranks();
    return spec_.servers > 1 && alive(rank, lane) && alive(destination, lane) ? 2 : 0;
}

std::int64_t LinkProbe::receive_count(Rank rank, Lane lane) const {
    return send_count(source(rank), lane);
}

Rank LinkProbe::source(Rank rank) const {
    return (rank + (spec_.servers - spec_.shift) * spec_.ranks_per_server) % ranks();
}

Step LinkProbe::send_step(Rank rank, Lane, std::int64_t index) const {
    const std::int64_t count = index == 0 ? spec_.warm_elements : spec_.measured_elements;
    return {(rank + spec_.shift * spec_.ranks_per_server) % ranks(), {0, count}, Stage::kProbe, Combine::kCopy, {}};
}

Step LinkProbe::receive_step(Rank rank, Lane lane, std::int64_t index) const {
    Step step = send_step(rank, lane, index);
    step.peer = source(rank);
    return step;
}

BitRate received_goodput(const ExecutionStats& stats, Lane lane) {
    const ReceivedFlow& flow = stats.last_flows.at(static_cast<std::size_t>(lane));
    const std::int64_t span = (flow.last_read_at - flow.first_read_at).count();
    if (span <= 0) {
        return {};
    }
    const double bits = static_cast<double>(flow.bytes_after_first_read) * 8.0;
    return BitRate::bits_per_s(static_cast<std::uint64_t>(bits * 1e9 / static_cast<double>(span)));
}

} // namespace railbreak::collective
