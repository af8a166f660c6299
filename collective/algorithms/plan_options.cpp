#include "collective/algorithms/plan_options.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collective/cost_model.hpp"

namespace railbreak::collective {

namespace {

/// The value of the last option of that name, nullptr when there is none.
const std::string* find_value(const PlanRequest& request, std::string_view name) {
    const std::string* found = nullptr;
    for (const auto& [key, value] : request.options) {
        if (key == name) {
            found = &value;
        }
    }
    return found;
}

} // namespace

Result<void> check_option_names(const PlanRequest& request, const Algorithm& algorithm) {
    const std::vector<OptionHelp> known = algorithm.options();
    for (const auto& [key, value] : request.options) {
        const auto named = [&key = key](const OptionHelp& help) { return help.name == key; };
        if (std::any_of(known.begin(), known.end(), named)) {
            continue;
        }
        std::vector<std::string> list;
        for (const OptionHelp& help : known) {
            list.push_back(fmt::format("{} ({})", help.name, help.values));
        }
        return fail(Error(ErrorKind::kInput, fmt::format("{} has no option \"{}\"", algorithm.name(), key))
                        .advise(list.empty() ? fmt::format("{} takes no options", algorithm.name())
                                             : fmt::format("its options are {}", fmt::join(list, ", "))));
    }
    return {};
}

Result<std::optional<std::int64_t>> whole_option(const PlanRequest& request, std::string_view name, std::int64_t least,
                                                 std::int64_t most) {
    const std::string* text = find_value(request, name);
    if (text == nullptr) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    const char* const last = text->data() + text->size();
    const auto [end, error] = std::from_chars(text->data(), last, value);
    if (error != std::errc{} || end != last || value < least || value > most) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} = \"{}\" is out of range", name, *text))
                        .advise(fmt::format("{} is a whole number from {} to {}", name, least, most)));
    }
    return value;
}

Result<std::optional<std::size_t>> word_option(const PlanRequest& request, std::string_view name,
                                               const std::vector<std::string_view>& words) {
    const std::string* text = find_value(request, name);
    if (text == nullptr) {
        return std::nullopt;
    }
    const auto found = std::find(words.begin(), words.end(), *text);
    if (found == words.end()) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} = \"{}\" is unknown", name, *text))
                        .advise(fmt::format("{} is one of {}", name, fmt::join(words, ", "))));
    }
    return static_cast<std::size_t>(found - words.begin());
}

Result<void> check_one_rank_servers(const PlanRequest& request, std::string_view algorithm, std::string_view instead) {
    if (request.topology.ranks_per_server == 1) {
        return {};
    }
    return fail(Error(ErrorKind::kInput, fmt::format("{} takes one rank a server, here are {}", algorithm,
                                                     request.topology.ranks_per_server))
                    .advise(fmt::format("for servers of several ranks use {}", instead)));
}

bool nic_alive(const Topology& topology, Rank server, std::int32_t nic) {
    return (topology.server(server).failed_nics >> nic & 1U) == 0;
}

std::int32_t nics_in_use(const Topology& topology) {
    return std::min(topology.ranks_per_server, topology.nics_per_server);
}

Result<void> check_nics_alive(const PlanRequest& request, std::string_view algorithm, std::int32_t used) {
    for (Rank server = 0; server < request.topology.server_count(); ++server) {
        for (std::int32_t nic = 0; nic < used; ++nic) {
            if (!nic_alive(request.topology, server, nic)) {
                return fail(Error(ErrorKind::kInput,
                                  fmt::format("{} needs NIC {} of server {}, which is dead", algorithm, nic, server))
                                .advise("iccl and r2ccl-balance go round dead NICs")
                                .with("server", std::to_string(server))
                                .with("nic", std::to_string(nic)));
            }
        }
    }
    return {};
}

std::optional<Rank> slowest_rank(const Topology& topology) {
    std::optional<Rank> slowest;
    double most = kNoticeableSlowdown;
    for (Rank rank = 0; rank < topology.ranks(); ++rank) {
        const double slowdown = to_double(topology.server(topology.server_of(rank)).worst());
        if (slowdown >= most && (!slowest || slowdown > most)) {
            slowest = rank;
            most = slowdown;
        }
    }
    return slowest;
}

} // namespace railbreak::collective
