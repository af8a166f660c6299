// A process is killed. There is no way back: the undo closes the entry and does nothing.
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/netlink.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::injectors {

namespace {

/// Nothing can be given back, so nothing is kept.
struct Former {};

class Kill final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kKill; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.killed; }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest&) const override {
        return ops.may_signal(context.target.process).map([] { return Former(); }).map_error([&](const Error& error) {
            return Error(ErrorKind::kRefused,
                         fmt::format("{} may not be killed: {}", to_string(context.target), error.message()))
                .with("pid", std::to_string(context.target.process.pid));
        });
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former&, const WantedState&) const override {
        auto done = ops.signal_process(context.target.process, SIGKILL);
        return !done && kernel_errno(done.error()) == ESRCH ? Result<void>() : done;
    }

    Result<void> undo(HostOps&, const FacetContext&, const Former&) const override { return {}; }

    /// A zombie is dead; its parent has not looked yet.
    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former&,
                               const WantedState& wanted) const override {
        if (!wanted.killed) {
            return Readback();
        }
        const ProcessIdentity& process = context.target.process;
        const std::string path = fmt::format("/proc/{}/stat", process.pid);
        const Deadline deadline = Deadline::after(kProcessWait);
        for (;;) {
            const auto text = ops.read_file(path);
            const auto now = ops.process(process.pid);
            if (!now) {
                return tl::unexpected(now.error());
            }
            if (!*now || (*now)->identity.start_ticks != process.start_ticks || (*now)->state == 'Z' ||
                (*now)->state == 'X') {
                return Readback{{"killed", "yes"}};
            }
            if (deadline.passed()) {
                return fail(ErrorKind::kHarness, fmt::format("{} is still alive", to_string(context.target)));
            }
            if (auto waited = ops.wait_file(path, text.value_or(std::string()), deadline); !waited) {
                return tl::unexpected(waited.error());
            }
        }
    }

    Result<Notes> verify_former(HostOps&, const FacetContext&, const Former&) const override { return Notes(); }

    Steps steps(const FacetContext& context, const Former&, const WantedState&) const override {
        return {
            {fmt::format("{}: SIGKILL", to_string(context.target))},
            {fmt::format("{}: cannot be undone; whoever started it must start it again", to_string(context.target))}};
    }

    std::string words(const Former&) const override { return "SIGKILL"; }
    std::string encode(const Former&) const override { return {}; }
    Result<Former> decode(std::string_view bytes) const override {
        return bytes.empty() ? Result<Former>(Former())
                             : fail(ErrorKind::kInput, "the former state of a killed process is damaged");
    }
};

} // namespace

const Facet& kill_facet() {
    static const Kill facet;
    return facet;
}

} // namespace railbreak::injectors
