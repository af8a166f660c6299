#include "harness/agent/rank_process.hpp"

#include <csignal>

namespace railbreak::agent {

Result<std::unique_ptr<RankProcess>> RankProcess::start(const std::string& executable) {
    Result<launch::Child> child =
        launch::spawn({.argv = {executable, "rank"}, .die_with_parent = true, .inherit_stderr = true});
    if (!child) {
        return fail(std::move(child.error()).during("starting a rank"));
    }
    return std::unique_ptr<RankProcess>(new RankProcess(std::move(*child)));
}

RankProcess::RankProcess(launch::Child child)
    : child_(std::move(child)), channel_(std::move(child_.stdout_fd), std::move(child_.stdin_fd)) {}

Result<std::int64_t> RankProcess::request(std::string_view method, const launch::Json& params) {
    const std::int64_t id = next_id_++;
    if (Result<void> sent = channel_.send(launch::encode_request(id, method, params)); !sent) {
        return fail(Error(ErrorKind::kOutcome, "the rank process does not read any more: " + sent.error().message()));
    }
    return id;
}

void RankProcess::end(Deadline deadline) {
    channel_.close_write();
    if (!launch::wait_for(child_, deadline)) {
        launch::send_signal(child_, SIGKILL);
        (void)launch::wait_for(child_, Deadline::after(std::chrono::seconds(1)));
    }
}

} // namespace railbreak::agent
