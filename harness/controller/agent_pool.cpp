#include "harness/controller/agent_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/console.hpp"
#include "base/units.hpp"

namespace railbreak::controller {

using launch::Json;
using launch::RpcMessage;

namespace {

/// The loop never sleeps longer than this, so that a lost wake-up costs little.
constexpr Nanoseconds kLongestPoll = std::chrono::milliseconds(500);
/// The first signal reverts, the second is explained, the third leaves the rest to the hosts.
constexpr int kSignalsToAbandon = 3;

/// A rank that lost its connection to a peer tells of the consequence; the peer's own error is the cause. The smaller
/// the weight, the more an Error says.
int weight(const Error& error) {
    const auto lost_its_peer = [](const auto& fact) {
        return fact.first == "errno" && (fact.second == "EOF" || fact.second == "ECONNRESET" ||
                                         fact.second == "EPIPE" || fact.second == "ECONNABORTED");
    };
    const bool consequence = std::any_of(error.facts().begin(), error.facts().end(), lost_its_peer);
    return (consequence ? 10 : 0) + (error.kind() == ErrorKind::kOutcome ? 0 : 1);
}

constexpr std::string_view kInterrupted = "interrupted by ";
constexpr std::string_view kAbandoned = "left to the hosts by the third signal";

} // namespace

bool is_interruption(const Error& error) {
    return error.message().find(kInterrupted) != std::string::npos ||
           error.message().find(kAbandoned) != std::string::npos;
}

Result<std::unique_ptr<AgentPool>> AgentPool::create(Nanoseconds lease, NotificationHandler handler) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&signals, signal);
    }
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    UniqueFd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signal_fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "open a signal descriptor", errno);
    }
    return std::unique_ptr<AgentPool>(new AgentPool(lease, std::move(handler), std::move(signal_fd)));
}

AgentPool::AgentPool(Nanoseconds lease, NotificationHandler handler, UniqueFd signal_fd)
    : lease_(lease), handler_(std::move(handler)), signal_fd_(std::move(signal_fd)) {}

void AgentPool::add(std::int32_t host, std::string name, launch::Child child) {
    links_.push_back(std::make_unique<AgentLink>(host, std::move(name), std::move(child)));
}

Result<void> AgentPool::await_hellos(Deadline deadline) {
    const auto settled = [&] {
        return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->said_hello(); }) ||
               std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link->lost(); });
    };
    Result<void> waited = wait_until(settled, deadline, "every agent's hello");
    for (const auto& link : links_) {
        if (link->lost()) {
            return fail(Error(*link->lost_reason()).during("agent on host " + link->name()));
        }
    }
    return waited;
}

Result<std::int64_t> AgentPool::start_call(std::int32_t host, std::string_view method, const Json& params) {
    return link(host).request(method, params);
}

std::optional<Result<Json>> AgentPool::take_reply(std::int32_t host, std::int64_t id) {
    return link(host).take(id);
}

Result<Json> AgentPool::call(std::int32_t host, std::string_view method, const Json& params, Deadline deadline) {
    Result<std::int64_t> id = start_call(host, method, params);
    if (!id) {
        return fail(std::move(id.error()));
    }
    std::optional<Result<Json>> reply;
    const std::string what = fmt::format("{} on host {}", method, link(host).name());
    const auto arrived = [&] {
        if (!reply) {
            reply = take_reply(host, *id);
        }
        return reply.has_value();
    };
    if (Result<void> waited = wait_until(arrived, deadline, what); !waited) {
        return fail(std::move(waited.error()));
    }
    return std::move(*reply);
}

Result<std::vector<Json>> AgentPool::call_each(std::string_view method, std::size_t per_host,
                                               const std::function<Json(std::int32_t)>& params, Deadline deadline,
                                               Nanoseconds grace) {
    const std::size_t calls = links_.size() * per_host;
    std::vector<std::optional<std::int64_t>> ids;
    std::vector<std::optional<Result<Json>>> replies(calls);
    for (std::size_t i = 0; i < calls; ++i) {
        Result<std::int64_t> id = links_[i / per_host]->request(method, params(static_cast<std::int32_t>(i)));
        ids.push_back(id ? std::optional(*id) : std::nullopt);
        if (!id) {
            replies[i] = tl::unexpected<Error>(std::move(id.error()));
        }
    }
    std::optional<Deadline> grace_end; // once one has failed
    const auto arrived = [&] {
        bool all = true;
        for (std::size_t i = 0; i < calls; ++i) {
            if (!replies[i]) {
                replies[i] = links_[i / per_host]->take(*ids[i]);
            }
            if (replies[i] && !*replies[i] && !grace_end) {
                grace_end = Deadline::after(grace);
            }
            all = all && replies[i].has_value();
        }
        return all || (grace_end && grace_end->passed());
    };
    Result<void> waited = wait_until(arrived, deadline, fmt::format("{} on every host", method));
    std::optional<std::size_t> worst;
    std::vector<Json> results;
    std::vector<std::string> silent; // hosts that have not answered
    for (std::size_t i = 0; i < calls; ++i) {
        std::optional<Result<Json>>& reply = replies[i];
        if (reply && !*reply && (!worst || weight(reply->error()) < weight(replies[*worst]->error()))) {
            worst = i;
        }
        const std::string& host = links_[i / per_host]->name();
        if (!reply && (silent.empty() || silent.back() != host)) {
            silent.push_back(host);
        }
        results.push_back(reply && *reply ? std::move(**reply) : Json());
    }
    if (worst) {
        Error error = replies[*worst]->error();
        if (std::ranges::find(error.facts(), "host", &std::pair<std::string, std::string>::first) ==
            error.facts().end()) {
            error.add_fact("host", links_[*worst / per_host]->name());
        }
        if (!silent.empty()) {
            error.add_fact("no_answer_from", fmt::format("{}", fmt::join(silent, ", ")));
        }
        return tl::unexpected<Error>(std::move(error));
    }
    if (!waited) {
        return fail(std::move(waited.error()));
    }
    return results;
}

Result<void> AgentPool::wait_until(const std::function<bool()>& done, Deadline deadline, std::string_view what) {
    for (;;) {
        if (done()) {
            return {};
        }
        if (abandoned()) {
            return fail(ErrorKind::kHarness, fmt::format("{}, while waiting for {}", kAbandoned, what));
        }
        if (!interrupted_by_.empty() && !tearing_down_) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{}{} while waiting for {}", kInterrupted, interrupted_by_, what));
        }
        if (deadline.passed()) {
            return fail(ErrorKind::kHarness, fmt::format("the deadline passed while waiting for {}", what));
        }
        poll_once(deadline.left());
    }
}

void AgentPool::run_at(Nanoseconds when, std::function<void()> action) {
    timers_.emplace(when, std::move(action));
}

void AgentPool::poll_once(Nanoseconds budget) {
    keep_leases();
    run_due_timers();
    budget = std::min({budget, kLongestPoll, lease_ / 6});
    if (!timers_.empty()) {
        budget = std::min(budget, std::max(timers_.begin()->first - monotonic_now(), Nanoseconds::zero()));
    }
    struct Owner {
        std::size_t index;
        bool is_stderr;
        bool is_write;
        bool is_end = false; ///< of the process: whoever waits looks for itself
    };
    std::vector<pollfd> fds{{signal_fd_.get(), POLLIN, 0}};
    std::vector<Owner> owners{{0, false, false}};
    for (std::size_t i = 0; i < links_.size(); ++i) {
        AgentLink& link = *links_[i];
        if (!link.lost()) {
            fds.push_back({link.channel().read_fd(), POLLIN, 0});
            owners.push_back({i, false, false});
        }
        if (!link.lost() && link.channel().wants_write()) {
            fds.push_back({link.channel().write_fd(), POLLOUT, 0});
            owners.push_back({i, false, true});
        }
        if (awaiting_ends_ && !link.reap()) {
            fds.push_back({link.child().pidfd.get(), POLLIN, 0});
            owners.push_back({i, false, false, true});
        }
        if (link.child().stderr_fd.valid()) {
            fds.push_back({link.child().stderr_fd.get(), POLLIN, 0});
            owners.push_back({i, true, false});
        }
    }
    const timespec wait{std::chrono::duration_cast<std::chrono::seconds>(budget).count(),
                        (budget % std::chrono::seconds(1)).count()};
    if (::ppoll(fds.data(), fds.size(), &wait, nullptr) <= 0) {
        return;
    }
    for (std::size_t i = 0; i < fds.size(); ++i) {
        if (fds[i].revents != 0 && !owners[i].is_end) {
            i == 0 ? read_signals() : dispatch(owners[i].index, owners[i].is_stderr, owners[i].is_write);
        }
    }
}

void AgentPool::dispatch(std::size_t index, bool is_stderr, bool is_write) {
    AgentLink& link = *links_[index];
    if (is_stderr) {
        link.on_stderr();
        return;
    }
    if (is_write) {
        link.on_writable();
        return;
    }
    std::vector<RpcMessage> notifications;
    link.on_readable(notifications);
    for (const RpcMessage& notification : notifications) {
        handler_(link.host(), notification);
    }
}

void AgentPool::keep_leases() {
    const Nanoseconds now = monotonic_now();
    for (const auto& link : links_) {
        if (link->said_hello() && !link->lost() && now - link->last_heard_at() > lease_ + link->busy_for()) {
            link->mark_lost(Error(ErrorKind::kHarness,
                                  fmt::format("the agent has been silent for its whole lease of {}", to_string(lease_)))
                                .advise("its guard reverts every fault by itself; check the path to the host"));
        }
    }
    for (const auto& link : links_) {
        if (!link->lost() && link->probe_overdue()) {
            link->mark_lost(Error(ErrorKind::kHarness, "the agent did not answer after a fault was applied")
                                .advise("the fault may have cut it off; the agent undoes it by itself"));
        }
    }
    if (now >= next_ping_at_) {
        next_ping_at_ = now + lease_ / 6;
        for (const auto& link : links_) {
            link->ping();
        }
    }
}

void AgentPool::run_due_timers() {
    while (!timers_.empty() && timers_.begin()->first <= monotonic_now()) {
        const std::function<void()> action = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
        action();
    }
}

Nanoseconds AgentPool::busy_for() const {
    Nanoseconds longest{0};
    for (const auto& link : links_) {
        longest = std::max(longest, link->busy_for() + link->undo_time());
    }
    return longest;
}

bool AgentPool::abandoned() const {
    return signals_seen_ >= kSignalsToAbandon;
}

void AgentPool::read_signals() {
    signalfd_siginfo info{};
    while (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        ++signals_seen_;
        const char* name = ::sigabbrev_np(static_cast<int>(info.ssi_signo));
        if (interrupted_by_.empty()) {
            interrupted_by_ = fmt::format("SIG{}", name != nullptr ? name : "?");
        }
        if (signals_seen_ == 1) {
            tell_user(fmt::format("\n{}: reverting every fault, then ending\n", interrupted_by_));
        } else if (signals_seen_ < kSignalsToAbandon) {
            tell_user(fmt::format("\nsignal {}: still reverting; another one ends this at once and leaves it to the "
                                  "hosts, which revert by themselves within {}\n",
                                  signals_seen_, to_string(lease_)));
        } else if (signals_seen_ == kSignalsToAbandon) {
            tell_user(fmt::format("\nsignal {}: ending; the hosts revert by themselves within {}\n", signals_seen_,
                                  to_string(lease_)));
        }
    }
}

std::vector<Error> AgentPool::shut_down(Nanoseconds grace) {
    begin_teardown();
    grace += busy_for(); // each undoes what is in force before it ends
    for (const auto& link : links_) {
        (void)link->request("shutdown", Json::object());
    }
    const auto all_ended = [&] {
        return std::all_of(links_.begin(), links_.end(),
                           [](const auto& link) { return link->lost() || link->channel().at_end(); });
    };
    (void)wait_until(all_ended, Deadline::after(grace), "every agent's bye");
    for (const auto& link : links_) {
        link->channel().close_write();
    }
    awaiting_ends_ = true;
    for (const int signal : {0, SIGTERM, SIGKILL}) {
        if (abandoned()) {
            break; // an agent that still reverts is not to be killed at that
        }
        for (const auto& link : links_) {
            if (signal != 0 && !link->reap()) {
                launch::send_signal(link->child(), signal);
            }
        }
        const auto all_reaped = [&] {
            return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->reap().has_value(); });
        };
        if (wait_until(all_reaped, Deadline::after(grace), "every agent's end")) {
            break;
        }
    }
    std::vector<Error> problems;
    for (const auto& link : links_) {
        if (!link->said_bye()) {
            const std::optional<launch::ExitStatus>& status = link->reap();
            problems.push_back(Error(ErrorKind::kTeardown,
                                     fmt::format("the agent on host {} {} without confirming that its host is as it "
                                                 "was ({})",
                                                 link->name(), abandoned() ? "was left" : "ended",
                                                 status ? status->describe() : "still running"))
                                   .with("host", link->name())
                                   .advise("its guard reverts on its own; railbreak recover on that host confirms it"));
        }
    }
    return problems;
}

} // namespace railbreak::controller
