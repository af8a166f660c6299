#include "injectors/sweep.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include "injectors/ballast.hpp"
#include "injectors/drop_rules.hpp"
#include "injectors/netlink.hpp"
#include "injectors/nft_messages.hpp"
#include "injectors/process_group.hpp"
#include "injectors/shaping.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint8_t kOwnProtocol = 202; ///< of routes and policy rules
constexpr std::uint32_t kFirstMajor = 0xfa01;
constexpr std::uint32_t kLastMajor = 0xfa0f;
constexpr int kDeepestCgroup = 12;
constexpr int kRounds = 3; ///< removing one thing may bring another to light

/// A tagged object and the way to remove it.
struct Found {
    std::string what;
    std::function<Result<void>()> remove;
};

class Sweeper {
public:
    Sweeper(HostOps& ops, SweepScope scope) : ops_(ops), scope_(scope) {}

    /// Everything with our tags that is there now.
    Result<std::vector<Found>> look();

private:
    Result<void> look_at_link(const LinkRecord& link);
    Result<void> look_at_qdiscs(const LinkRecord& link);
    Result<void> look_at_filters(const LinkRecord& link);
    Result<void> look_at_routes(const LinkRecord& link);
    Result<void> look_at_rules();
    Result<void> look_at_tables();
    void look_at_cgroups(const std::string& mountinfo);
    void look_below(CgroupTree tree, const CgroupMount& mount, const std::string& path, int depth);
    void add(std::string what, std::function<Result<void>()> remove) {
        found_.push_back({std::move(what), std::move(remove)});
    }

    HostOps& ops_;
    SweepScope scope_;
    std::vector<Found> found_;
};

bool is_ours(TcHandle handle) {
    const std::uint32_t major = handle >> 16;
    return major >= kFirstMajor && major <= kLastMajor;
}

/// The header behind that of netlink, and the message with another type: RTM_NEWRULE becomes RTM_DELRULE.
template <class Header> Header header_of(const std::string& message) {
    Header header{};
    if (message.size() >= NLMSG_HDRLEN + sizeof header) {
        std::memcpy(&header, message.data() + NLMSG_HDRLEN, sizeof header);
    }
    return header;
}
std::string with_type(std::string message, std::uint16_t type) {
    nlmsghdr header{};
    std::memcpy(&header, message.data(), sizeof header);
    header.nlmsg_type = type;
    std::memcpy(message.data(), &header, sizeof header);
    return message;
}

/// Protocol of a policy rule: an attribute, unlike that of a route.
std::uint8_t rule_protocol(const std::string& message) {
    const NetlinkMessage copy(message);
    const nlattr* protocol = nlmsg_find_attr(copy.header(), sizeof(fib_rule_hdr), FRA_PROTOCOL);
    return protocol != nullptr ? nla_get_u8(protocol) : 0;
}

Result<std::vector<Found>> Sweeper::look() {
    found_.clear();
    const auto links = ops_.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    for (const LinkRecord& link : *links) {
        if (auto done = look_at_link(link); !done) {
            return tl::unexpected(std::move(done.error()).during("looking at " + link.name));
        }
    }
    if (auto done = look_at_rules().and_then([&] { return look_at_tables(); }); !done) {
        return tl::unexpected(std::move(done.error()));
    }
    if (scope_ == SweepScope::kMachine) {
        // Without proc there is nothing of ours either.
        const std::string mountinfo = ops_.read_file("/proc/self/mountinfo").value_or("");
        look_at_cgroups(mountinfo);
        for (BallastFile& file : find_ballast(mountinfo)) {
            const std::string path = file.path();
            add("ballast file " + path, [file = std::move(file)] { return remove_ballast(file); });
        }
    }
    return std::move(found_);
}

Result<void> Sweeper::look_at_link(const LinkRecord& link) {
    if (link.kind == "ifb" && link.alias.starts_with(std::string(kOwnerPrefix) + " ")) {
        // What redirects to it goes first, in the same round or in the next one.
        add(fmt::format("{}: ifb device of \"{}\"", link.name, link.alias),
            [this, ifindex = link.ifindex] { return ops_.remove_link(ifindex); });
        return {};
    }
    return look_at_filters(link).and_then([&] { return look_at_qdiscs(link); }).and_then([&] {
        return look_at_routes(link);
    });
}

Result<void> Sweeper::look_at_qdiscs(const LinkRecord& link) {
    const auto qdiscs = ops_.qdiscs(link.ifindex);
    if (!qdiscs) {
        return tl::unexpected(qdiscs.error());
    }
    for (const QdiscRecord& qdisc : *qdiscs) {
        if (is_ours(qdisc.handle) && !is_ours(qdisc.parent)) { // what hangs below goes with it
            add(fmt::format("{}: qdisc {}", link.name, describe_qdisc(qdisc)),
                [this, ifindex = link.ifindex, parent = qdisc.parent, handle = qdisc.handle] {
                    return ops_.remove_qdisc(ifindex, parent, handle);
                });
        }
    }
    return {};
}

Result<void> Sweeper::look_at_filters(const LinkRecord& link) {
    const auto filters = ops_.filters(link.ifindex);
    if (!filters) {
        return tl::unexpected(filters.error());
    }
    bool others = false;
    bool ours = false;
    for (const FilterRecord& filter : *filters) {
        const bool redirect = filter.priority == kRedirectPriority;
        if (!redirect && filter.priority != kProgramPriority) {
            others = true;
            continue;
        }
        ours = true;
        const bool arriving = (filter.parent & 0xffffU) == TC_H_MIN_INGRESS;
        add(fmt::format("{}: {} filter of priority {:x} for packets that {}", link.name, filter.kind, filter.priority,
                        arriving ? "arrive" : "leave"),
            [this, ifindex = link.ifindex, redirect, priority = filter.priority,
             direction = arriving ? TcDirection::kIngress : TcDirection::kEgress] {
                return redirect ? ops_.remove_redirect(ifindex, direction, priority)
                                : ops_.remove_program(ifindex, direction, priority);
            });
    }
    if (ours && !others) {
        add(fmt::format("{}: qdisc clsact, which held nothing else", link.name),
            [this, ifindex = link.ifindex] { return ops_.remove_qdisc(ifindex, kTcClsactParent, kTcClsactHandle); });
    }
    return {};
}

Result<void> Sweeper::look_at_routes(const LinkRecord& link) {
    const auto routes = ops_.records(RecordKind::kRoutes, link.ifindex);
    if (!routes) {
        return tl::unexpected(routes.error());
    }
    for (const std::string& route : *routes) {
        const auto header = header_of<rtmsg>(route);
        if (header.rtm_protocol == kOwnProtocol) {
            add(fmt::format("{}: route of protocol {} in table {}", link.name, kOwnProtocol, header.rtm_table),
                [this, message = with_type(route, RTM_DELROUTE)] { return ops_.replay(message, 0); });
        }
    }
    return {};
}

Result<void> Sweeper::look_at_rules() {
    const auto rules = ops_.rules();
    if (!rules) {
        return tl::unexpected(rules.error());
    }
    for (const std::string& rule : *rules) {
        if (rule_protocol(rule) == kOwnProtocol) {
            add(fmt::format("policy rule of protocol {} to table {}", kOwnProtocol,
                            header_of<fib_rule_hdr>(rule).table),
                [this, message = with_type(rule, RTM_DELRULE)] { return ops_.replay(message, 0); });
        }
    }
    return {};
}

Result<void> Sweeper::look_at_tables() {
    for (const NftTable& table : drop_tables()) {
        const auto there = ops_.nft_list(nft_get_table(table));
        const int code = there ? 0 : kernel_errno(there.error());
        if (code == ENOENT || code == EOPNOTSUPP || code == EPROTONOSUPPORT || code == EPERM) {
            continue; // none, no nftables in this kernel, or no permission to have made one
        }
        if (!there) {
            return tl::unexpected(there.error());
        }
        add(fmt::format("nftables table {} of family {}", table.name, table.family), [this, table] {
            return ops_.nft({nft_begin(), nft_delete_table(table), nft_end()}, "delete the table " + table.name);
        });
    }
    return {};
}

void Sweeper::look_at_cgroups(const std::string& mountinfo) {
    for (const CgroupTree tree : {CgroupTree::kUnified, CgroupTree::kFreezer, CgroupTree::kCpu}) {
        if (const auto mount = find_mount(mountinfo, tree)) {
            look_below(tree, *mount, "", 0);
        }
    }
}

void Sweeper::look_below(CgroupTree tree, const CgroupMount& mount, const std::string& path, int depth) {
    const auto names = ops_.list_folder(mount.folder + path);
    if (!names || depth > kDeepestCgroup) {
        return; // a file, or a folder that is not for this user
    }
    for (const std::string& name : *names) {
        if (name.find('.') != std::string::npos && !name.ends_with(".slice") && !name.ends_with(".scope") &&
            !name.ends_with(".service")) {
            continue; // a file of a controller
        }
        if (!is_group_name(name) && name != kCpuMarker) {
            look_below(tree, mount, path + "/" + name, depth + 1);
            continue;
        }
        const std::string former = (mount.root == "/" ? "" : mount.root) + path;
        const GroupPlace place{tree, former.empty() ? "/" : former, name};
        add(fmt::format("{} group {}{}/{}", to_string(tree), mount.folder, path, name), [this, place] {
            for (const auto& [file, unset] :
                 {std::pair{"cgroup.freeze", "0"}, std::pair{"cpu.max", "max"}, std::pair{"freezer.state", "THAWED"},
                  std::pair{"cpu.cfs_quota_us", "-1"}}) {
                if (const auto value = read_group(ops_, place, file); value && !value->empty()) {
                    if (auto written = write_group(ops_, place, file, unset, true); !written) {
                        return written;
                    }
                }
            }
            return dissolve(ops_, place);
        });
    }
}

} // namespace

Result<std::vector<TaggedObject>> sweep(HostOps& ops, SweepScope scope, bool remove) {
    Sweeper sweeper(ops, scope);
    std::vector<TaggedObject> objects;
    for (int round = 0; round < kRounds; ++round) {
        const auto found = sweeper.look();
        if (!found) {
            return tl::unexpected(found.error());
        }
        // What was removed and is not there any more is gone for good.
        for (TaggedObject& object : objects) {
            const bool there =
                std::any_of(found->begin(), found->end(), [&](const Found& each) { return each.what == object.what; });
            object.removed = object.removed || !there;
        }
        for (const Found& each : *found) {
            const auto known = std::find_if(objects.begin(), objects.end(),
                                            [&](const TaggedObject& object) { return object.what == each.what; });
            TaggedObject& object = known == objects.end() ? objects.emplace_back(each.what) : *known;
            if (remove) {
                const auto done = each.remove();
                object.error = done ? "it is still there" : done.error().to_line();
            }
        }
        if (found->empty() || !remove) {
            break;
        }
    }
    for (TaggedObject& object : objects) {
        if (object.removed) {
            object.error.clear();
        }
    }
    return objects;
}

} // namespace railbreak::injectors
