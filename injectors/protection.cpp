#include "injectors/protection.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <net/if.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

const LinkRecord* find_index(const std::vector<LinkRecord>& links, std::int32_t ifindex) {
    const auto found =
        std::find_if(links.begin(), links.end(), [&](const auto& each) { return each.ifindex == ifindex; });
    return found == links.end() ? nullptr : &*found;
}

bool is_loopback(const LinkRecord& link) {
    return (link.flags & IFF_LOOPBACK) != 0;
}

} // namespace

Protection::Protection(std::vector<LinkRecord> links, const std::vector<Seed>& seeds,
                       const std::map<std::int32_t, PciFacts>& pci, std::span<const std::int32_t> under_fault,
                       bool control_is_here)
    : links_(std::move(links)), under_fault_(under_fault.begin(), under_fault.end()),
      control_is_here_(control_is_here) {
    for (const Seed& seed : seeds) {
        add(seed.ifindex, seed.why, true);
    }
    while (!to_do_.empty()) {
        const std::int32_t next = to_do_.back();
        to_do_.pop_back();
        close_over(next, pci);
    }
}

/// Enters an interface; one that was protected for the sake of a member only may come again with more weight.
void Protection::add(std::int32_t ifindex, std::string why, bool takes_members) {
    const auto [entry, is_new] = entries_.try_emplace(ifindex, Entry{std::move(why), takes_members});
    if (is_new || (takes_members && !entry->second.takes_members)) {
        entry->second.takes_members = entry->second.takes_members || takes_members;
        to_do_.push_back(ifindex);
    }
}

bool Protection::usable(const LinkRecord& link) const {
    return (link.flags & IFF_UP) != 0 && (link.flags & IFF_RUNNING) != 0 &&
           std::find(under_fault_.begin(), under_fault_.end(), link.ifindex) == under_fault_.end();
}

void Protection::add_members(const LinkRecord& master, const std::string& why) {
    if (master.kind == "vrf") {
        return; // its members are not ways for each other
    }
    const bool redundant = master.kind == "bond" || master.kind == "team";
    std::vector<const LinkRecord*> members;
    for (const LinkRecord& link : links_) {
        if (link.master == master.ifindex && (!redundant || usable(link))) {
            members.push_back(&link);
        }
    }
    if (redundant && members.size() != 1) {
        return;
    }
    for (const LinkRecord* member : members) {
        add(member->ifindex,
            fmt::format("is {} of {}, which {}", redundant ? "the last usable member" : "a member", master.name, why),
            true);
    }
}

void Protection::close_over(std::int32_t ifindex, const std::map<std::int32_t, PciFacts>& pci) {
    const LinkRecord* link = find_index(links_, ifindex);
    if (link == nullptr) {
        return;
    }
    const Entry entry = entries_.at(ifindex);
    const std::string of = fmt::format("{}, which {}", link->name, entry.why);
    if (link->master != 0) {
        add(link->master, "holds " + of, false);
    }
    if (link->lower != 0) {
        add(link->lower, "is below " + of, true);
    }
    if (entry.takes_members) {
        add_members(*link, entry.why);
    }
    const auto facts = pci.find(ifindex);
    if (facts == pci.end()) {
        return;
    }
    for (const LinkRecord& other : links_) {
        const auto& functions = facts->second.physical_functions;
        if (std::find(functions.begin(), functions.end(), other.name) != functions.end()) {
            add(other.ifindex, "is the physical function of " + of, true);
        }
        const auto sibling = pci.find(other.ifindex);
        if (!facts->second.device.empty() && sibling != pci.end() && sibling->second.device == facts->second.device) {
            add(other.ifindex, "is on the same PCI device as " + of, true);
        }
    }
}

std::string Protection::why(std::int32_t ifindex) const {
    const auto found = entries_.find(ifindex);
    return found == entries_.end() ? "" : found->second.why;
}

/// Nothing else that could carry the control connection is up. Where control comes over a pipe of this host, as in the
/// lab, no NIC is its last way.
bool Protection::is_last_way(const LinkRecord& link) const {
    return control_is_here_ && usable(link) && std::none_of(links_.begin(), links_.end(), [&](const LinkRecord& other) {
               return other.ifindex != link.ifindex && !is_loopback(other) && other.kind != "ifb" && usable(other);
           });
}

Result<void> Protection::check(const LinkRecord& link) const {
    const auto refuse = [&](std::string_view why) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{} may not be touched: it {}", link.name, why))
                        .with("nic", link.name));
    };
    if (is_loopback(link)) {
        return refuse("is the loopback interface");
    }
    if (const std::string reason = why(link.ifindex); !reason.empty()) {
        return refuse(reason);
    }
    if (is_last_way(link)) {
        return refuse("is the last interface that is up, and the control connection needs one");
    }
    return {};
}

namespace {

/// The part of an address before the function: "0000:03:00.1" -> "0000:03:00".
std::string pci_device_of(HostOps& ops, const std::string& name) {
    constexpr std::string_view kKey = "PCI_SLOT_NAME=";
    const auto uevent = ops.read_file("/sys/class/net/" + name + "/device/uevent");
    const std::size_t at = uevent ? uevent->find(kKey) : std::string::npos;
    if (at == std::string::npos) {
        return {};
    }
    const std::string slot = uevent->substr(at + kKey.size(), uevent->find('\n', at) - at - kKey.size());
    return slot.substr(0, slot.rfind('.'));
}

std::map<std::int32_t, PciFacts> read_pci(HostOps& ops, const std::vector<LinkRecord>& links) {
    std::map<std::int32_t, PciFacts> facts;
    for (const LinkRecord& link : links) {
        if (!link.kind.empty() || is_loopback(link)) {
            continue; // made by software
        }
        PciFacts one{pci_device_of(ops, link.name), {}};
        if (auto parents = ops.list_folder("/sys/class/net/" + link.name + "/device/physfn/net")) {
            one.physical_functions = std::move(*parents);
        }
        facts[link.ifindex] = std::move(one);
    }
    return facts;
}

/// Collects seeds from one host.
class Seeds {
public:
    Seeds(HostOps& ops, const std::vector<LinkRecord>& links) : ops_(ops), links_(links) {}

    Result<void> gateways() {
        return ops_.default_route_devices().map([&](const std::vector<std::int32_t>& devices) {
            for (const std::int32_t device : devices) {
                seeds_.push_back({device, "carries the default route"});
            }
        });
    }
    void names(std::span<const std::string> named) {
        for (const LinkRecord& link : links_) {
            if (std::find(named.begin(), named.end(), link.name) != named.end()) {
                seeds_.push_back({link.ifindex, "carries the control connection"});
                control_is_here_ = true;
            } else if (!is_loopback(link) &&
                       (sounds_like_management(link.name) || sounds_like_management(link.alias))) {
                seeds_.push_back({link.ifindex, "is for management, to judge by its name"});
            }
        }
    }
    /// The device that has the local address, and those that lead to the peer: only for a connection of this namespace.
    Result<void> connection(const Connection& connection, bool is_control) {
        const auto addresses = ops_.addresses();
        if (!addresses) {
            return tl::unexpected(addresses.error());
        }
        bool here = connection.local.empty();
        for (const AddressRecord& each : *addresses) {
            if (each.address == connection.local) {
                here = true;
                seeds_.push_back({each.ifindex, "carries " + connection.carries});
            }
        }
        if (!here || connection.peer.empty()) {
            return {};
        }
        control_is_here_ = control_is_here_ || is_control;
        return ops_.route_devices(connection.peer).map([&](const std::vector<std::int32_t>& devices) {
            for (const std::int32_t device : devices) {
                seeds_.push_back({device, "carries " + connection.carries});
            }
        });
    }

    [[nodiscard]] const std::vector<Protection::Seed>& found() const { return seeds_; }
    [[nodiscard]] bool control_is_here() const { return control_is_here_; }

private:
    HostOps& ops_;
    const std::vector<LinkRecord>& links_;
    std::vector<Protection::Seed> seeds_;
    bool control_is_here_ = false;
};

/// A kernel without IPv6 has no such file; any other failed reading is no proof of an empty table.
Result<std::string> read_table(HostOps& ops, const std::string& path) {
    auto text = ops.read_file(path);
    if (!text && kernel_errno(text.error()) == ENOENT) {
        return std::string();
    }
    return text;
}

} // namespace

Result<Protection> find_protection(HostOps& ops, std::span<const std::string> named,
                                   std::span<const std::int32_t> under_fault) {
    auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    Seeds seeds(ops, *links);
    seeds.names(named);
    if (auto done = seeds.gateways(); !done) {
        return tl::unexpected(done.error());
    }
    for (const Connection& control : control_connections()) {
        if (auto done = seeds.connection(control, true); !done) {
            return tl::unexpected(done.error());
        }
    }
    std::vector<Connection> others;
    for (const char* path : {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6", "/proc/self/mountinfo"}) {
        const auto text = read_table(ops, path);
        if (!text) {
            return tl::unexpected(text.error());
        }
        const auto found =
            std::string_view(path).ends_with("mountinfo") ? file_servers(*text) : service_connections(*text);
        others.insert(others.end(), found.begin(), found.end());
    }
    for (const Connection& other : others) {
        if (auto done = seeds.connection(other, false); !done) {
            return tl::unexpected(done.error());
        }
    }
    const auto pci = read_pci(ops, *links);
    return Protection(std::move(*links), seeds.found(), pci, under_fault, seeds.control_is_here());
}

} // namespace railbreak::injectors
