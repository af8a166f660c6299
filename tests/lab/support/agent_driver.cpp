#include "tests/lab/support/agent_driver.hpp"

#include <algorithm>

#include <poll.h>

#include <gtest/gtest.h>

namespace railbreak::tests {

using launch::Json;
using launch::RpcMessage;

namespace {
constexpr Nanoseconds kPatience = std::chrono::seconds(30);
}

AgentDriver::AgentDriver(const std::string& state_folder, int netns_fd, const std::vector<std::string>& environment) {
    std::vector<std::string> argv{"/usr/bin/env", "-u", "SSH_CONNECTION", "RAILBREAK_STATE_DIR=" + state_folder};
    argv.insert(argv.end(), environment.begin(), environment.end());
    argv.insert(argv.end(), {RAILBREAK_BINARY, "agent", "--stdio"});
    Result<launch::Child> child = launch::spawn({.argv = argv, .netns_fd = netns_fd, .inherit_stderr = true});
    if (!child) {
        ADD_FAILURE() << child.error().to_line();
        return;
    }
    child_ = std::move(*child);
    channel_ = std::make_unique<launch::LineChannel>(std::move(child_.stdout_fd), std::move(child_.stdin_fd));
    const Deadline deadline = Deadline::after(kPatience);
    pollfd waiter{channel_->read_fd(), POLLIN, 0};
    (void)::poll(&waiter, 1, deadline.poll_timeout_ms());
    const Result<std::vector<std::string>> hello = channel_->receive();
    EXPECT_TRUE(hello && !hello->empty()) << "no hello";
}

AgentDriver::~AgentDriver() {
    if (child_.pid > 0) {
        (void)end();
    }
}

void AgentDriver::read(Deadline deadline) {
    pollfd waiter{channel_->read_fd(), POLLIN, 0};
    (void)::poll(&waiter, 1, deadline.poll_timeout_ms());
    const Result<std::vector<std::string>> lines = channel_->receive();
    for (const std::string& line : lines ? *lines : std::vector<std::string>()) {
        Result<RpcMessage> message = launch::decode(line);
        if (message) {
            heard_.push_back(std::move(*message));
        } else {
            ADD_FAILURE() << message.error().to_line();
        }
    }
}

Result<Json> AgentDriver::call(const std::string& method, const Json& params) {
    const std::int64_t id = next_id_++;
    if (Result<void> sent = channel_->send(launch::encode_request(id, method, params)); !sent) {
        return fail(std::move(sent.error()));
    }
    const Deadline deadline = Deadline::after(kPatience);
    for (;;) {
        const auto reply = std::ranges::find_if(heard_, [&](const RpcMessage& each) { return each.id == id; });
        if (reply != heard_.end()) {
            Result<Json> result = reply->error ? Result<Json>(tl::unexpected<Error>(*reply->error))
                                               : Result<Json>(std::move(reply->result));
            heard_.erase(reply);
            return result;
        }
        if (deadline.passed() || channel_->at_end()) {
            return fail(ErrorKind::kHarness, "no reply to " + method);
        }
        read(deadline);
    }
}

Result<Json> AgentDriver::init(const std::string& run, Nanoseconds lease, const Json& more) {
    Json params{{"run_id", run}, {"host_name", "h0"}, {"lease_ns", lease.count()}, {"protected_nics", Json::array()}};
    params.update(more);
    return call("init", params);
}

std::optional<Json> AgentDriver::wait_for(const std::string& notification, Nanoseconds patience) {
    const Deadline deadline = Deadline::after(patience);
    for (;;) {
        const auto found =
            std::ranges::find_if(heard_, [&](const RpcMessage& each) { return each.method == notification; });
        if (found != heard_.end()) {
            Json params = std::move(found->params);
            heard_.erase(found);
            return params;
        }
        if (deadline.passed() || channel_->at_end()) {
            return std::nullopt;
        }
        read(deadline);
    }
}

std::optional<launch::ExitStatus> AgentDriver::end() {
    channel_->close_write();
    std::optional<launch::ExitStatus> status = launch::wait_for(child_, Deadline::after(kPatience));
    EXPECT_TRUE(status) << "the agent does not end";
    child_.pid = -1;
    return status;
}

} // namespace railbreak::tests
