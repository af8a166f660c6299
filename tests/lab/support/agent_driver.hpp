// A test in the place of the controller: it starts a real agent in a network namespace and speaks to it line by line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch/child.hpp"
#include "harness/launch/line_channel.hpp"
#include "harness/launch/rpc.hpp"

namespace railbreak::tests {

/// One agent. Nothing is said to it that the test does not say: no pings, no probes.
class AgentDriver {
public:
    /// Starts `railbreak agent --stdio` in the namespace behind `netns_fd` with its state in `state_folder`, and waits
    /// for its hello.
    AgentDriver(const std::string& state_folder, int netns_fd, const std::vector<std::string>& environment = {});
    ~AgentDriver();
    AgentDriver(const AgentDriver&) = delete;
    AgentDriver& operator=(const AgentDriver&) = delete;

    /// Sends a request and waits for its reply.
    [[nodiscard]] Result<launch::Json> call(const std::string& method, const launch::Json& params);
    /// "init" of the run `run`, with `more` members.
    [[nodiscard]] Result<launch::Json> init(const std::string& run, Nanoseconds lease,
                                            const launch::Json& more = launch::Json::object());
    /// Waits for a notification; nothing when it does not come in time.
    [[nodiscard]] std::optional<launch::Json> wait_for(const std::string& notification, Nanoseconds patience);
    /// Closes the agent's input and waits for its end.
    [[nodiscard]] std::optional<launch::ExitStatus> end();
    [[nodiscard]] const launch::Child& child() const { return child_; }

private:
    void read(Deadline deadline);
    launch::Child child_;
    std::unique_ptr<launch::LineChannel> channel_;
    std::vector<launch::RpcMessage> heard_;
    std::int64_t next_id_ = 1;
};

} // namespace railbreak::tests
