#include "injectors/composer.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace railbreak::injectors {

namespace {

template <class Quantity> void lower(std::optional<Quantity>& value, Quantity other) {
    value = value ? std::min(*value, other) : other;
}

/// Probability that at least one of two independent things happens, rounded to millionths.
Millionths either(Millionths a, Millionths b) {
    const std::uint64_t neither = std::uint64_t{kMillion - std::min(a, kMillion)} * (kMillion - std::min(b, kMillion));
    return kMillion - static_cast<Millionths>((neither + kMillion / 2) / kMillion);
}

tl::unexpected<Error> refuse(std::string_view what, const FaultRequest& fault) {
    return fail(Error(ErrorKind::kRefused, std::string(what))
                    .with("fault", std::to_string(fault.id))
                    .with("kind", std::string(to_string(fault.kind))));
}

/// What several faults do to the packets of one direction, kept apart until all are known: rounding at every step would
/// make the outcome depend on their order.
struct Treatments {
    Nanoseconds delay{0};
    Nanoseconds jitter{0};
    std::optional<GilbertElliott> bursts;
    std::vector<Millionths> loss;
    std::vector<Millionths> corrupt;
    std::vector<Millionths> duplicate;
    std::vector<Millionths> reorder;

    Result<void> add(const FaultRequest& fault) {
        const PacketTreatment& more = fault.packets;
        if ((bursts && (more.bursts || more.loss != 0)) || (more.bursts && !loss.empty())) {
            return refuse("loss in bursts cannot be combined with another loss in the same direction", fault);
        }
        delay += more.delay;
        jitter += more.jitter;
        if (more.bursts) {
            bursts = more.bursts;
        }
        const auto keep = [](std::vector<Millionths>& all, Millionths one) {
            if (one != 0) {
                all.push_back(one);
            }
        };
        keep(loss, more.loss);
        keep(corrupt, more.corrupt);
        keep(duplicate, more.duplicate);
        keep(reorder, more.reorder);
        return {};
    }

    PacketTreatment sum() {
        return {delay, jitter, any_of(loss), bursts, any_of(corrupt), any_of(duplicate), any_of(reorder)};
    }

private:
    static Millionths any_of(std::vector<Millionths>& all) {
        std::sort(all.begin(), all.end());
        Millionths sum = 0;
        for (const Millionths one : all) {
            sum = either(sum, one);
        }
        return sum;
    }
};

class Composer {
public:
    Result<void> add(const FaultRequest& fault) {
        const bool send = fault.direction != Direction::kReceive;
        const bool receive = fault.direction != Direction::kSend;
        switch (fault.kind) {
        case FaultKind::kCap:
            if (send) {
                lower(wanted_.send, fault.rate);
            }
            if (receive) {
                lower(wanted_.receive, fault.rate);
            }
            return {};
        case FaultKind::kLinkDown: wanted_.down = true; return {};
        case FaultKind::kDelay:
        case FaultKind::kLoss:
        case FaultKind::kCorrupt:
        case FaultKind::kDuplicate:
        case FaultKind::kReorder: return add_packets(fault, send, receive);
        case FaultKind::kBlackhole:
            wanted_.send_drops.all = wanted_.send_drops.all || send;
            wanted_.receive_drops.all = wanted_.receive_drops.all || receive;
            return {};
        case FaultKind::kPartition:
            for (const std::string& peer : fault.peers) {
                if (send) {
                    send_peers_.insert(peer);
                }
                if (receive) {
                    receive_peers_.insert(peer);
                }
            }
            return {};
        case FaultKind::kMtu: lower(wanted_.mtu_bytes, fault.mtu_bytes); return {};
        case FaultKind::kReroute:
            if (wanted_.via_nic) {
                return refuse(fmt::format("{} is rerouted through {} already", fault.nic, *wanted_.via_nic), fault);
            }
            wanted_.via_nic = fault.via_nic;
            return {};
        case FaultKind::kPause: wanted_.stopped = true; return {};
        case FaultKind::kKill: wanted_.killed = true; return {};
        case FaultKind::kCpu: lower(wanted_.cpu, fault.cpu); return {};
        case FaultKind::kPortSpeed: lower(wanted_.port_speed, fault.rate); return {};
        case FaultKind::kClassRate: lower(wanted_.class_rate, fault.rate); return {};
        case FaultKind::kVfRate: lower(wanted_.vf_rate, fault.rate); return {};
        case FaultKind::kDevlinkRate: lower(wanted_.devlink_rate, fault.rate); return {};
        case FaultKind::kIbRate: lower(wanted_.ib_rate, fault.rate); return {};
        case FaultKind::kIbDown: wanted_.ib_down = true; return {};
        case FaultKind::kPcieSpeed: lower(wanted_.pcie_rate, fault.rate); return {};
        case FaultKind::kPciRemove: wanted_.removed = true; return {};
        case FaultKind::kDiskFull: lower(wanted_.disk_leave, fault.leave); return {};
        }
        return {};
    }

    WantedState finish() {
        const auto fill = [](Drops& drops, const std::set<std::string>& peers) {
            if (!drops.all) {
                drops.peers.assign(peers.begin(), peers.end());
            }
        };
        wanted_.send_packets = send_packets_.sum();
        wanted_.receive_packets = receive_packets_.sum();
        fill(wanted_.send_drops, send_peers_);
        fill(wanted_.receive_drops, receive_peers_);
        return std::move(wanted_);
    }

private:
    Result<void> add_packets(const FaultRequest& fault, bool send, bool receive) {
        Result<void> done;
        if (send) {
            done = send_packets_.add(fault);
        }
        return done && receive ? receive_packets_.add(fault) : done;
    }

    WantedState wanted_;
    Treatments send_packets_;
    Treatments receive_packets_;
    std::set<std::string> send_peers_;
    std::set<std::string> receive_peers_;
};

/// Refuses two mechanisms on one NIC of which one would undo or hide the other.
Result<void> check_mechanisms(std::span<const FaultRequest> faults) {
    for (const FaultRequest& fault : faults) {
        for (const FaultRequest& other : faults) {
            const bool same_limit = fault.kind == FaultKind::kVfRate && other.kind == FaultKind::kDevlinkRate;
            if (same_limit || (fault.kind == FaultKind::kPciRemove && &other != &fault)) {
                return fail(Error(ErrorKind::kRefused, fmt::format("{} and {} cannot be combined on one NIC",
                                                                   to_string(fault.kind), to_string(other.kind)))
                                .with("fault", std::to_string(fault.id))
                                .with("other", std::to_string(other.id)));
            }
        }
    }
    return {};
}

} // namespace

Result<WantedState> compose(std::span<const FaultRequest> faults) {
    if (auto fit = check_mechanisms(faults); !fit) {
        return tl::unexpected(fit.error());
    }
    Composer composer;
    for (const FaultRequest& fault : faults) {
        if (auto added = composer.add(fault); !added) {
            return tl::unexpected(added.error());
        }
    }
    return composer.finish();
}

} // namespace railbreak::injectors
