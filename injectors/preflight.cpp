#include "injectors/preflight.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/journal.hpp"

namespace railbreak::injectors {

namespace {

tl::unexpected<Error> refuse(const std::string& nic, std::string_view why) {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} may not be touched: {}", nic, why)).with("nic", nic));
}

const LinkRecord* find_index(const std::vector<LinkRecord>& links, std::int32_t ifindex) {
    const auto found =
        std::find_if(links.begin(), links.end(), [&](const LinkRecord& each) { return each.ifindex == ifindex; });
    return found == links.end() ? nullptr : &*found;
}

/// The interface and the bridges and bonds it is part of: what fails with it.
std::vector<LinkRecord> with_masters(const std::vector<LinkRecord>& links, const LinkRecord& link) {
    std::vector<LinkRecord> chain{link};
    // The kernel allows at most eight levels.
    while (chain.size() < 10 && chain.back().master != 0) {
        const LinkRecord* master = find_index(links, chain.back().master);
        if (master == nullptr) {
            break;
        }
        chain.push_back(*master);
    }
    return chain;
}

} // namespace

Result<CheckedNic> check_nic(HostOps& ops, const FaultRequest& request, std::span<const std::string> protected_nics,
                             bool already_down) {
    if (request.kind == FaultKind::kCap && request.rate < BitRate::bits_per_s(8000)) {
        return fail(Error(ErrorKind::kInput, "the rate of a cap must be at least 8 kbit/s")
                        .with("rate_bits_per_s", std::to_string(request.rate.bits_per_s()))
                        .advise("Use the fault kind link_down to stop all traffic."));
    }
    const auto links = ops.links();
    const auto gateways = ops.default_route_devices();
    const auto netns = ops.netns();
    if (!links || !gateways || !netns) {
        return tl::unexpected(!links ? links.error() : !gateways ? gateways.error() : netns.error());
    }
    const auto link =
        std::find_if(links->begin(), links->end(), [&](const LinkRecord& each) { return each.name == request.nic; });
    if (link == links->end()) {
        return fail(Error(ErrorKind::kInput, fmt::format("there is no network interface {}", request.nic))
                        .with("nic", request.nic));
    }
    if ((link->flags & IFF_LOOPBACK) != 0) {
        return refuse(link->name, "it is the loopback interface");
    }
    for (const LinkRecord& each : with_masters(*links, *link)) {
        if (std::find(protected_nics.begin(), protected_nics.end(), each.name) != protected_nics.end()) {
            return refuse(link->name, each.name + " carries the control connection");
        }
        if (std::find(gateways->begin(), gateways->end(), each.ifindex) != gateways->end()) {
            return refuse(link->name, each.name + " carries the default route");
        }
    }
    if (request.kind == FaultKind::kLinkDown && (link->flags & IFF_UP) == 0 && !already_down) {
        return refuse(link->name, "it is down already");
    }
    return CheckedNic{{link->name, link->ifindex, link->mac, link->permanent_mac, netns->inode, netns->cookie}, *link};
}

Result<void> check_other_runs(const std::string& folder, const std::string& own_journal, const DeviceIdentity& device) {
    const auto paths = list_journals(folder);
    if (!paths) {
        return tl::unexpected(paths.error());
    }
    for (const std::string& path : *paths) {
        if (path == own_journal) {
            continue;
        }
        const auto contents = read_journal_file(path);
        if (!contents) {
            continue; // deleted since it was listed: its run is over
        }
        for (const JournalEntry& entry : contents->open_entries()) {
            if (same_device(entry.device, device)) {
                return fail(Error(ErrorKind::kRefused, fmt::format("{} is under a fault of the railbreak run {}",
                                                                   device.name, contents->run_id))
                                .with("nic", device.name)
                                .with("run", contents->run_id)
                                .with("journal", path)
                                .advise("Wait until that run has ended, or run: railbreak recover"));
            }
        }
    }
    return {};
}

} // namespace railbreak::injectors
