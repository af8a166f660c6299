// All agents of a run, and the one place where the controller waits. While it waits for anything, leases are renewed,
// timed actions run, notifications are delivered, and Ctrl-C is seen.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "harness/controller/agent_link.hpp"

namespace railbreak::controller {

/// Event loop over the agents' channels, a signal descriptor and timers. Single-threaded.
class AgentPool {
public:
    using NotificationHandler = std::function<void(std::int32_t host, const launch::RpcMessage&)>;

    /// `lease`: agents get a frame at least every sixth of it; an agent silent for all of it counts as lost.
    /// Blocks SIGINT, SIGTERM and SIGHUP for the process and reads them through a descriptor.
    [[nodiscard]] static Result<std::unique_ptr<AgentPool>> create(Nanoseconds lease, NotificationHandler handler);

    /// Takes over a started agent.
    void add(std::int32_t host, std::string name, launch::Child child);
    /// Waits until every agent has said hello, or one is lost.
    [[nodiscard]] Result<void> await_hellos(Deadline deadline);

    /// Sends a request without waiting.
    [[nodiscard]] Result<std::int64_t> start_call(std::int32_t host, std::string_view method,
                                                  const launch::Json& params);
    /// The reply, once it is there.
    [[nodiscard]] std::optional<Result<launch::Json>> take_reply(std::int32_t host, std::int64_t id);
    /// One request to one host, and its reply.
    [[nodiscard]] Result<launch::Json> call(std::int32_t host, std::string_view method, const launch::Json& params,
                                            Deadline deadline);
    /// One request to every host (params made for each), all outstanding at once. Waits for every reply; the result is
    /// every host's reply in host order, or, when some fail, the Error that says most: an outcome of the system under
    /// test before a consequence of it ("peer closed the connection").
    [[nodiscard]] Result<std::vector<launch::Json>>
    call_all(std::string_view method, const std::function<launch::Json(std::int32_t)>& params, Deadline deadline) {
        return call_each(method, 1, params, deadline);
    }
    /// As call_all(), with `per_host` requests to every host: number i goes to host i / per_host. Once one has failed,
    /// the others are waited for no longer than `grace`.
    [[nodiscard]] Result<std::vector<launch::Json>> call_each(std::string_view method, std::size_t per_host,
                                                              const std::function<launch::Json(std::int32_t)>& params,
                                                              Deadline deadline,
                                                              Nanoseconds grace = std::chrono::hours(24));

    /// Runs the loop until `done` holds. Errors: deadline passed (names `what`), or interrupted by a signal.
    [[nodiscard]] Result<void> wait_until(const std::function<bool()>& done, Deadline deadline, std::string_view what);
    /// Runs `action` once from within the loop at the given monotonic time.
    void run_at(Nanoseconds when, std::function<void()> action);
    /// Forgets all timed actions that have not run.
    void cancel_timers() { timers_.clear(); }
    [[nodiscard]] bool timers_pending() const { return !timers_.empty(); }

    /// From now on a signal no longer ends waits: the run is being reverted, which must not be cut short.
    void begin_teardown() { tearing_down_ = true; }
    /// Name of the first signal that asked the run to end; empty when none did.
    [[nodiscard]] const std::string& interrupted_by() const { return interrupted_by_; }
    /// Whether the user has asked three times: nothing is waited for any more, the hosts revert by themselves.
    [[nodiscard]] bool abandoned() const;
    /// How long the busiest agent may take for what it was told to apply, and to undo all of it.
    [[nodiscard]] Nanoseconds busy_for() const;
    /// The ladder: shutdown request, bye, close stdin, wait, SIGTERM, wait, SIGKILL. The third
    /// signal ends it where it is. Returns what went wrong, per host.
    [[nodiscard]] std::vector<Error> shut_down(Nanoseconds grace);

    [[nodiscard]] std::size_t size() const { return links_.size(); }
    [[nodiscard]] AgentLink& link(std::int32_t host) { return *links_.at(static_cast<std::size_t>(host)); }

private:
    AgentPool(Nanoseconds lease, NotificationHandler handler, UniqueFd signal_fd);
    void poll_once(Nanoseconds budget);
    void dispatch(std::size_t index, bool is_stderr, bool is_write);
    void keep_leases();
    void run_due_timers();
    void read_signals();

    Nanoseconds lease_;
    NotificationHandler handler_;
    UniqueFd signal_fd_;
    std::vector<std::unique_ptr<AgentLink>> links_;
    std::multimap<Nanoseconds, std::function<void()>> timers_;
    Nanoseconds next_ping_at_{0};
    bool tearing_down_ = false;
    bool awaiting_ends_ = false; ///< the loop wakes up for the ends of agents too
    int signals_seen_ = 0;
    std::string interrupted_by_;
};

/// Whether a wait of an AgentPool ended with that Error because of a signal, whatever was said around it since.
[[nodiscard]] bool is_interruption(const Error& error);

} // namespace railbreak::controller
