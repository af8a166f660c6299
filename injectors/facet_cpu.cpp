// A process gets a part of one CPU's time: a quota on a cgroup of its own. The period is short, so that the process is
// slow all the time and not fast and then still.
//
// In cgroup v2 a group only has a quota when the controller cpu was given to the children of every cgroup above it.
// Where it was not, that is a change to the host too, and is taken back. Several processes may need it at once, of
// several runs, and whoever goes last must take it back; so a cgroup that railbreak changed holds an empty marker
// cgroup for as long.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/netlink.hpp"
#include "injectors/process_group.hpp"
#include "injectors/shaping.hpp"
#include "injectors/wire.hpp"

#include <cerrno>

namespace railbreak::injectors {

namespace {

constexpr std::uint64_t kPeriodUs = 10'000;
constexpr std::uint64_t kLeastQuotaUs = 1'000;        ///< min_cfs_quota_period of the kernel's scheduler
constexpr std::uint64_t kLongestPeriodUs = 1'000'000; ///< max_cfs_quota_period

struct Former {
    GroupPlace place;
    /// cgroup v2: cgroups whose children do not have the controller cpu of themselves, the topmost first.
    std::vector<std::string> closed;
};

struct Quota {
    std::uint64_t quota_us = 0;
    std::uint64_t period_us = kPeriodUs;
};

/// The kernel takes no quota below a millisecond: a smaller part gets a longer period.
Quota quota_of(Millionths cpu) {
    Quota quota{cpu * kPeriodUs / kMillion, kPeriodUs};
    if (quota.quota_us < kLeastQuotaUs) {
        quota = {kLeastQuotaUs, kLeastQuotaUs * kMillion / cpu};
    }
    return quota;
}

/// Reads "QUOTA PERIOD"; false for "max PERIOD" and anything else.
bool parse_quota(std::string_view text, Quota& quota) {
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, quota.quota_us);
    return first.ec == std::errc() && first.ptr != end &&
           std::from_chars(first.ptr + 1, end, quota.period_us).ec == std::errc() && quota.period_us != 0;
}

/// True when the kernel holds the quota, or a multiple of both: where its timer cannot keep up with a period, it makes
/// both longer by itself (sched_cfs_period_timer).
bool same_part(std::string_view text, const Quota& wanted) {
    Quota now;
    return parse_quota(text, now) && now.period_us >= wanted.period_us &&
           now.quota_us * wanted.period_us == wanted.quota_us * now.period_us;
}

bool has_controller(std::string_view list) {
    return (" " + std::string(list.substr(0, list.find('\n'))) + " ").find(" cpu ") != std::string::npos;
}

tl::unexpected<Error> refuse_quota(const FacetContext& context, std::string_view why) {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} cannot get a CPU quota: {}", to_string(context.target), why))
                    .with("pid", std::to_string(context.target.process.pid)));
}

/// The cgroup and all above it, the topmost first: "/", "/a", "/a/b".
std::vector<std::string> path_to(const std::string& cgroup) {
    std::vector<std::string> path{"/"};
    for (std::size_t end = cgroup.find('/', 1); cgroup != "/"; end = cgroup.find('/', end + 1)) {
        path.push_back(cgroup.substr(0, end));
        if (end == std::string::npos) {
            break;
        }
    }
    return path;
}

Result<std::string> folder_of(HostOps& ops, const std::string& cgroup) {
    return former_folder(ops, {CgroupTree::kUnified, cgroup, ""});
}

Result<bool> is_there(HostOps& ops, const std::string& folder) {
    const auto names = ops.list_folder(folder);
    if (!names && kernel_errno(names.error()) != ENOENT) {
        return tl::unexpected(names.error());
    }
    return names.has_value();
}

/// Whether the controller must be given to the children of this cgroup. kRefused when that is not possible: beside
/// processes in the cgroup itself the kernel allows it only for the lowest one.
Result<bool> is_closed(HostOps& ops, const FacetContext& context, const std::string& folder, bool lowest) {
    const auto given = ops.read_file(folder + "/cgroup.subtree_control");
    const auto marked = is_there(ops, fmt::format("{}/{}", folder, kCpuMarker));
    if (!given || !marked) {
        return tl::unexpected(given ? marked.error() : given.error());
    }
    if (has_controller(*given)) {
        return *marked;
    }
    const auto allowed = ops.may_write(folder + "/cgroup.subtree_control");
    if (!allowed) {
        return allowed;
    }
    if (!*allowed) {
        return refuse_quota(context, fmt::format("no permission to change {}/cgroup.subtree_control", folder));
    }
    const bool root = !ops.read_file(folder + "/cgroup.type");
    const auto inside = ops.read_file(folder + "/cgroup.procs");
    if (!lowest && !root && inside && !inside->empty()) {
        return refuse_quota(context, fmt::format("{} has processes of its own", folder));
    }
    return true;
}

/// What in the cgroup's children makes use of the controller: "" for nothing, else its name.
Result<std::string> user_of_controller(HostOps& ops, const std::string& folder) {
    const auto names = ops.list_folder(folder);
    if (!names) {
        return tl::unexpected(names.error());
    }
    for (const std::string& name : *names) {
        const std::string child = folder + "/" + name;
        const auto quota = ops.read_file(child + "/cpu.max");
        if (!quota) {
            continue; // a file, or a cgroup that has ended meanwhile
        }
        const auto weight = ops.read_file(child + "/cpu.weight");
        const auto idle = ops.read_file(child + "/cpu.idle");
        const auto given = ops.read_file(child + "/cgroup.subtree_control");
        if (!quota->starts_with("max") || (weight && *weight != "100\n") || (idle && *idle != "0\n") ||
            (given && has_controller(*given))) {
            return name;
        }
    }
    return std::string();
}

/// Gives the controller to the children of a cgroup, marked as ours.
Result<void> open_cgroup(HostOps& ops, const std::string& cgroup) {
    const auto folder = folder_of(ops, cgroup);
    if (!folder) {
        return tl::unexpected(folder.error());
    }
    const auto given = ops.read_file(*folder + "/cgroup.subtree_control");
    if (!given || has_controller(*given)) {
        return given ? Result<void>() : tl::unexpected(given.error());
    }
    return present_is_fine(ops.make_cgroup(fmt::format("{}/{}", *folder, kCpuMarker))).and_then([&] {
        return ops.write_file(*folder + "/cgroup.subtree_control", "+cpu");
    });
}

/// Takes it back unless somebody uses it. What another fault of ours uses keeps its marker; what others use is theirs.
Result<void> close_cgroup(HostOps& ops, const std::string& cgroup) {
    const auto folder = folder_of(ops, cgroup);
    const auto marked = folder ? is_there(ops, fmt::format("{}/{}", *folder, kCpuMarker)) : Result<bool>(false);
    if (!folder || !marked || !*marked) {
        return folder && marked ? Result<void>() : tl::unexpected(folder ? marked.error() : folder.error());
    }
    const auto user = user_of_controller(ops, *folder);
    if (!user || is_group_name(*user)) {
        return user ? Result<void>() : tl::unexpected(user.error());
    }
    if (user->empty()) {
        if (auto taken = ops.write_file(*folder + "/cgroup.subtree_control", "-cpu"); !taken) {
            return taken;
        }
    }
    return gone_is_fine(ops.remove_cgroup(fmt::format("{}/{}", *folder, kCpuMarker)));
}

class Cpu final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kCpu; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.cpu.has_value(); }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        if (request.cpu * kLongestPeriodUs < kLeastQuotaUs * kMillion) {
            return fail(ErrorKind::kInput, fmt::format("the least part of a CPU is {} millionths",
                                                       kLeastQuotaUs * kMillion / kLongestPeriodUs));
        }
        const auto mounts = ops.read_file("/proc/self/mountinfo");
        if (!mounts) {
            return tl::unexpected(mounts.error());
        }
        const auto unified = find_mount(*mounts, CgroupTree::kUnified);
        const auto controllers =
            unified ? ops.read_file(unified->folder + "/cgroup.controllers") : Result<std::string>(std::string());
        if (controllers && has_controller(*controllers)) {
            return look_unified(ops, context, request.cpu);
        }
        if (!find_mount(*mounts, CgroupTree::kCpu)) {
            return refuse_quota(context, "no cgroups with the controller cpu are mounted");
        }
        return look_old(ops, context, request.cpu);
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState& wanted) const override {
        const Quota quota = quota_of(*wanted.cpu);
        auto done = make_group(ops, former.place);
        for (const std::string& cgroup : former.closed) {
            done = done ? open_cgroup(ops, cgroup) : done;
        }
        return done.and_then([&] { return set_quota(ops, former.place, quota); }).and_then([&] {
            return gather(ops, former.place, context.target.process);
        });
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const override {
        return clean_up(ops, context, former);
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        if (!wanted.cpu) {
            return Readback();
        }
        const Quota quota = quota_of(*wanted.cpu);
        const auto inside = holds(ops, former.place, context.target.process);
        const auto now = read_quota(ops, former.place);
        if (!inside || !now) {
            return tl::unexpected(inside ? now.error() : inside.error());
        }
        if (!*inside || !same_part(*now, quota)) {
            return fail(ErrorKind::kHarness, fmt::format("{} has no quota of {} us in {} us", to_string(context.target),
                                                         quota.quota_us, quota.period_us));
        }
        return Readback{{"cpu_quota_us", std::to_string(quota.quota_us)},
                        {"cpu_period_us", std::to_string(quota.period_us)}};
    }

    Readback closing_values(HostOps& ops, const FacetContext&, const Former& former,
                            const WantedState&) const override {
        const std::string stat = read_group(ops, former.place, "cpu.stat").value_or(std::string());
        Readback seen;
        const auto add = [&](std::string_view name, std::string_view counter) {
            if (const std::string_view value = flat_value(stat, counter); !value.empty()) {
                seen.emplace_back(name, value);
            }
        };
        add("cpu_used_us", "usage_usec");
        add("cpu_periods", "nr_periods");
        add("cpu_throttled_periods", "nr_throttled");
        add("cpu_throttled_us", "throttled_usec");
        add("cpu_throttled_ns", "throttled_time"); // cgroup v1
        return seen;
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const auto quota = read_quota(ops, former.place);
        if (!quota) {
            return tl::unexpected(quota.error());
        }
        if (!quota->empty() && !quota->starts_with("max")) {
            return fail(ErrorKind::kTeardown, fmt::format("{} still has a CPU quota", to_string(context.target)));
        }
        auto notes = verify_dissolved(ops, context, former.place);
        for (const std::string& cgroup : former.closed) {
            const auto folder = notes ? folder_of(ops, cgroup) : tl::unexpected(notes.error());
            const auto user = folder ? user_of_controller(ops, *folder) : folder;
            const auto marked = user ? is_there(ops, fmt::format("{}/{}", *folder, kCpuMarker)) : Result<bool>(false);
            if (!user || !marked) {
                return tl::unexpected(user ? marked.error() : user.error());
            }
            if (*marked && user->empty()) {
                return fail(ErrorKind::kTeardown, fmt::format("the children of {} still have a controller", cgroup));
            }
            if (!user->empty() && !is_group_name(*user)) {
                notes->push_back(fmt::format("{}/{} uses the controller cpu now, so it stays", cgroup, *user));
            }
        }
        return notes;
    }

    Result<void> clean_up(HostOps& ops, const FacetContext&, const Former& former) const override {
        const bool unified = former.place.tree == CgroupTree::kUnified;
        auto done = unified ? write_group(ops, former.place, "cpu.max", "max", true)
                            : write_group(ops, former.place, "cpu.cfs_quota_us", "-1", true);
        done = done.and_then([&] { return dissolve(ops, former.place); });
        for (auto cgroup = former.closed.rbegin(); cgroup != former.closed.rend(); ++cgroup) {
            done = done ? close_cgroup(ops, *cgroup) : done;
        }
        return done;
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState& wanted) const override {
        const Quota quota = quota_of(*wanted.cpu);
        const GroupPlace& place = former.place;
        Steps steps;
        for (const std::string& cgroup : former.closed) {
            steps.changes.push_back(fmt::format("{}: controller cpu given to its children", cgroup));
        }
        steps.changes.push_back(
            fmt::format("{}: {} us of CPU time in {} us", place.name, quota.quota_us, quota.period_us));
        steps.changes.push_back(fmt::format("{}: into the {} {} below {}, with its children", to_string(context.target),
                                            to_string(place.tree), place.name, place.former));
        steps.undo.push_back(fmt::format("{}: no quota", place.name));
        steps.undo.push_back(fmt::format("{}: everything in it back to {}, removed", place.name, place.former));
        for (auto cgroup = former.closed.rbegin(); cgroup != former.closed.rend(); ++cgroup) {
            steps.undo.push_back(fmt::format("{}: controller cpu taken back from its children, if unused", *cgroup));
        }
        return steps;
    }

    std::string words(const Former& former) const override {
        return former.place.tree == CgroupTree::kUnified ? "cgroup v2 cpu.max" : "cgroup v1 CPU quota";
    }

    std::string encode(const Former& former) const override {
        Encoder out;
        put_place(out, former.place);
        out.put_strings(former.closed);
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        const bool place = get_place(in, former.place);
        former.closed = in.get_strings();
        if (!place || former.place.name.empty() || !in.finished()) {
            return fail(ErrorKind::kInput, "the former state of a CPU quota is damaged");
        }
        return former;
    }

private:
    static Result<Former> look_unified(HostOps& ops, const FacetContext& context, Millionths cpu) {
        auto place = find_place(ops, context, CgroupTree::kUnified);
        if (!place) {
            return tl::unexpected(place.error());
        }
        Former former{std::move(*place), {}};
        for (const std::string& cgroup : path_to(former.place.former)) {
            const auto folder = folder_of(ops, cgroup);
            if (!folder) {
                continue; // above what is mounted here, and as it is
            }
            const auto closed = is_closed(ops, context, *folder, cgroup == former.place.former);
            if (!closed) {
                return tl::unexpected(closed.error());
            }
            if (*closed) {
                former.closed.push_back(cgroup);
            }
        }
        return former_folder(ops, former.place).and_then([&](const std::string& folder) {
            return check_limit(context, ops.read_file(folder + "/cpu.max").value_or("max"), cpu, std::move(former));
        });
    }

    static Result<Former> look_old(HostOps& ops, const FacetContext& context, Millionths cpu) {
        auto place = find_place(ops, context, CgroupTree::kCpu);
        if (!place) {
            return tl::unexpected(place.error());
        }
        Former former{std::move(*place), {}};
        return former_folder(ops, former.place).and_then([&](const std::string& folder) -> Result<Former> {
            const auto quota = ops.read_file(folder + "/cpu.cfs_quota_us");
            const auto period = ops.read_file(folder + "/cpu.cfs_period_us");
            if (!quota || !period) {
                return refuse_quota(context, "the kernel was built without CPU quotas (CONFIG_CFS_BANDWIDTH)");
            }
            std::string limit = quota->starts_with("-1") ? "max" : quota->substr(0, quota->find('\n'));
            return check_limit(context, limit + " " + *period, cpu, std::move(former));
        });
    }

    /// Refuses a quota that the former cgroup's own ("QUOTA PERIOD" or "max PERIOD") makes useless.
    static Result<Former> check_limit(const FacetContext& context, std::string_view limit, Millionths cpu,
                                      Former former) {
        Quota held;
        if (!parse_quota(limit, held)) {
            return former; // "max"
        }
        if (held.quota_us * kMillion <= std::uint64_t{cpu} * held.period_us) {
            return refuse_quota(context, fmt::format("its cgroup {} allows no more than {} us in {} us already",
                                                     former.place.former, held.quota_us, held.period_us));
        }
        return former;
    }

    static Result<void> set_quota(HostOps& ops, const GroupPlace& place, const Quota& quota) {
        if (place.tree == CgroupTree::kUnified) {
            return write_group(ops, place, "cpu.max", fmt::format("{} {}", quota.quota_us, quota.period_us), false);
        }
        return write_group(ops, place, "cpu.cfs_period_us", std::to_string(quota.period_us), false).and_then([&] {
            return write_group(ops, place, "cpu.cfs_quota_us", std::to_string(quota.quota_us), false);
        });
    }

    /// As cgroup v2 writes it: "QUOTA PERIOD" or "max PERIOD"; empty when there is no group.
    static Result<std::string> read_quota(HostOps& ops, const GroupPlace& place) {
        if (place.tree == CgroupTree::kUnified) {
            return read_group(ops, place, "cpu.max");
        }
        const auto quota = read_group(ops, place, "cpu.cfs_quota_us");
        const auto period = read_group(ops, place, "cpu.cfs_period_us");
        if (!quota || !period) {
            return quota ? period : quota;
        }
        return quota->empty() ? *quota : fmt::format("{} {}", *quota == "-1" ? "max" : *quota, *period);
    }
};

} // namespace

const Facet& cpu_facet() {
    static const Cpu facet;
    return facet;
}

} // namespace railbreak::injectors
