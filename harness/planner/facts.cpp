#include "harness/planner/facts.hpp"

#include <bit>

#include <fmt/format.h>

#include "base/units.hpp"

namespace railbreak::planner {

namespace {

constexpr int kMostServersNamed = 6;

std::string plural(std::int64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

} // namespace

std::string port_text(const collective::Port& port) {
    switch (port.kind) {
    case collective::PortKind::kNic: return fmt::format("NIC {}", port.nic);
    case collective::PortKind::kLocal: return "local";
    }
    return {};
}

bool is_slow(const collective::PortSlowdown& server) {
    return server.send > 1 || server.receive > 1 || server.failed_nics != 0;
}

std::string slowdown_text(const collective::Topology& topology, collective::Rank server) {
    const collective::PortSlowdown& ports = topology.server(server);
    if (!is_slow(ports)) {
        return {};
    }
    if (ports.failed_nics != 0) {
        return fmt::format("{} of {} NICs dead", std::popcount(ports.failed_nics), topology.nics_per_server);
    }
    if (ports.send == ports.receive) {
        return fmt::format("slowdown {:.4g}", to_double(ports.send));
    }
    return fmt::format("slowdown {:.4g} sending, {:.4g} receiving", to_double(ports.send), to_double(ports.receive));
}

std::string short_slowdown_text(const collective::Topology& topology, collective::Rank server) {
    const collective::PortSlowdown& ports = topology.server(server);
    if (ports.failed_nics != 0) {
        return fmt::format("{}/{} NICs dead", std::popcount(ports.failed_nics), topology.nics_per_server);
    }
    if (ports.send != ports.receive) {
        return fmt::format("{:.3g} out, {:.3g} in", to_double(ports.send), to_double(ports.receive));
    }
    return slowdown_text(topology, server);
}

std::string cluster_text(const collective::SimulationOptions& simulation) {
    const collective::Topology& topology = simulation.topology;
    std::string text = fmt::format("{} of {} and {}, {} healthy", plural(topology.server_count(), "server"),
                                   plural(topology.ranks_per_server, "rank"), plural(topology.nics_per_server, "NIC"),
                                   to_string(simulation.healthy_goodput));
    int named = 0;
    int unnamed = 0;
    for (collective::Rank server = 0; server < topology.server_count(); ++server) {
        const std::string slow = slowdown_text(topology, server);
        if (slow.empty()) {
            continue;
        }
        if (named == kMostServersNamed) {
            ++unnamed;
            continue;
        }
        text += fmt::format("; server {}: {}", server, slow);
        ++named;
    }
    if (unnamed > 0) {
        text += fmt::format("; {} more slow", unnamed);
    }
    return text;
}

std::string message_text(const collective::Schedule& schedule, const collective::SimulationOptions& simulation) {
    const ByteCount size = ByteCount::bytes(static_cast<std::uint64_t>(schedule.elements()) * simulation.element_bytes);
    return fmt::format("{} ({} of {}), {} ports, overhead {}, latency {}{}", to_string(size),
                       plural(schedule.elements(), "element"), plural(simulation.element_bytes, "byte"),
                       collective::to_string(simulation.model), to_string(simulation.flow_overhead),
                       to_string(simulation.flow_latency), simulation.cut_through ? ", cut-through" : "");
}

} // namespace railbreak::planner
