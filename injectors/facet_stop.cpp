// A process stands still. A freezer is preferred: it takes all threads and children, and the process cannot notice.
// Where there is none that this process may use, the process gets SIGSTOP, which its parent can see.
#include <fmt/format.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/netlink.hpp"
#include "injectors/process_group.hpp"
#include "injectors/time_limits.hpp"
#include "injectors/wire.hpp"

#include <cerrno>
#include <csignal>

namespace railbreak::injectors {

namespace {

enum class Mechanism : std::uint8_t {
    kUnifiedFreezer, ///< cgroup.freeze of a cgroup of ours
    kOldFreezer,     ///< freezer.state of a cgroup of ours in cgroup v1
    kSignal,         ///< SIGSTOP and SIGCONT
};

struct Former {
    Mechanism mechanism = Mechanism::kSignal;
    GroupPlace place; ///< of the freezers
};

/// The file that freezes, what is written to it, the file that tells, and what stands there once everything is frozen.
struct Freezer {
    std::string_view file;
    std::string_view freeze;
    std::string_view thaw;
    std::string_view witness;
    std::string_view frozen;
};

constexpr Freezer kUnified{"cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"};
constexpr Freezer kOld{"freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"};

const Freezer& freezer_of(const Former& former) {
    return former.mechanism == Mechanism::kOldFreezer ? kOld : kUnified;
}

bool stands_still(char state) {
    return state == 'T' || state == 't';
}

tl::unexpected<Error> refuse_stopped(const FaultTarget& target, std::string_view why) {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} stands still already: {}", to_string(target), why))
                    .with("pid", std::to_string(target.process.pid)));
}

/// The one thread of a process whose state is (or is not) "stopped": its stat file and content; empty when all agree.
Result<std::optional<std::pair<std::string, std::string>>> find_thread(HostOps& ops, std::int32_t pid, bool stopped) {
    const std::string tasks = fmt::format("/proc/{}/task", pid);
    const auto names = ops.list_folder(tasks);
    if (!names) {
        return tl::unexpected(names.error());
    }
    for (const std::string& name : *names) {
        const std::string path = tasks + "/" + name + "/stat";
        const auto text = ops.read_file(path); // a thread that has ended meanwhile is in no state
        const std::size_t end = text ? text->rfind(") ") : std::string::npos;
        if (end != std::string::npos && end + 2 < text->size() && stands_still((*text)[end + 2]) == stopped) {
            return std::pair{path, *text};
        }
    }
    return std::nullopt;
}

/// Waits until no thread is (or every thread is) stopped.
Result<bool> wait_threads(HostOps& ops, std::int32_t pid, bool stopped) {
    const Deadline deadline = Deadline::after(kProcessWait);
    for (;;) {
        const auto other = find_thread(ops, pid, !stopped);
        if (!other) {
            return tl::unexpected(other.error());
        }
        if (!*other) {
            return true;
        }
        const auto changed = ops.wait_file((*other)->first, (*other)->second, deadline);
        if (!changed || (!*changed && deadline.passed())) {
            return changed;
        }
    }
}

/// Waits until the freezer says that everything in the group stands still.
Result<bool> wait_frozen(HostOps& ops, const Former& former) {
    const Freezer& freezer = freezer_of(former);
    const auto folder = group_folder(ops, former.place);
    if (!folder) {
        return tl::unexpected(folder.error());
    }
    const std::string path = fmt::format("{}/{}", *folder, freezer.witness);
    const Deadline deadline = Deadline::after(kProcessWait);
    for (;;) {
        const auto text = ops.read_file(path);
        if (!text) {
            return tl::unexpected(text.error());
        }
        if (("\n" + *text).find(fmt::format("\n{}\n", freezer.frozen)) != std::string::npos) {
            return true;
        }
        const auto changed = ops.wait_file(path, *text, deadline);
        if (!changed || (!*changed && deadline.passed())) {
            return changed;
        }
    }
}

class Stop final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kStop; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.stopped; }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest&) const override {
        const auto stopped = find_thread(ops, context.target.process.pid, true);
        if (!stopped) {
            return tl::unexpected(stopped.error());
        }
        if (*stopped) {
            return refuse_stopped(context.target, "it was sent SIGSTOP, or is traced");
        }
        Error last(ErrorKind::kRefused, "");
        for (const auto& [tree, mechanism] : {std::pair{CgroupTree::kUnified, Mechanism::kUnifiedFreezer},
                                              std::pair{CgroupTree::kFreezer, Mechanism::kOldFreezer}}) {
            auto place = find_place(ops, context, tree);
            if (place) {
                return check_thawed(ops, context, Former{mechanism, std::move(*place)});
            }
            if (place.error().kind() != ErrorKind::kRefused) {
                return tl::unexpected(place.error());
            }
        }
        return ops.may_signal(context.target.process).map([] { return Former(); }).map_error([&](const Error& error) {
            return as_refusal(context, error);
        });
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState&) const override {
        if (former.mechanism == Mechanism::kSignal) {
            return ops.signal_process(context.target.process, SIGSTOP);
        }
        const Freezer& freezer = freezer_of(former);
        return make_group(ops, former.place)
            .and_then([&] { return gather(ops, former.place, context.target.process); })
            .and_then([&] { return write_group(ops, former.place, freezer.file, freezer.freeze, false); });
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former& former) const override {
        if (former.mechanism != Mechanism::kSignal) {
            return clean_up(ops, context, former);
        }
        // Whether a SIGSTOP is still on its way cannot be seen; SIGCONT does nothing to a process that runs.
        auto done = ops.signal_process(context.target.process, SIGCONT);
        return !done && kernel_errno(done.error()) == ESRCH ? Result<void>() : done;
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        if (!wanted.stopped) {
            return Readback();
        }
        const ProcessIdentity& process = context.target.process;
        const bool by_signal = former.mechanism == Mechanism::kSignal;
        const auto stopped = by_signal ? wait_threads(ops, process.pid, true) : wait_frozen(ops, former);
        const auto inside = by_signal ? Result<bool>(true) : holds(ops, former.place, process);
        if (!stopped || !inside) {
            return tl::unexpected(stopped ? inside.error() : stopped.error());
        }
        if (!*stopped || !*inside) {
            return fail(ErrorKind::kHarness, fmt::format("{} does not stand still", to_string(context.target)));
        }
        return Readback{{"stopped", "yes"}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        if (former.mechanism == Mechanism::kSignal) {
            const auto running = wait_threads(ops, context.target.process.pid, false);
            if (running && !*running) {
                return fail(ErrorKind::kTeardown, fmt::format("{} still stands still", to_string(context.target)));
            }
            return running.map([](bool) { return Notes(); });
        }
        const Freezer& freezer = freezer_of(former);
        const auto state = read_group(ops, former.place, freezer.file);
        if (!state) {
            return tl::unexpected(state.error());
        }
        if (!state->empty() && *state != freezer.thaw) {
            return fail(ErrorKind::kTeardown, fmt::format("{} is still frozen", to_string(context.target)));
        }
        return verify_dissolved(ops, context, former.place);
    }

    /// What is in the group is ours to let go, whatever has become of the process itself: it may have left children.
    Result<void> clean_up(HostOps& ops, const FacetContext&, const Former& former) const override {
        if (former.mechanism == Mechanism::kSignal) {
            return {};
        }
        const Freezer& freezer = freezer_of(former);
        return write_group(ops, former.place, freezer.file, freezer.thaw, true).and_then([&] {
            return dissolve(ops, former.place);
        });
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState&) const override {
        const std::string process = to_string(context.target);
        if (former.mechanism == Mechanism::kSignal) {
            return {{fmt::format("{}: SIGSTOP", process)}, {fmt::format("{}: SIGCONT", process)}};
        }
        const std::string_view tree = to_string(former.place.tree);
        return {{fmt::format("{}: into the {} {} below {}, with its children", process, tree, former.place.name,
                             former.place.former),
                 fmt::format("{}: frozen", former.place.name)},
                {fmt::format("{}: thawed", former.place.name),
                 fmt::format("{}: everything in it back to {}, removed", former.place.name, former.place.former)}};
    }

    std::string words(const Former& former) const override {
        switch (former.mechanism) {
        case Mechanism::kUnifiedFreezer: return "cgroup v2 freezer";
        case Mechanism::kOldFreezer: return "cgroup v1 freezer";
        case Mechanism::kSignal: return "SIGSTOP";
        }
        return {};
    }

    std::string encode(const Former& former) const override {
        Encoder out;
        out.put(static_cast<std::uint8_t>(former.mechanism));
        put_place(out, former.place);
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        const auto mechanism = in.get<std::uint8_t>();
        former.mechanism = static_cast<Mechanism>(mechanism);
        const bool place = get_place(in, former.place);
        const bool named = former.mechanism == Mechanism::kSignal || !former.place.name.empty();
        if (!place || !named || !in.finished() || mechanism > static_cast<std::uint8_t>(Mechanism::kSignal)) {
            return fail(ErrorKind::kInput, "the former state of a process that stands still is damaged");
        }
        return former;
    }

private:
    static Error as_refusal(const FacetContext& context, const Error& error) {
        return Error(ErrorKind::kRefused,
                     fmt::format("{} may not be stopped: {}", to_string(context.target), error.message()))
            .with("pid", std::to_string(context.target.process.pid));
    }

    /// The process may be in a cgroup that somebody else has frozen.
    static Result<Former> check_thawed(HostOps& ops, const FacetContext& context, Former former) {
        const Freezer& freezer = freezer_of(former);
        const auto folder = former_folder(ops, former.place);
        if (!folder) {
            return tl::unexpected(folder.error());
        }
        const auto text = ops.read_file(fmt::format("{}/{}", *folder, freezer.witness));
        if (text && ("\n" + *text).find(fmt::format("\n{}\n", freezer.frozen)) != std::string::npos) {
            return refuse_stopped(context.target, fmt::format("its cgroup {} is frozen", former.place.former));
        }
        return former; // the root has no such file, and cannot be frozen
    }
};

} // namespace

const Facet& stop_facet() {
    static const Stop facet;
    return facet;
}

} // namespace railbreak::injectors
