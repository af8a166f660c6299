#include "injectors/process_group.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "injectors/netlink.hpp"
#include "injectors/shaping.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::string_view kNamePrefix = "railbreak-";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";
constexpr auto kBetweenTries = std::chrono::milliseconds(5);

std::string_view take_word(std::string_view& text, char separator) {
    const std::size_t end = text.find(separator);
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return word;
}

std::vector<std::string_view> words(std::string_view text, char separator) {
    std::vector<std::string_view> found;
    while (!text.empty()) {
        if (const std::string_view word = take_word(text, separator); !word.empty()) {
            found.push_back(word);
        }
    }
    return found;
}

/// The controller that makes a tree of cgroup v1 the one that is meant.
std::string_view controller_of(CgroupTree tree) {
    switch (tree) {
    case CgroupTree::kUnified: return "";
    case CgroupTree::kFreezer: return "freezer";
    case CgroupTree::kCpu: return "cpu";
    }
    return "";
}

bool has_word(std::string_view list, char separator, std::string_view word) {
    const auto all = words(list, separator);
    return std::find(all.begin(), all.end(), word) != all.end();
}

/// mountinfo writes spaces, tabs and backslashes of paths as three octal digits (proc(5)).
std::string unescape(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
            plain.push_back(static_cast<char>(code));
            i += 3;
        } else {
            plain.push_back(text[i]);
        }
    }
    return plain;
}

/// Path of a process's cgroup in the tree; empty when it is in none.
std::string cgroup_of(const ProcessRecord& process, CgroupTree tree) {
    for (const auto& [controllers, path] : process.cgroups) {
        if (tree == CgroupTree::kUnified ? controllers.empty() : has_word(controllers, ',', controller_of(tree))) {
            return path;
        }
    }
    return {};
}

Result<std::string> folder_of(HostOps& ops, CgroupTree tree, const std::string& path) {
    const auto mounts = ops.read_file("/proc/self/mountinfo");
    if (!mounts) {
        return tl::unexpected(mounts.error());
    }
    const auto mount = find_mount(*mounts, tree);
    if (!mount) {
        return fail(ErrorKind::kHarness, fmt::format("{} ({}) is not mounted", to_string(tree),
                                                     tree == CgroupTree::kUnified ? "cgroup2" : controller_of(tree)));
    }
    const std::string root = mount->root == "/" ? "" : mount->root;
    if (!path.starts_with("/") || path.starts_with("/..") || !(path + "/").starts_with(root + "/")) {
        return fail(ErrorKind::kHarness, fmt::format("the cgroup {} cannot be seen from here", path));
    }
    std::string folder = mount->folder + path.substr(root.size());
    return folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder;
}

std::string group_path(const GroupPlace& place) {
    return (place.former == "/" ? "" : place.former) + "/" + place.name;
}

/// "railbreak-RUN-PID".
std::string group_name(const FacetContext& context) {
    constexpr std::size_t kLongestRun = 64;
    const std::size_t space = context.owner.find(' ');
    std::string run = context.owner.substr(space == std::string::npos ? 0 : space + 1).substr(0, kLongestRun);
    for (std::size_t odd = 0; (odd = run.find_first_not_of(kNameLetters, odd)) != std::string::npos;) {
        run[odd] = '_';
    }
    return fmt::format("{}{}-{}", kNamePrefix, run, context.target.process.pid);
}

tl::unexpected<Error> refuse(const FacetContext& context, std::string_view why) {
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} cannot get a cgroup of its own: {}", to_string(context.target), why))
            .with("pid", std::to_string(context.target.process.pid)));
}

/// Threads can be put into cgroups one by one, and would come back together.
Result<bool> threads_together(HostOps& ops, std::int32_t pid) {
    const std::string tasks = fmt::format("/proc/{}/task", pid);
    const auto names = ops.list_folder(tasks);
    if (!names) {
        return tl::unexpected(names.error());
    }
    std::set<std::string> cgroups;
    for (const std::string& name : *names) {
        auto text = ops.read_file(tasks + "/" + name + "/cgroup");
        if (text) {
            cgroups.insert(std::move(*text)); // one that has ended meanwhile is in none
        }
    }
    return cgroups.size() <= 1;
}

/// Whether the folder may have a threaded child (kernel documentation of cgroup v2, "Threads"): the root always, others
/// when no cgroup with processes of another domain is below and no domain controller is given to children.
Result<void> check_threads_allowed(HostOps& ops, const FacetContext& context, const std::string& folder) {
    const auto type = ops.read_file(folder + "/cgroup.type");
    if (!type) {
        return kernel_errno(type.error()) == ENOENT ? Result<void>() : tl::unexpected(type.error());
    }
    if (!ops.read_file(folder + "/cgroup.freeze")) {
        return refuse(context, "the kernel's cgroup v2 has no freezer (Linux 5.2)");
    }
    const auto given = ops.read_file(folder + "/cgroup.subtree_control");
    const auto names = ops.list_folder(folder);
    if (!given || !names) {
        return tl::unexpected(given ? names.error() : given.error());
    }
    for (const std::string_view domain_controller : {"memory", "io", "hugetlb", "rdma"}) {
        if (has_word(given->substr(0, given->find('\n')), ' ', domain_controller)) {
            return refuse(context, fmt::format("its cgroup gives {} to its children", domain_controller));
        }
    }
    if (type->starts_with("threaded")) {
        return {};
    }
    if (type->starts_with("domain invalid")) {
        return refuse(context, "its cgroup stands in a threaded tree and is not threaded itself");
    }
    for (const std::string& name : *names) {
        const auto child = ops.read_file(fmt::format("{}/{}/cgroup.type", folder, name));
        const auto events = ops.read_file(fmt::format("{}/{}/cgroup.events", folder, name));
        if (child && events && child->starts_with("domain") && flat_value(*events, "populated") == "1") {
            return refuse(context, fmt::format("its cgroup has processes in the cgroup {} below", name));
        }
    }
    return {};
}

Result<void> check_permission(HostOps& ops, const FacetContext& context, const std::string& folder) {
    for (const std::string& path : {folder, folder + "/cgroup.procs"}) {
        const auto allowed = ops.may_write(path);
        if (!allowed) {
            return tl::unexpected(allowed.error());
        }
        if (!*allowed) {
            return refuse(context, fmt::format("no permission to change {}", path));
        }
    }
    return {};
}

/// Ids of what is in the group: threads in cgroup v2, where a threaded cgroup does not tell its processes, and
/// processes in cgroup v1. Either moves the whole process when it is written to cgroup.procs.
std::string members_file(const GroupPlace& place, const std::string& folder) {
    return folder + (place.tree == CgroupTree::kUnified ? "/cgroup.threads" : "/cgroup.procs");
}

/// Whether a freezer or a quota is set on the group.
Result<bool> in_use(HostOps& ops, const GroupPlace& place) {
    const auto set = [&](std::string_view file, std::string_view unset) -> Result<bool> {
        return read_group(ops, place, file).map([&](const std::string& text) {
            return !text.empty() && !text.starts_with(unset);
        });
    };
    for (const auto& [file, unset] : {std::pair{"cgroup.freeze", "0"}, std::pair{"cpu.max", "max"},
                                      std::pair{"freezer.state", "THAWED"}, std::pair{"cpu.cfs_quota_us", "-1"}}) {
        const auto used = set(file, unset);
        if (!used || *used) {
            return used;
        }
    }
    return false;
}

/// Moves one of the group's processes back. True when there is none left.
Result<bool> move_one_back(HostOps& ops, const GroupPlace& place, const std::string& group, const std::string& former) {
    const std::string list = members_file(place, group);
    const auto members = ops.read_file(list);
    if (!members) {
        return kernel_errno(members.error()) == ENOENT ? Result<bool>(true) : tl::unexpected(members.error());
    }
    if (members->empty()) {
        return true;
    }
    const auto moved = ops.write_file(former + "/cgroup.procs", members->substr(0, members->find('\n')));
    if (moved) {
        return false;
    }
    if (kernel_errno(moved.error()) != ESRCH) {
        return tl::unexpected(moved.error());
    }
    // It is ending, and leaves the list by itself.
    return ops.wait_file(list, *members, Deadline::after(kBetweenTries)).map([](bool) { return false; });
}

/// The processes that a process has started, as far as its threads know them.
std::vector<std::int32_t> children_of(HostOps& ops, std::int32_t pid) {
    std::vector<std::int32_t> children;
    const std::string tasks = fmt::format("/proc/{}/task", pid);
    for (const std::string& name : ops.list_folder(tasks).value_or(std::vector<std::string>())) {
        const std::string text = ops.read_file(tasks + "/" + name + "/children").value_or(std::string());
        for (const std::string_view word : words(text, ' ')) {
            std::int32_t child = 0;
            if (std::from_chars(word.data(), word.data() + word.size(), child).ec == std::errc()) {
                children.push_back(child);
            }
        }
    }
    return children;
}

} // namespace

std::string_view to_string(CgroupTree tree) {
    return tree == CgroupTree::kUnified ? "cgroup v2" : "cgroup v1";
}

std::optional<CgroupMount> find_mount(std::string_view mountinfo, CgroupTree tree) {
    const std::string_view controller = controller_of(tree);
    while (!mountinfo.empty()) {
        // "id parent major:minor root mount-point options [fields] - type source super-options"
        const std::string_view line = take_word(mountinfo, '\n');
        const std::size_t middle = line.find(" - ");
        if (middle == std::string_view::npos) {
            continue;
        }
        const auto mount = words(line.substr(0, middle), ' ');
        const auto system = words(line.substr(middle + 3), ' ');
        if (mount.size() < 6 || system.size() < 3) {
            continue;
        }
        const bool found =
            controller.empty() ? system[0] == "cgroup2" : system[0] == "cgroup" && has_word(system[2], ',', controller);
        if (found) {
            return CgroupMount{unescape(mount[4]), unescape(mount[3])};
        }
    }
    return std::nullopt;
}

bool is_group_name(std::string_view name) {
    const std::size_t dash = name.rfind('-');
    return name.starts_with(kNamePrefix) && dash >= kNamePrefix.size() && dash + 1 < name.size() &&
           name.find_first_not_of(kDigits, dash + 1) == std::string_view::npos &&
           name.find_first_not_of(kNameLetters) == std::string_view::npos;
}

void put_place(Encoder& out, const GroupPlace& place) {
    out.put(static_cast<std::uint8_t>(place.tree));
    out.put_string(place.former);
    out.put_string(place.name);
}

bool get_place(Decoder& in, GroupPlace& place) {
    const auto tree = in.get<std::uint8_t>();
    place.tree = static_cast<CgroupTree>(tree);
    place.former = in.get_string();
    place.name = in.get_string();
    return in.ok() && tree <= static_cast<std::uint8_t>(CgroupTree::kCpu) &&
           (place.name.empty() || is_group_name(place.name));
}

Result<GroupPlace> find_place(HostOps& ops, const FacetContext& context, CgroupTree tree) {
    const std::int32_t pid = context.target.process.pid;
    const auto process = ops.process(pid);
    if (!process) {
        return tl::unexpected(process.error());
    }
    GroupPlace place{tree, *process ? cgroup_of(**process, tree) : "", group_name(context)};
    if (place.former.empty()) {
        return refuse(context, fmt::format("it is in no {} of {}", to_string(tree),
                                           tree == CgroupTree::kUnified ? "any kind" : controller_of(tree)));
    }
    const std::size_t slash = place.former.rfind('/');
    const std::string last = place.former.substr(slash + 1);
    if (last == place.name) {
        place.former.erase(std::max<std::size_t>(slash, 1)); // another fault of ours made it already
    } else if (is_group_name(last)) {
        return refuse(context, fmt::format("it is in {} of another run", place.former));
    }
    const auto folder = former_folder(ops, place);
    if (!folder) {
        return refuse(context, folder.error().message());
    }
    const auto together = threads_together(ops, pid);
    if (!together) {
        return tl::unexpected(together.error());
    }
    if (!*together) {
        return refuse(context, "its threads are in several cgroups");
    }
    auto allowed = check_permission(ops, context, *folder);
    if (allowed && tree == CgroupTree::kUnified) {
        allowed = check_threads_allowed(ops, context, *folder);
    }
    return allowed ? Result<GroupPlace>(std::move(place)) : tl::unexpected(allowed.error());
}

Result<std::string> former_folder(HostOps& ops, const GroupPlace& place) {
    return folder_of(ops, place.tree, place.former);
}

Result<std::string> group_folder(HostOps& ops, const GroupPlace& place) {
    return folder_of(ops, place.tree, group_path(place));
}

Result<std::string> read_group(HostOps& ops, const GroupPlace& place, std::string_view file) {
    const auto folder = group_folder(ops, place);
    if (!folder) {
        return folder;
    }
    auto text = ops.read_file(fmt::format("{}/{}", *folder, file));
    if (!text) {
        const int code = kernel_errno(text.error());
        return code == ENOENT || code == ENODEV ? Result<std::string>(std::string()) : text;
    }
    if (text->ends_with('\n')) {
        text->pop_back();
    }
    return text;
}

Result<void> write_group(HostOps& ops, const GroupPlace& place, std::string_view file, std::string_view text,
                         bool gone_is_ok) {
    const auto folder = group_folder(ops, place);
    if (!folder) {
        return tl::unexpected(folder.error());
    }
    auto done = ops.write_file(fmt::format("{}/{}", *folder, file), text);
    const int code = done ? 0 : kernel_errno(done.error());
    return gone_is_ok && (code == ENOENT || code == ENODEV) ? Result<void>() : done;
}

Result<bool> group_exists(HostOps& ops, const GroupPlace& place) {
    return read_group(ops, place, "cgroup.subtree_control").and_then([&](const std::string&) {
        // cgroup v1 has no file that is never empty; the folder itself tells.
        return group_folder(ops, place).and_then([&](const std::string& folder) -> Result<bool> {
            const auto names = ops.list_folder(folder);
            return names || kernel_errno(names.error()) != ENOENT ? names.map([](const auto&) { return true; })
                                                                  : Result<bool>(false);
        });
    });
}

Result<void> make_group(HostOps& ops, const GroupPlace& place) {
    const auto folder = group_folder(ops, place);
    if (!folder) {
        return tl::unexpected(folder.error());
    }
    auto made = present_is_fine(ops.make_cgroup(*folder));
    if (!made || place.tree != CgroupTree::kUnified) {
        return made;
    }
    const auto type = read_group(ops, place, "cgroup.type");
    if (!type) {
        return tl::unexpected(type.error());
    }
    return *type == "threaded" ? Result<void>() : ops.write_file(*folder + "/cgroup.type", "threaded");
}

Result<void> gather(HostOps& ops, const GroupPlace& place, const ProcessIdentity& process) {
    const auto folder = group_folder(ops, place);
    if (!folder) {
        return tl::unexpected(folder.error());
    }
    // A child that is forked after its parent was moved is born in the group; those forked before are found here.
    std::vector<std::int32_t> waiting{process.pid};
    std::set<std::int32_t> seen;
    while (!waiting.empty()) {
        const std::int32_t pid = waiting.back();
        waiting.pop_back();
        if (!seen.insert(pid).second) {
            continue;
        }
        const auto record = ops.process(pid);
        if (!record) {
            return tl::unexpected(record.error());
        }
        if (*record && cgroup_of(**record, place.tree) == place.former) {
            auto moved = ops.write_file(*folder + "/cgroup.procs", std::to_string(pid));
            if (!moved && (pid == process.pid || kernel_errno(moved.error()) != ESRCH)) {
                return moved;
            }
        }
        const auto children = children_of(ops, pid);
        waiting.insert(waiting.end(), children.begin(), children.end());
    }
    // cgroups know pids only. One that was given again just now has been moved wrongly, and goes back with the undo.
    const auto inside = holds(ops, place, process);
    if (!inside || !*inside) {
        return inside ? fail_errno(ErrorKind::kHarness, fmt::format("put the process {} into a cgroup", process.pid),
                                   ESRCH)
                      : tl::unexpected(inside.error());
    }
    return {};
}

Result<bool> holds(HostOps& ops, const GroupPlace& place, const ProcessIdentity& process) {
    return ops.process(process.pid).map([&](const std::optional<ProcessRecord>& found) {
        return found && found->identity.start_ticks == process.start_ticks &&
               cgroup_of(*found, place.tree) == group_path(place);
    });
}

Result<void> dissolve(HostOps& ops, const GroupPlace& place) {
    const auto group = group_folder(ops, place);
    const auto former = former_folder(ops, place);
    const auto used = in_use(ops, place);
    if (!group || !former || !used) {
        return tl::unexpected(!group ? group.error() : !former ? former.error() : used.error());
    }
    if (*used) {
        return {};
    }
    const Deadline deadline = Deadline::after(kProcessWait);
    for (;;) {
        const auto empty = move_one_back(ops, place, *group, *former);
        if (!empty) {
            return tl::unexpected(empty.error());
        }
        auto removed = *empty ? ops.remove_cgroup(*group) : fail_errno(ErrorKind::kHarness, "empty " + *group, EBUSY);
        const int code = removed ? 0 : kernel_errno(removed.error());
        if (code != EBUSY || deadline.passed()) {
            return code == ENOENT ? Result<void>() : removed;
        }
        if (*empty) {
            // The last ones are ending; the kernel lets go of the group a moment later.
            (void)ops.wait_file(members_file(place, *group), "", Deadline::after(kBetweenTries));
        }
    }
}

Result<Notes> verify_dissolved(HostOps& ops, const FacetContext& context, const GroupPlace& place) {
    const auto exists = group_exists(ops, place);
    const auto used = in_use(ops, place);
    const auto process = ops.process(context.target.process.pid);
    if (!exists || !used || !process) {
        return tl::unexpected(!exists ? exists.error() : !used ? used.error() : process.error());
    }
    if (*exists) {
        return *used ? Result<Notes>(Notes())
                     : fail(ErrorKind::kTeardown, fmt::format("the cgroup {} is still there", group_path(place)));
    }
    const bool same = *process && (*process)->identity.start_ticks == context.target.process.start_ticks;
    const std::string now = same ? cgroup_of(**process, place.tree) : place.former;
    return now == place.former ? Notes()
                               : Notes{fmt::format("others have put {} into the cgroup {}; it was in {} before",
                                                   to_string(context.target), now, place.former)};
}

std::string_view flat_value(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        std::string_view line = take_word(text, '\n');
        if (take_word(line, ' ') == name) {
            return line;
        }
    }
    return {};
}

} // namespace railbreak::injectors
