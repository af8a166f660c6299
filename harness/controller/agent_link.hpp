// The controller's end of one conversation with one agent: requests and their replies, the agent's hello, its clock,
// and when it was last heard of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/launch/child.hpp"
#include "harness/launch/line_channel.hpp"
#include "harness/launch/rpc.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::controller {

/// What an agent may take for "init", which begins by undoing what a dead run has left: two faults of the slowest kind.
inline constexpr Nanoseconds kLeftoversTime = 2 * injectors::kLongestUndo;

/// Offset of a host's monotonic clock against the controller's, from the round trip with the least delay so far.
struct ClockOffset {
    Nanoseconds offset{0}; ///< host's clock minus controller's clock
    Nanoseconds error{0};  ///< half of that round trip: the path's asymmetry is not visible
    bool known = false;
};

/// One agent. Not thread-safe; driven by AgentPool.
class AgentLink {
public:
    AgentLink(std::int32_t host, std::string name, launch::Child child);

    /// Sends a request; returns its id. The reply is fetched with take().
    [[nodiscard]] Result<std::int64_t> request(std::string_view method, const launch::Json& params);
    /// The reply to request `id`, once; nothing while it is outstanding. A lost agent answers every request with an
    /// Error that says how it was lost.
    [[nodiscard]] std::optional<Result<launch::Json>> take(std::int64_t id);
    /// Sends a ping that renews the agent's lease and measures its clock; at most one is outstanding.
    void ping();

    /// Handles what can be read now. Notifications (and the hello) are appended to `notifications`.
    void on_readable(std::vector<launch::RpcMessage>& notifications);
    void on_writable();
    void on_stderr();
    /// Marks the agent lost: nothing more is expected of it.
    void mark_lost(Error reason);

    /// Whether the agent owes the answer to the probe that follows a fault for longer than it may. The probe is sent as
    /// soon as the agent has said that the fault is in force: a round trip over the control connection under the
    /// fault. An agent that gets none in time undoes the fault.
    [[nodiscard]] bool probe_overdue() const;

    /// How long the agent may be busy with the faults that it was told to apply and to revert, and not answer.
    [[nodiscard]] Nanoseconds busy_for() const;
    /// How long it may take to undo what is in force.
    [[nodiscard]] Nanoseconds undo_time() const;

    [[nodiscard]] std::int32_t host() const { return host_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const launch::Json& hello() const { return hello_; }
    [[nodiscard]] bool said_hello() const { return !hello_.is_null(); }
    [[nodiscard]] bool said_bye() const { return bye_.has_value(); }
    [[nodiscard]] bool lost() const { return lost_.has_value(); }
    [[nodiscard]] const std::optional<Error>& lost_reason() const { return lost_; }
    [[nodiscard]] const ClockOffset& clock() const { return clock_; }
    [[nodiscard]] Nanoseconds last_heard_at() const { return last_heard_at_; }
    [[nodiscard]] const std::string& stderr_tail() const { return stderr_tail_; }
    [[nodiscard]] launch::LineChannel& channel() { return channel_; }
    [[nodiscard]] launch::Child& child() { return child_; }
    /// How the agent's process ended; nothing while it runs.
    [[nodiscard]] const std::optional<launch::ExitStatus>& reap();

private:
    void on_line(const std::string& line, std::vector<launch::RpcMessage>& notifications);
    void on_reply(launch::RpcMessage& reply);
    /// A call during which an agent answers nothing else.
    struct BusyCall {
        Nanoseconds longest{0};
        std::int32_t fault = 0;
        bool reverts = false;
    };
    void note_duration(std::int64_t call, std::string_view method, const launch::Json& params);
    void probe(std::int32_t fault);
    void on_hello_or_noise(const std::string& line);
    void on_pong(const launch::RpcMessage& reply);
    [[nodiscard]] Error lost_error() const;

    std::int32_t host_;
    std::string name_;
    launch::Child child_;
    launch::LineChannel channel_;
    launch::Json hello_;
    std::string noise_before_hello_;
    std::string stderr_tail_;
    std::optional<launch::ExitStatus> ended_;
    std::optional<std::string> bye_; ///< why the agent has ended, in its last words
    std::optional<Error> lost_;
    std::int64_t next_id_ = 1;
    std::map<std::int64_t, std::optional<Result<launch::Json>>> replies_;
    std::map<std::int64_t, std::int32_t> applying_;  ///< outstanding fault.apply -> id of the fault
    std::map<std::int64_t, BusyCall> busy_;          ///< outstanding calls that may take long
    std::map<std::int32_t, Nanoseconds> undo_times_; ///< id of a fault that may be in force -> longest undo
    std::map<std::int64_t, Nanoseconds> probes_;     ///< outstanding fault.confirm -> when it was sent
    std::optional<std::int64_t> ping_id_;
    Nanoseconds ping_sent_at_{0};
    Nanoseconds last_heard_at_;
    ClockOffset clock_;
};

} // namespace railbreak::controller
