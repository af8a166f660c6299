// A rank as its agent sees it: a child process with a conversation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "harness/launch/child.hpp"
#include "harness/launch/line_channel.hpp"
#include "harness/launch/rpc.hpp"

namespace railbreak::agent {

/// Owns the child. The kernel kills the rank when the agent dies: a rank holds no state that anyone needs.
class RankProcess {
public:
    [[nodiscard]] static Result<std::unique_ptr<RankProcess>> start(const std::string& executable);

    /// Sends a request; the reply arrives on channel() with the returned id.
    [[nodiscard]] Result<std::int64_t> request(std::string_view method, const launch::Json& params);
    /// End of file, then SIGKILL if it has not ended by the deadline.
    void end(Deadline deadline);

    [[nodiscard]] launch::LineChannel& channel() { return channel_; }
    [[nodiscard]] const launch::Child& child() const { return child_; }

private:
    explicit RankProcess(launch::Child child);
    launch::Child child_;
    launch::LineChannel channel_;
    std::int64_t next_id_ = 1;
};

} // namespace railbreak::agent
