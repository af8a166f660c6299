#include "collective/simulate/rates.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace railbreak::collective::simulation {

namespace {

constexpr double kPicosecondsPerSecond = 1e12;
constexpr double kBitsPerByte = 8;

bool in_range(Nanoseconds offset) {
    return offset >= Nanoseconds(0) && offset <= kLongestOffset;
}

Result<void> check(const PortTable& ports, const SimulationOptions& options) {
    if (options.healthy_goodput == BitRate{} || options.element_bytes == 0) {
        return fail(ErrorKind::kInput, "a simulation needs a goodput and an element size above 0");
    }
    const auto& starts = options.rank_start;
    if (!starts.empty() && starts.size() != static_cast<std::size_t>(options.topology.ranks())) {
        return fail(ErrorKind::kInput,
                    fmt::format("{} ranks have {} starting times", options.topology.ranks(), starts.size()));
    }
    if (!in_range(options.flow_overhead) || !in_range(options.flow_latency) ||
        !std::all_of(starts.begin(), starts.end(), in_range)) {
        return fail(ErrorKind::kInput, "overhead, latency and starting times lie between 0 and 10 days");
    }
    if (options.cut_through && options.model == PortModel::kExclusive) {
        return fail(ErrorKind::kInput, "cut-through exists in the fluid model only");
    }
    if (options.model == PortModel::kExclusive &&
        (options.sharing != PortSharing::kMaxMin || options.send_buffer > ByteCount{} ||
         options.receive_buffer > ByteCount{})) {
        return fail(ErrorKind::kInput, "ports are shared and buffers exist in the fluid model only");
    }
    if (ports.side_count() == 0) {
        return fail(ErrorKind::kInput, "a cluster has at least one server");
    }
    return {};
}

/// From healthy ticks to time; nothing: never.
std::optional<Ticks> after(Ticks start, double ticks) {
    if (!(ticks < static_cast<double>(kEndOfTime - start))) {
        return std::nullopt;
    }
    return start + std::llround(ticks);
}

} // namespace

Result<Rates> Rates::make(const PortTable& ports, const SimulationOptions& options) {
    if (const Result<void> good = check(ports, options); !good) {
        return tl::unexpected(good.error());
    }
    Rates rates;
    rates.element_ticks_ = options.element_bytes * kBitsPerByte * kPicosecondsPerSecond /
                           static_cast<double>(options.healthy_goodput.bits_per_s());
    for (SideNumber side = 0; side < ports.side_count(); ++side) {
        const Rational& slowdown = ports.slowdown(side);
        const double value = slowdown < 0 ? kInfinite : to_double(slowdown);
        rates.slowdown_.push_back(value);
        rates.initial_.push_back(value == 0 ? kInfinite : 1 / value);
    }
    if (!options.timeline.empty()) {
        rates.changes_of_.resize(rates.initial_.size());
    }
    Nanoseconds last{0};
    for (const RateChange& change : options.timeline) {
        if (change.at < last || !in_range(change.at)) {
            return fail(ErrorKind::kInput, "changes of rates come in order of time, from 0 to 10 days");
        }
        last = change.at;
        if (const Result<void> added = rates.add_change(ports, options, change); !added) {
            return tl::unexpected(added.error());
        }
    }
    return rates;
}

Result<void> Rates::add_change(const PortTable& ports, const SimulationOptions& options, const RateChange& change) {
    const std::int32_t nics = options.topology.nics_per_server;
    if (change.server < 0 || change.server >= options.topology.server_count() ||
        (change.nic && (*change.nic < 0 || *change.nic >= nics))) {
        return fail(ErrorKind::kInput, fmt::format("a rate changes on NIC {} of server {}, which there is not",
                                                   change.nic.value_or(0), change.server));
    }
    for (std::int32_t nic = change.nic.value_or(0); nic < (change.nic ? *change.nic + 1 : nics); ++nic) {
        for (const bool receive : {false, true}) {
            const std::optional<double>& rate = receive ? change.receive : change.send;
            if (!rate) {
                continue;
            }
            if (!(*rate >= 0) || !std::isfinite(*rate)) {
                return fail(ErrorKind::kInput, "a rate is a fraction of the healthy one, 0 and above");
            }
            const SideChange entry{to_ticks(change.at), ports.nic_side(change.server, nic, receive), *rate};
            changes_.push_back(entry);
            changes_of_[static_cast<std::size_t>(entry.side)].push_back(entry);
        }
    }
    return {};
}

std::optional<Ticks> Rates::transfer_end(SideNumber a, SideNumber b, std::int64_t elements, Ticks start) const {
    const double work = static_cast<double>(elements) * element_ticks_;
    if (!changes_.empty()) {
        return changing_end(a, b, work, start);
    }
    return after(start,
                 work * std::max(slowdown_[static_cast<std::size_t>(a)], slowdown_[static_cast<std::size_t>(b)]));
}

std::optional<Ticks> Rates::changing_end(SideNumber a, SideNumber b, double work, Ticks start) const {
    struct Cursor {
        const std::vector<SideChange>& list;
        std::vector<SideChange>::const_iterator next;
        double slowdown;
        [[nodiscard]] Ticks until() const { return next == list.end() ? kEndOfTime : next->at; }
        void pass(Ticks now) {
            for (; next != list.end() && next->at <= now; ++next) {
                slowdown = 1 / next->rate;
            }
        }
    };
    const auto cursor = [this](SideNumber side) {
        const auto& list = changes_of_[static_cast<std::size_t>(side)];
        return Cursor{list, list.begin(), slowdown_[static_cast<std::size_t>(side)]};
    };
    Cursor first = cursor(a);
    Cursor second = cursor(b);
    for (Ticks now = start; now < kEndOfTime;) {
        first.pass(now);
        second.pass(now);
        const double slowdown = std::max(first.slowdown, second.slowdown);
        const Ticks until = std::min(first.until(), second.until());
        const std::optional<Ticks> end = after(now, work * slowdown);
        if (end && *end <= until) {
            return end;
        }
        work = std::max(0.0, work - static_cast<double>(until - now) / slowdown);
        now = until;
    }
    return std::nullopt;
}

} // namespace railbreak::collective::simulation
