#include "harness/controller/agent_link.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/agent/fault_watch.hpp"
#include "injectors/time_limits.hpp"

namespace railbreak::controller {

using launch::Json;
using launch::RpcMessage;

namespace {

/// Lines before the hello come from login shells and banners; so much of them is kept for the error text.
constexpr std::size_t kNoiseBytesMax = std::size_t{64} * 1024;
constexpr std::size_t kStderrTailBytes = std::size_t{8} * 1024;
/// As long as the agent waits for the probe.
constexpr Nanoseconds kProbeTimeout = agent::kConfirmTimeout;

} // namespace

AgentLink::AgentLink(std::int32_t host, std::string name, launch::Child child)
    : host_(host), name_(std::move(name)), child_(std::move(child)),
      channel_(std::move(child_.stdout_fd), std::move(child_.stdin_fd)), last_heard_at_(monotonic_now()) {
    if (child_.stderr_fd.valid()) {
        ::fcntl(child_.stderr_fd.get(), F_SETFL, O_NONBLOCK);
    }
}

Result<std::int64_t> AgentLink::request(std::string_view method, const Json& params) {
    if (lost_) {
        return fail(lost_error());
    }
    const std::int64_t id = next_id_++;
    if (Result<void> sent = channel_.send(launch::encode_request(id, method, params)); !sent) {
        return fail(std::move(sent.error()).with("host", name_));
    }
    replies_[id] = std::nullopt;
    note_duration(id, method, params);
    return id;
}

void AgentLink::note_duration(std::int64_t call, std::string_view method, const Json& params) {
    const auto fault = launch::field<std::int32_t>(params, "id").value_or(-1);
    if (method == "fault.apply") {
        const auto name = launch::field<std::string>(params, "kind").value_or("");
        const auto mechanism = launch::field<std::string>(params, "mechanism").value_or("");
        applying_[call] = fault;
        for (const injectors::FaultKind kind : injectors::kFaultKinds) {
            if (to_string(kind) == name) {
                const injectors::FaultKind made = injectors::kind_made_by(kind, mechanism).value_or(kind);
                busy_[call] = {apply_wait(made), fault, false};
                undo_times_[fault] = undo_wait(made);
            }
        }
    } else if (method == "fault.revert" && undo_times_.contains(fault)) {
        busy_[call] = {undo_times_[fault], fault, true};
    } else if (method == "init") {
        busy_[call] = {kLeftoversTime, fault, true};
    }
}

Nanoseconds AgentLink::busy_for() const {
    return std::accumulate(busy_.begin(), busy_.end(), busy_.empty() ? Nanoseconds::zero() : injectors::kOwnWork,
                           [](Nanoseconds sum, const auto& each) { return sum + each.second.longest; });
}

Nanoseconds AgentLink::undo_time() const {
    const Nanoseconds work = undo_times_.empty() ? Nanoseconds::zero() : injectors::kOwnWork;
    return std::accumulate(undo_times_.begin(), undo_times_.end(), work,
                           [](Nanoseconds sum, const auto& each) { return sum + each.second; });
}

std::optional<Result<Json>> AgentLink::take(std::int64_t id) {
    const auto found = replies_.find(id);
    if (found == replies_.end() || (!found->second && !lost_)) {
        return std::nullopt;
    }
    std::optional<Result<Json>> reply = std::move(found->second);
    replies_.erase(found);
    return reply ? std::move(reply) : std::optional<Result<Json>>(tl::unexpected<Error>(lost_error()));
}

void AgentLink::ping() {
    if (lost_ || bye_ || !said_hello() || ping_id_) {
        return;
    }
    ping_id_ = next_id_++;
    ping_sent_at_ = monotonic_now();
    // A failed write shows itself as end of file or as silence; both are handled where they are seen.
    (void)channel_.send(launch::encode_request(*ping_id_, "ping", Json::object()));
}

void AgentLink::on_readable(std::vector<RpcMessage>& notifications) {
    Result<std::vector<std::string>> lines = channel_.receive();
    if (!lines) {
        mark_lost(std::move(lines.error()));
        return;
    }
    for (const std::string& line : *lines) {
        last_heard_at_ = monotonic_now();
        on_line(line, notifications);
    }
    if (channel_.at_end() && !lost_) {
        mark_lost(Error(ErrorKind::kHarness, bye_ ? fmt::format("the agent has ended: {}", *bye_)
                                                  : std::string("the agent ended without a word")));
    }
}

void AgentLink::on_line(const std::string& line, std::vector<RpcMessage>& notifications) {
    if (!said_hello()) {
        on_hello_or_noise(line);
        return;
    }
    Result<RpcMessage> message = launch::decode(line);
    if (!message) {
        mark_lost(std::move(message.error()).during("the agent's output is not a conversation any more"));
        return;
    }
    if (!message->is_reply()) {
        if (message->method == "bye") {
            bye_ = launch::field<std::string>(message->params, "reason").value_or("no reason given");
        }
        notifications.push_back(std::move(*message));
    } else if (message->id == ping_id_) {
        on_pong(*message);
    } else {
        on_reply(*message);
    }
}

void AgentLink::on_reply(RpcMessage& reply) {
    if (const auto applying = applying_.find(*reply.id); applying != applying_.end()) {
        const std::int32_t fault = applying->second;
        applying_.erase(applying);
        if (!reply.error) {
            probe(fault);
        }
    }
    probes_.erase(*reply.id);
    if (const auto busy = busy_.find(*reply.id); busy != busy_.end()) {
        // What could not be applied is in force no more than what was reverted.
        const bool undone =
            busy->second.reverts ? !reply.error : reply.error && reply.error->kind() != ErrorKind::kTeardown;
        if (undone) {
            undo_times_.erase(busy->second.fault);
        }
        busy_.erase(busy);
    }
    if (const auto waiting = replies_.find(*reply.id); waiting != replies_.end()) {
        waiting->second = reply.error ? Result<Json>(tl::unexpected<Error>(std::move(*reply.error)))
                                      : Result<Json>(std::move(reply.result));
    }
}

void AgentLink::probe(std::int32_t fault) {
    const std::int64_t id = next_id_++;
    probes_[id] = monotonic_now();
    // A failed write shows itself as silence.
    (void)channel_.send(launch::encode_request(id, "fault.confirm", {{"id", fault}}));
}

/// An agent that is busy with another fault answers when it is done with it.
bool AgentLink::probe_overdue() const {
    if (probes_.empty() || !busy_.empty()) {
        return false;
    }
    const Nanoseconds asked = std::min_element(probes_.begin(), probes_.end(), [](const auto& a, const auto& b) {
                                  return a.second < b.second;
                              })->second;
    return monotonic_now() - std::max(asked, last_heard_at_) > kProbeTimeout;
}

void AgentLink::on_hello_or_noise(const std::string& line) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("railbreak", Json()) != "hello") {
        noise_before_hello_ += line.substr(0, 4096) + "\n";
        if (noise_before_hello_.size() > kNoiseBytesMax) {
            mark_lost(Error(ErrorKind::kHarness, "the agent's host talks before the agent does, without end")
                          .with("begins", noise_before_hello_.substr(0, 80)));
        }
        return;
    }
    if (json.value("proto", Json()) != launch::kProtocolVersion) {
        mark_lost(Error(ErrorKind::kHarness, "the agent speaks another version of the protocol")
                      .with("agent", json.value("version", "unknown"))
                      .advise("install the same railbreak on every host"));
        return;
    }
    hello_ = json;
}

void AgentLink::on_pong(const RpcMessage& reply) {
    ping_id_.reset();
    const Result<std::int64_t> there = launch::field<std::int64_t>(reply.result, "monotonic_ns");
    if (!there) {
        return;
    }
    const Nanoseconds now = monotonic_now();
    const Nanoseconds half_trip = (now - ping_sent_at_) / 2;
    if (!clock_.known || half_trip < clock_.error) {
        clock_ = {Nanoseconds(*there) - (ping_sent_at_ + half_trip), half_trip, true};
    }
}

void AgentLink::on_writable() {
    (void)channel_.flush();
}

void AgentLink::on_stderr() {
    std::array<char, 4096> buffer{};
    for (;;) {
        const ssize_t count = ::read(child_.stderr_fd.get(), buffer.data(), buffer.size());
        if (count == 0) {
            child_.stderr_fd.reset();
        }
        if (count <= 0) {
            break;
        }
        stderr_tail_.append(buffer.data(), static_cast<std::size_t>(count));
    }
    if (stderr_tail_.size() > kStderrTailBytes) {
        stderr_tail_.erase(0, stderr_tail_.size() - kStderrTailBytes);
    }
}

const std::optional<launch::ExitStatus>& AgentLink::reap() {
    if (!ended_) {
        ended_ = launch::wait_for(child_, Deadline::after(Nanoseconds::zero()));
    }
    return ended_;
}

void AgentLink::mark_lost(Error reason) {
    if (!lost_) {
        lost_ = std::move(reason);
    }
}

Error AgentLink::lost_error() const {
    Error error = Error(*lost_).during(fmt::format("agent on host {}", name_)).with("host", name_);
    std::string last_words = stderr_tail_.substr(stderr_tail_.size() > 300 ? stderr_tail_.size() - 300 : 0);
    while (!last_words.empty() && last_words.back() == '\n') {
        last_words.pop_back();
    }
    return last_words.empty() ? error : std::move(error).with("stderr", last_words);
}

} // namespace railbreak::controller
