#include "harness/cli/plan_arguments.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.hpp"

namespace railbreak::cli {

namespace {

using collective::PlannerInput;
using collective::Rank;

constexpr std::uint32_t kElementBytes = 4;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kLeastRate = 1'000'000;
constexpr std::uint64_t kMostRate = 100'000'000'000'000;
constexpr Nanoseconds kMostFlowCost = std::chrono::seconds(1);
constexpr std::int64_t kMostLocalRatio = 10000;

tl::unexpected<Error> refuse(std::string_view option, std::string_view what, std::string_view allowed) {
    return fail(
        Error(ErrorKind::kUsage, fmt::format("{}: {}", option, what)).advise(fmt::format("allowed: {}", allowed)));
}

/// An error of a reader of quantities, as one of the command line.
tl::unexpected<Error> refuse(std::string_view option, const Error& error) {
    return fail(Error(ErrorKind::kUsage, fmt::format("{}: {}", option, error.message())).advise(error.advice()));
}

Result<BitRate> read_rate(const std::string& text) {
    Result<BitRate> rate = parse_bit_rate(text);
    if (!rate) {
        return refuse("--rate", rate.error());
    }
    if (rate->bits_per_s() < kLeastRate || rate->bits_per_s() > kMostRate) {
        return refuse("--rate", fmt::format("{} is no rate of a NIC", text), "1Mbit/s to 100000Gbit/s");
    }
    return rate;
}

Result<Nanoseconds> read_flow_cost(std::string_view option, const std::string& text) {
    Result<Nanoseconds> cost = parse_duration(text);
    if (!cost) {
        return refuse(option, cost.error());
    }
    if (*cost > kMostFlowCost) {
        return refuse(option, fmt::format("{} a flow is too much", text), "0ns to 1s");
    }
    return cost;
}

Result<Rational> read_slowdown(std::string_view entry, std::string_view fraction) {
    constexpr const char* kAllowed = "present over healthy bandwidth, from 1/100 to 1, as in 3:1/2 or 3:0.875";
    const Result<Rational> present = parse_rational(fraction);
    if (!present) {
        return refuse("--slow", fmt::format("\"{}\" in \"{}\" is no fraction", fraction, entry), kAllowed);
    }
    if (*present > 1 || *present * kMostSlowdown < 1) {
        return refuse("--slow", fmt::format("{} in \"{}\" is not between 1/{} and 1", fraction, entry, kMostSlowdown),
                      kAllowed);
    }
    return Rational(1 / *present);
}

/// "1/2", "send=1/2", "send=1/2+receive=3/4": both directions, one, each.
Result<collective::PortSlowdown> read_directions(std::string_view entry, std::string_view text) {
    collective::PortSlowdown server;
    if (text.find('=') == std::string_view::npos) {
        const Result<Rational> both = read_slowdown(entry, text);
        if (!both) {
            return tl::unexpected(both.error());
        }
        return collective::PortSlowdown{.send = *both, .receive = *both};
    }
    std::set<std::string_view> seen;
    for (bool more = true; more;) {
        const std::string_view part = text.substr(0, text.find('+'));
        more = part.size() < text.size();
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        const std::string_view direction = part.substr(0, part.find('='));
        if ((direction != "send" && direction != "receive") || direction.size() == part.size() ||
            !seen.insert(direction).second) {
            return refuse("--slow", fmt::format("\"{}\" is not understood", entry),
                          "HOST:FRACTION, HOST:send=FRACTION, HOST:receive=FRACTION or "
                          "HOST:send=FRACTION+receive=FRACTION");
        }
        const Result<Rational> slowdown = read_slowdown(entry, part.substr(direction.size() + 1));
        if (!slowdown) {
            return tl::unexpected(slowdown.error());
        }
        (direction == "send" ? server.send : server.receive) = *slowdown;
    }
    return server;
}

/// The number before the colon of "HOST:..."; nothing when there is none.
std::optional<Rank> read_number(std::string_view text) {
    Rank number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size() && number >= 0;
    return whole ? std::optional(number) : std::nullopt;
}

/// The host of "HOST:..." in the option.
Result<Rank> read_host(std::string_view option, const std::string& entry, std::string_view form,
                       const collective::Topology& topology) {
    const std::size_t colon = entry.find(':');
    const std::optional<Rank> server = read_number(std::string_view(entry).substr(0, colon));
    if (colon == std::string::npos || !server) {
        return refuse(option, fmt::format("\"{}\" is not understood", entry), form);
    }
    if (*server >= topology.server_count()) {
        return refuse(option, fmt::format("there is no host {}", *server),
                      fmt::format("hosts 0 to {}", topology.server_count() - 1));
    }
    return *server;
}

Result<void> read_slow(const std::vector<std::string>& entries, collective::Topology& topology) {
    std::set<Rank> seen;
    for (const std::string& entry : entries) {
        const Result<Rank> server =
            read_host("--slow", entry, "HOST:FRACTION, hosts numbered from 0, as in 3:1/2,7:7/8", topology);
        if (!server) {
            return tl::unexpected(server.error());
        }
        if (!seen.insert(*server).second) {
            return refuse("--slow", fmt::format("host {} is there twice", *server),
                          "each host once; HOST:send=FRACTION+receive=FRACTION for different directions");
        }
        const Result<collective::PortSlowdown> slow =
            read_directions(entry, std::string_view(entry).substr(entry.find(':') + 1));
        if (!slow) {
            return tl::unexpected(slow.error());
        }
        topology.servers[static_cast<std::size_t>(*server)] = *slow;
    }
    return {};
}

Result<void> read_dead(const std::vector<std::string>& entries, collective::Topology& topology) {
    for (const std::string& entry : entries) {
        const Result<Rank> server =
            read_host("--dead", entry, "HOST:NIC, both numbered from 0, as in 3:0,3:1", topology);
        if (!server) {
            return tl::unexpected(server.error());
        }
        const std::optional<Rank> nic = read_number(std::string_view(entry).substr(entry.find(':') + 1));
        if (!nic || *nic >= topology.nics_per_server) {
            return refuse("--dead", fmt::format("\"{}\" names no NIC", entry),
                          fmt::format("NICs 0 to {}", topology.nics_per_server - 1));
        }
        collective::PortSlowdown& one = topology.servers[static_cast<std::size_t>(*server)];
        if (one.failed_nics == 0 && one.worst() > 1) {
            return refuse("--dead", fmt::format("host {} is also in --slow", *server), "a host in one of the two");
        }
        one.failed_nics |= std::uint64_t{1} << static_cast<unsigned>(*nic);
        const int alive = topology.nics_per_server - std::popcount(one.failed_nics);
        if (alive < 1) {
            return refuse("--dead", fmt::format("host {} has no NIC left", *server),
                          "at least one NIC of a host alive");
        }
        one.send = one.receive = Rational(topology.nics_per_server, alive);
    }
    return {};
}

Result<collective::Topology> read_topology(const PlanArguments& arguments) {
    if (arguments.servers < 2 || arguments.servers > kMostServers) {
        return refuse("--servers", fmt::format("{} servers", arguments.servers), fmt::format("2 to {}", kMostServers));
    }
    if (arguments.ranks_per_server < 1 || arguments.ranks_per_server > kMostRanksPerServer) {
        return refuse("--ranks-per-server", fmt::format("{} ranks", arguments.ranks_per_server),
                      fmt::format("1 to {}", kMostRanksPerServer));
    }
    const std::int64_t ranks = arguments.servers * arguments.ranks_per_server;
    if (ranks > kMostRanks) {
        return refuse("--ranks-per-server", fmt::format("{} ranks in all", ranks),
                      fmt::format("at most {} ranks in all", kMostRanks));
    }
    if (arguments.nics && (*arguments.nics < 1 || *arguments.nics > kMostNics)) {
        return refuse("--nics", fmt::format("{} NICs a server", *arguments.nics), fmt::format("1 to {}", kMostNics));
    }
    collective::Topology topology = collective::healthy_topology(static_cast<Rank>(arguments.servers));
    topology.ranks_per_server = static_cast<Rank>(arguments.ranks_per_server);
    topology.nics_per_server = static_cast<std::int32_t>(arguments.nics.value_or(arguments.ranks_per_server));
    if (!arguments.nvlink.empty()) {
        const Result<Rational> ratio = parse_rational(arguments.nvlink);
        if (!ratio || *ratio == 0 || *ratio > kMostLocalRatio) {
            return refuse("--nvlink", fmt::format("\"{}\" is no ratio", arguments.nvlink),
                          "bandwidth of an intra-host port over that of a NIC, above 0 up to 10000");
        }
        topology.local_ratio = *ratio;
    }
    if (Result<void> slow = read_slow(arguments.slow, topology); !slow) {
        return tl::unexpected(slow.error());
    }
    if (Result<void> dead = read_dead(arguments.dead, topology); !dead) {
        return tl::unexpected(dead.error());
    }
    return topology;
}

Result<std::vector<const collective::Algorithm*>> read_algorithms(const std::vector<std::string>& names) {
    if (names.empty()) {
        return collective::plannable_algorithms();
    }
    std::vector<const collective::Algorithm*> list;
    for (const std::string& name : names) {
        const auto all = collective::plannable_algorithms();
        const auto found = std::ranges::find(all, std::string_view(name), &collective::Algorithm::name);
        if (found == all.end()) {
            std::vector<std::string_view> allowed;
            std::ranges::transform(all, std::back_inserter(allowed), &collective::Algorithm::name);
            return refuse("--algorithm", fmt::format("there is no algorithm \"{}\"", name),
                          fmt::format("{}", fmt::join(allowed, ", ")));
        }
        if (std::ranges::find(list, *found) == list.end()) {
            list.push_back(*found);
        }
    }
    return list;
}

std::string describe(const std::vector<collective::OptionHelp>& options) {
    std::vector<std::string> list;
    for (const collective::OptionHelp& option : options) {
        list.push_back(fmt::format("{} ({})", option.name, option.values));
    }
    return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
}

Result<void> read_options(const PlanArguments& arguments, PlannerInput& input) {
    if (!arguments.options.empty() && input.algorithms.size() != 1) {
        return refuse("--option", "options are those of one algorithm", "--option together with one --algorithm");
    }
    std::set<std::string> seen;
    for (const std::string& option : arguments.options) {
        const std::size_t equals = option.find('=');
        if (equals == std::string::npos || equals == 0) {
            return refuse("--option", fmt::format("\"{}\" is not understood", option), "NAME=VALUE");
        }
        std::string name = option.substr(0, equals);
        const std::vector<collective::OptionHelp> known = input.algorithms.front()->options();
        if (std::ranges::find(known, std::string_view(name), &collective::OptionHelp::name) == known.end()) {
            return refuse("--option", fmt::format("{} has no option \"{}\"", input.algorithms.front()->name(), name),
                          describe(known));
        }
        if (!seen.insert(name).second) {
            return refuse("--option", fmt::format("{} is there twice", name), "each option once");
        }
        input.request.options.emplace_back(std::move(name), option.substr(equals + 1));
    }
    return {};
}

} // namespace

Result<std::int64_t> read_elements(std::string_view bytes) {
    const Result<ByteCount> size = parse_byte_count(bytes);
    if (!size) {
        return refuse("--bytes", size.error());
    }
    if (size->bytes() == 0 || size->bytes() > kMostBytes || size->bytes() % kElementBytes != 0) {
        return refuse("--bytes", fmt::format("{} is no message", bytes), "4B to 1TiB in elements of 4 bytes");
    }
    return static_cast<std::int64_t>(size->bytes() / kElementBytes);
}

Result<PlannerInput> read_plan_arguments(const PlanArguments& arguments) {
    PlannerInput input;
    const Result<collective::Topology> topology = read_topology(arguments);
    const Result<std::int64_t> elements = read_elements(arguments.bytes);
    const Result<BitRate> rate = read_rate(arguments.rate);
    const Result<Nanoseconds> overhead = read_flow_cost("--overhead", arguments.overhead);
    const Result<Nanoseconds> latency = read_flow_cost("--latency", arguments.latency);
    const Result<std::vector<const collective::Algorithm*>> algorithms = read_algorithms(arguments.algorithms);
    for (const Error* error : {topology ? nullptr : &topology.error(), elements ? nullptr : &elements.error(),
                               rate ? nullptr : &rate.error(), overhead ? nullptr : &overhead.error(),
                               latency ? nullptr : &latency.error(), algorithms ? nullptr : &algorithms.error()}) {
        if (error != nullptr) {
            return tl::unexpected(*error);
        }
    }
    if (arguments.model != "exclusive" && arguments.model != "fluid") {
        return refuse("--model", fmt::format("there is no port model \"{}\"", arguments.model), "exclusive, fluid");
    }
    input.model = arguments.model == "fluid" ? collective::PortModel::kFluid : collective::PortModel::kExclusive;
    input.request = {.topology = *topology,
                     .elements = *elements,
                     .element_bytes = kElementBytes,
                     .healthy_goodput = *rate,
                     .flow_overhead = *overhead,
                     .flow_latency = *latency};
    input.algorithms = *algorithms;
    input.simulate = arguments.simulate || arguments.tune;
    input.tune = arguments.tune;
    if (Result<void> options = read_options(arguments, input); !options) {
        return tl::unexpected(options.error());
    }
    return input;
}

} // namespace railbreak::cli
