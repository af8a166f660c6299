#include "harness/agent/collateral.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railbreak::agent {

namespace {

/// Devices that injectors make and remove belong to no NIC that could be harmed.
bool is_watched(const injectors::LinkRecord& link) {
    return link.kind != "ifb" && link.name != "lo";
}

std::set<std::string> interfaces_of(const injectors::FaultRequest& fault) {
    std::set<std::string> names;
    for (const std::string& name : {fault.nic, fault.via_nic}) {
        if (!name.empty()) {
            names.insert(name);
        }
    }
    return names;
}

} // namespace

Result<CollateralWatch::Looks> CollateralWatch::look() {
    const auto links = ops_.links();
    if (!links) {
        return fail(Error(links.error()));
    }
    Looks looks;
    for (const injectors::LinkRecord& link : *links) {
        if (!is_watched(link)) {
            continue;
        }
        const auto qdiscs = ops_.qdiscs(link.ifindex);
        if (!qdiscs) {
            return fail(Error(qdiscs.error()));
        }
        std::vector<std::string> disciplines;
        for (const injectors::QdiscRecord& qdisc : *qdiscs) {
            disciplines.push_back(fmt::format("{} {:x}: under {:x}", qdisc.kind, qdisc.handle, qdisc.parent));
        }
        std::sort(disciplines.begin(), disciplines.end());
        looks[link.name] = {{"flags", fmt::format("{:#x}", link.flags)},
                            {"MTU", std::to_string(link.mtu)},
                            {"address", link.mac},
                            {"master", std::to_string(link.master)},
                            {"queueing disciplines", fmt::format("{}", fmt::join(disciplines, ", "))}};
    }
    return looks;
}

void CollateralWatch::begin(const injectors::FaultRequest& fault) {
    Watch watch{.own = interfaces_of(fault)};
    Result<Looks> looks = look();
    if (looks) {
        watch.before = std::move(*looks);
    } else {
        watch.error = looks.error().to_line();
    }
    for (auto& [id, other] : watches_) {
        for (const std::string& name : watch.own) {
            other.before.erase(name);
        }
        for (const std::string& name : other.own) {
            watch.before.erase(name);
        }
    }
    for (const std::string& name : watch.own) {
        watch.before.erase(name);
    }
    watches_[fault.id] = std::move(watch);
}

std::vector<std::string> CollateralWatch::changes(std::int32_t id) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) {
        return {};
    }
    const Watch& watch = found->second;
    if (!watch.error.empty()) {
        return {"the host's other interfaces could not be looked at before the fault: " + watch.error};
    }
    const Result<Looks> now = look();
    if (!now) {
        return {"the host's other interfaces could not be looked at: " + now.error().to_line()};
    }
    std::vector<std::string> sentences;
    for (const auto& [name, before] : watch.before) {
        const auto there = now->find(name);
        if (there == now->end()) {
            sentences.push_back(fmt::format("{} is gone", name));
            continue;
        }
        for (const auto& [what, value] : before) {
            if (const std::string& changed = there->second.at(what); changed != value) {
                sentences.push_back(fmt::format("{} of {} went from \"{}\" to \"{}\"", what, name, value, changed));
            }
        }
    }
    return sentences;
}

} // namespace railbreak::agent
