#include "harness/agent/agent.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "harness/agent/fault_service.hpp"
#include "harness/agent/host_facts.hpp"
#include "harness/agent/host_survey.hpp"
#include "harness/agent/rank_process.hpp"
#include "harness/agent/safeguard.hpp"
#include "harness/launch/line_channel.hpp"
#include "harness/launch/rpc.hpp"
#include "injectors/state_folder.hpp"

namespace railbreak::agent {

using launch::Json;
using launch::RpcMessage;

namespace {

/// Before the controller's init the lease is unknown; an agent nobody speaks to ends after this.
constexpr Nanoseconds kInitTimeout = std::chrono::seconds(30);
/// A rank that does nothing ends at once when its channel closes; one that is busy or stands still is killed.
constexpr Nanoseconds kRankEndTimeout = std::chrono::seconds(2);
/// More ranks on a host than any server has GPUs.
constexpr std::int32_t kMostRanks = 64;
/// The longest that a host keeps a fault without a word from its controller, whatever that controller asks for.
constexpr Nanoseconds kLongestLease = std::chrono::minutes(10);

/// One of the host's ranks.
struct HostedRank {
    std::unique_ptr<RankProcess> process;             ///< none after its end
    std::map<std::int64_t, std::int64_t> forwarded{}; ///< id towards the rank -> id from the controller
    std::int64_t number = -1;                         ///< counted over all hosts, once rank.open has said it
    std::string how_it_ended{};
};

/// What a rank that is no more has to say to whoever asks it something.
Error ended_error(const HostedRank& rank) {
    return Error(ErrorKind::kOutcome, fmt::format("rank {} ended: {}", rank.number, rank.how_it_ended))
        .with("rank", std::to_string(rank.number));
}

class Agent {
public:
    explicit Agent(const AgentOptions& options)
        : options_(options), controller_(UniqueFd(::dup(STDIN_FILENO)), UniqueFd(::dup(STDOUT_FILENO))) {}

    int run();

private:
    void say_hello();
    void poll_once();
    void on_controller();
    void on_request(const RpcMessage& request);
    void reply(std::int64_t id, Result<Json> result);
    [[nodiscard]] Result<Json> init(const Json& params);
    [[nodiscard]] Result<Json> start_ranks(const Json& params);
    [[nodiscard]] Result<Json> end_ranks();
    [[nodiscard]] Result<Json> handle_fault(const std::string& method, Json params);
    /// The living rank of "local_rank".
    [[nodiscard]] Result<HostedRank*> hosted(const Json& params);
    [[nodiscard]] Result<void> forward(const RpcMessage& request);
    void on_rank(HostedRank& rank);
    void on_rank_end(HostedRank& rank);
    void on_guard();
    void watch_over_faults();
    void lift_faults(const std::string& reason);
    [[nodiscard]] int poll_timeout_ms() const;
    [[nodiscard]] int undo_and_leave();
    void leave(std::string reason) {
        reason_to_leave_ = reason_to_leave_.empty() ? std::move(reason) : reason_to_leave_;
    }
    void renew_lease();

    AgentOptions options_;
    bool halted_ = false; ///< which is the reason to leave
    launch::LineChannel controller_;
    UniqueFd signal_fd_;
    Nanoseconds lease_ = kInitTimeout;
    Deadline lease_end_ = Deadline::after(kInitTimeout);
    std::unique_ptr<Safeguard> safeguard_; ///< there when faults_ is; its lock outlives them
    std::unique_ptr<FaultService> faults_;
    std::vector<HostedRank> ranks_; ///< by their number on this host
    std::string reason_to_leave_;
};

int Agent::run() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&signals, signal);
    }
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signal_fd_ = UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    say_hello();
    while (reason_to_leave_.empty()) {
        poll_once();
    }
    return undo_and_leave();
}

void Agent::say_hello() {
    const Json hello{{"railbreak", "hello"},
                     {"proto", launch::kProtocolVersion},
                     {"version", build_info().version},
                     {"commit", build_info().commit},
                     {"host", host_name()},
                     {"pid", ::getpid()},
                     {"uid", ::getuid()},
                     {"boot_id", boot_id()},
                     {"netns", netns_inode()}};
    (void)controller_.send(hello.dump());
}

void Agent::poll_once() {
    // Behind the fixed sources come two for each rank: what it says, and its end.
    enum Source : std::size_t { kController, kControllerWrite, kSignal, kGuard, kHalt, kFirstRank };
    std::vector<pollfd> fds(kFirstRank + 2 * ranks_.size(), pollfd{-1, POLLIN, 0});
    fds[kController].fd = controller_.read_fd();
    fds[kControllerWrite] = {controller_.wants_write() ? controller_.write_fd() : -1, POLLOUT, 0};
    fds[kSignal].fd = signal_fd_.get();
    fds[kGuard].fd = faults_ ? faults_->guard_fd() : -1;
    fds[kHalt].fd = safeguard_ ? safeguard_->halt_fd() : -1;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (const auto& process = ranks_[i].process; process) {
            fds[kFirstRank + 2 * i].fd = process->channel().read_fd();
            fds[kFirstRank + 2 * i + 1].fd = process->child().pidfd.get();
        }
    }
    if (::poll(fds.data(), fds.size(), poll_timeout_ms()) < 0 && errno != EINTR) {
        leave(fmt::format("poll failed: {}", ::strerrordesc_np(errno)));
        return;
    }
    if (fds[kSignal].revents != 0) {
        signalfd_siginfo info{};
        if (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
            leave(fmt::format("signal {}", info.ssi_signo));
        }
    }
    if (fds[kGuard].revents != 0) {
        on_guard();
    }
    if (fds[kControllerWrite].revents != 0) {
        (void)controller_.flush();
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (fds[kFirstRank + 2 * i].revents != 0) {
            on_rank(ranks_[i]);
        }
        if (fds[kFirstRank + 2 * i + 1].revents != 0) {
            on_rank_end(ranks_[i]);
        }
    }
    if (fds[kController].revents != 0) {
        on_controller();
    } else if (faults_) {
        watch_over_faults(); // never before what the controller has said already was heard
    }
    if (lease_end_.passed()) {
        leave(fmt::format("the lease of {} ran out", to_string(lease_)));
    }
}

int Agent::poll_timeout_ms() const {
    const std::optional<Nanoseconds> next = safeguard_ ? safeguard_->next_deadline() : std::nullopt;
    return next && *next < lease_end_.when() ? Deadline::at(*next).poll_timeout_ms() : lease_end_.poll_timeout_ms();
}

void Agent::watch_over_faults() {
    if (const std::optional<std::string> reason = safeguard_->overdue()) {
        lift_faults(*reason);
    }
    if (const std::optional<std::string> why = safeguard_->halted()) {
        halted_ = reason_to_leave_.empty();
        leave(fmt::format("halted: {}", *why));
    }
}

/// Undoes every fault without having been asked to; the controller, if it still hears it, ends the run.
void Agent::lift_faults(const std::string& reason) {
    const Result<Json> undone = faults_->revert_all();
    safeguard_->all_reverted();
    (void)controller_.send(
        launch::encode_notification("faults_lifted", {{"reverted", undone ? *undone : Json::array()},
                                                      {"reason", reason},
                                                      {"error", undone ? "" : undone.error().to_line()}}));
    if (!undone) {
        leave(reason); // which tries once more
    }
}

void Agent::renew_lease() {
    lease_end_ = Deadline::after(lease_);
    if (faults_) {
        faults_->renew_lease();
    }
}

void Agent::on_controller() {
    Result<std::vector<std::string>> lines = controller_.receive();
    if (!lines) {
        leave(lines.error().to_line());
        return;
    }
    if (!lines->empty()) {
        renew_lease();
    }
    for (const std::string& line : *lines) {
        Result<RpcMessage> message = launch::decode(line);
        if (!message) {
            leave(message.error().to_line());
            return;
        }
        if (!message->is_reply() && message->id) {
            on_request(*message);
        }
    }
    if (!lines->empty()) {
        lease_end_ = Deadline::after(lease_); // what this agent was busy for is no silence of its controller
    }
    if (controller_.at_end()) {
        leave("end of file from the controller");
    }
}

void Agent::on_request(const RpcMessage& request) {
    const std::int64_t id = *request.id;
    const std::string& method = request.method;
    if (method == "ping") {
        reply(id, Json{{"monotonic_ns", monotonic_now().count()}});
    } else if (method == "init") {
        reply(id, init(request.params));
    } else if (method == "shutdown") {
        reply(id, Json::object());
        leave("shutdown");
    } else if (method == "survey") {
        const auto look = [](const SurveyOrder& order) { return survey_this_host(order); };
        reply(id, survey_order_from_json(request.params).and_then(look).map([](const HostSurvey& host) {
            return to_json(host);
        }));
    } else if (method == "start_ranks") {
        reply(id, start_ranks(request.params));
    } else if (method == "end_ranks") {
        reply(id, end_ranks());
    } else if (method == "counters") {
        reply(id, nic_counters());
    } else if (method.starts_with("rank.")) {
        if (Result<void> sent = forward(request); !sent) {
            reply(id, tl::unexpected<Error>(std::move(sent.error())));
        }
    } else if (method.starts_with("fault.") && faults_) {
        reply(id, handle_fault(method, request.params));
    } else {
        reply(id, fail(ErrorKind::kHarness, fmt::format("the agent has no method \"{}\" now", method)));
    }
}

void Agent::reply(std::int64_t id, Result<Json> result) {
    const std::string line = result ? launch::encode_result(id, *result) : launch::encode_error(id, result.error());
    (void)controller_.send(line); // a controller that is gone shows itself as end of file
}

Result<Json> Agent::init(const Json& params) {
    const Result<std::int64_t> lease_ns = launch::field<std::int64_t>(params, "lease_ns");
    if (!lease_ns) {
        return fail(Error(lease_ns.error()));
    }
    if (faults_) {
        return fail(ErrorKind::kHarness, "this agent has been initialised already"); // it would forget its faults
    }
    if (*lease_ns <= 0 || Nanoseconds(*lease_ns) > kLongestLease) {
        return fail(ErrorKind::kInput, fmt::format("a lease of {} ns is out of range; allowed: above 0 and at most {}",
                                                   *lease_ns, to_string(kLongestLease)));
    }
    lease_ = Nanoseconds(*lease_ns);
    Result<std::unique_ptr<Safeguard>> safeguard = Safeguard::open(params);
    if (!safeguard) {
        return fail(std::move(safeguard.error()));
    }
    Result<std::unique_ptr<FaultService>> faults = FaultService::open(params, options_.executable);
    if (!faults) {
        return fail(std::move(faults.error()));
    }
    safeguard_ = std::move(*safeguard);
    faults_ = std::move(*faults);
    renew_lease();
    Json report = faults_->opening_report();
    safeguard_->note_keeper(report.value("guard_pid", 0), report.value("journal", ""));
    return report;
}

Result<Json> Agent::start_ranks(const Json& params) {
    const Result<std::int32_t> count = launch::field<std::int32_t>(params, "count");
    if (!count) {
        return fail(Error(count.error()));
    }
    if (!ranks_.empty()) {
        return fail(ErrorKind::kHarness, "this host's ranks are already running");
    }
    if (*count < 1 || *count > kMostRanks) {
        return fail(ErrorKind::kInput, fmt::format("{} ranks on a host; allowed: 1 to {}", *count, kMostRanks));
    }
    Json pids = Json::array();
    for (std::int32_t i = 0; i < *count; ++i) {
        Result<std::unique_ptr<RankProcess>> process = RankProcess::start(options_.executable);
        if (!process) {
            return fail(std::move(process.error())); // the others end with this agent
        }
        pids.push_back((*process)->child().pid);
        ranks_.push_back({.process = std::move(*process)});
    }
    return Json{{"pids", pids}};
}

/// Ends the ranks, whatever they are doing: all are asked at once, then each has its time.
Result<Json> Agent::end_ranks() {
    for (HostedRank& rank : ranks_) {
        if (rank.process) {
            rank.process->channel().close_write();
        }
    }
    const Deadline deadline = Deadline::after(kRankEndTimeout);
    for (HostedRank& rank : ranks_) {
        if (rank.process) {
            rank.process->end(deadline);
        }
    }
    ranks_.clear();
    return Json::object();
}

/// A fault of a rank names it by its number on the host; injectors know processes.
Result<Json> Agent::handle_fault(const std::string& method, Json params) {
    if (params.contains("local_rank")) {
        const Result<HostedRank*> rank = hosted(params);
        if (!rank) {
            return fail(Error(rank.error()));
        }
        params["pid"] = (*rank)->process->child().pid;
    }
    const std::int32_t id = launch::field<std::int32_t>(params, "id").value_or(-1);
    if (method == "fault.confirm") {
        safeguard_->confirmed(id);
        return Json::object();
    }
    if (method == "fault.apply" || method == "fault.preview") {
        if (Result<void> allowed = safeguard_->may_apply(params); !allowed) {
            return fail(std::move(allowed.error()));
        }
    }
    Result<Json> done = faults_->handle(method, params);
    if (done && method == "fault.apply") {
        safeguard_->applied(params);
    } else if (done && method == "fault.revert") {
        safeguard_->reverted(id);
    }
    return done;
}

Result<HostedRank*> Agent::hosted(const Json& params) {
    const Result<std::size_t> number = launch::field<std::size_t>(params, "local_rank");
    if (!number) {
        return fail(Error(number.error()));
    }
    if (*number >= ranks_.size()) {
        return fail(ErrorKind::kHarness, fmt::format("this host has no rank {} now", *number));
    }
    HostedRank& rank = ranks_[*number];
    if (!rank.process) {
        return fail(ended_error(rank));
    }
    return &rank;
}

Result<void> Agent::forward(const RpcMessage& request) {
    const Result<HostedRank*> found = hosted(request.params);
    if (!found) {
        return fail(Error(found.error()));
    }
    HostedRank& rank = **found;
    if (request.method == "rank.open") {
        rank.number = launch::field<std::int64_t>(request.params, "rank").value_or(-1);
    }
    Result<std::int64_t> sent = rank.process->request(request.method, request.params);
    if (!sent) {
        return fail(std::move(sent.error()));
    }
    rank.forwarded[*sent] = *request.id;
    return {};
}

void Agent::on_rank(HostedRank& rank) {
    Result<std::vector<std::string>> lines = rank.process->channel().receive();
    if (!lines) {
        return; // its end is reported by the pidfd
    }
    for (const std::string& line : *lines) {
        Result<RpcMessage> message = launch::decode(line);
        if (message && !message->id && message->method == launch::kPathStalled) {
            (void)controller_.send(launch::encode_notification(message->method, message->params));
        }
        if (!message || !message->is_reply()) {
            continue;
        }
        const auto waiting = rank.forwarded.find(*message->id);
        if (waiting == rank.forwarded.end()) {
            continue;
        }
        reply(waiting->second, message->error ? Result<Json>(tl::unexpected<Error>(std::move(*message->error)))
                                              : Result<Json>(std::move(message->result)));
        rank.forwarded.erase(waiting);
    }
}

void Agent::on_rank_end(HostedRank& rank) {
    on_rank(rank); // what it said before it died
    const launch::Child& child = rank.process->child();
    const std::optional<launch::ExitStatus> status = launch::wait_for(child, Deadline::after(lease_));
    rank.how_it_ended = status ? status->describe() : "gone";
    for (const auto& [rank_id, controller_id] : rank.forwarded) {
        reply(controller_id, fail(ended_error(rank).with("pid", std::to_string(child.pid))));
    }
    rank.forwarded.clear();
    (void)controller_.send(launch::encode_notification(
        "rank_ended", {{"pid", child.pid}, {"rank", rank.number}, {"status", rank.how_it_ended}}));
    rank.process.reset();
}

void Agent::on_guard() {
    const Result<void> guard = faults_->check_guard();
    if (guard) {
        return;
    }
    // A fault without a guard is a fault that may stay for ever: undo now, and let the controller end the run.
    const Result<Json> undone = faults_->revert_all();
    safeguard_->all_reverted();
    (void)controller_.send(
        launch::encode_notification("guard_lost", {{"reverted", undone ? *undone : Json::array()},
                                                   {"reason", guard.error().to_line()},
                                                   {"error", undone ? "" : undone.error().to_line()}}));
    faults_->forget_guard();
}

int Agent::undo_and_leave() {
    int exit_code = 0;
    Json report = Json::object();
    if (faults_) {
        Result<Json> undone = faults_->close();
        if (!undone) {
            exit_code = 5;
            tell_user(fmt::format("railbreak agent: {}\n", undone.error().to_line()));
            report["error"] = undone.error().to_line();
        } else {
            report["reverted"] = *undone;
        }
    }
    static_cast<void>(end_ranks());
    // Who makes the halt file by hand may not have written the reason yet when the file appears.
    const std::optional<std::string> why = halted_ ? safeguard_->halted() : std::nullopt;
    report["reason"] = why ? fmt::format("halted: {}", *why) : reason_to_leave_;
    if (exit_code == 0) {
        (void)controller_.send(launch::encode_notification("bye", report));
    }
    return exit_code;
}

} // namespace

int agent_main(const AgentOptions& options) {
    ::prctl(PR_SET_NAME, injectors::kAgentName); // by which an emergency stop finds it
    return Agent(options).run();
}

} // namespace railbreak::agent
