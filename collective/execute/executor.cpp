#include "collective/execute/executor.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/execute/links.hpp"
#include "collective/execute/receive_engine.hpp"
#include "collective/execute/send_engine.hpp"

namespace railbreak::collective {

namespace {

/// After this many rounds without a pause the transport is asked for news.
constexpr int kRoundsBetweenLooks = 8;
/// How often the transport is asked for paths that stalled: often beside the 200 ms after which TCP resends.
constexpr Nanoseconds kStallLook = std::chrono::milliseconds(20);

/// Moves the lane at `place` behind all others.
void to_the_back(std::span<std::uint8_t> order, std::size_t place) {
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(place),
                order.begin() + static_cast<std::ptrdiff_t>(place) + 1, order.end());
}

} // namespace

struct Executor::Engines {
    RunContext context;
    std::vector<SendEngine> send;       ///< by lane
    std::vector<ReceiveEngine> receive; ///< by lane
    LaneOrder send_order{};
    LaneOrder receive_order{};

    explicit Engines(const RunContext& made) : context(made) {
        for (Lane lane = 0; lane < context.schedule.lanes(); ++lane) {
            send.emplace_back(context, lane);
            receive.emplace_back(context, lane);
        }
        std::iota(send_order.begin(), send_order.end(), std::uint8_t{0});
        receive_order = send_order;
    }
    Engines(const Engines&) = delete;
    Engines& operator=(const Engines&) = delete;

    [[nodiscard]] bool done() const {
        return std::all_of(send.begin(), send.end(), [](const SendEngine& engine) { return engine.done(); }) &&
               std::all_of(receive.begin(), receive.end(), [](const ReceiveEngine& engine) { return engine.done(); });
    }
    [[nodiscard]] PrefixCounts sends_completed() const {
        PrefixCounts counts{};
        std::transform(send.begin(), send.end(), counts.begin(), [](const auto& engine) { return engine.completed(); });
        return counts;
    }
    [[nodiscard]] ReceiveProgress receive_progress() const {
        ReceiveProgress progress;
        for (std::size_t lane = 0; lane < receive.size(); ++lane) {
            progress.completed[lane] = receive[lane].completed();
            progress.missing[lane] = receive[lane].missing();
        }
        return progress;
    }
};

Executor::Executor(Transport& transport, const ExecutorOptions& options) : transport_(transport), options_(options) {}

Result<ExecutionStats> Executor::run(const Schedule& schedule, Dtype dtype, std::span<std::byte> vector,
                                     Deadline deadline) {
    const Rank self = transport_.self();
    RB_CHECK(self >= 0 && self < schedule.ranks(), "the transport's rank is not in the schedule");
    RB_CHECK(schedule.lanes() >= 1 && schedule.lanes() <= kMaxLanes, "a schedule has one to kMaxLanes lanes");
    RB_CHECK(vector.size() == static_cast<std::size_t>(schedule.elements()) * size_of(dtype),
             "the vector's size is not the schedule's");
    ExecutionStats stats;
    stats.started_at = monotonic_now();
    Engines engines(RunContext{transport_, schedule, self, dtype, size_of(dtype), vector, runs_++, options_});
    if (Result<void> driven = drive(engines, deadline, stats); !driven) {
        transport_.abort();
        return tl::unexpected<Error>(std::move(driven.error()));
    }
    stats.ended_at = monotonic_now();
    for (std::size_t lane = 0; lane < engines.send.size(); ++lane) {
        const ReceiveEngine::Totals& totals = engines.receive[lane].totals();
        const bool received = totals.bytes > 0;
        stats.bytes_sent += engines.send[lane].bytes();
        stats.bytes_received += totals.bytes;
        stats.last_receive_at = std::max(stats.last_receive_at, totals.last_flow.last_read_at);
        if (received && (stats.first_receive_at.count() == 0 || totals.first_read_at < stats.first_receive_at)) {
            stats.first_receive_at = totals.first_read_at;
        }
        stats.last_flows[lane] = totals.last_flow;
        stats.send_steps[lane] = engines.send[lane].completed();
        stats.receive_steps[lane] = engines.receive[lane].completed();
    }
    return stats;
}

Result<void> Executor::drive(Engines& engines, Deadline deadline, ExecutionStats& stats) {
    for (std::size_t lane = 0; lane < engines.send.size(); ++lane) {
        Result<void> loaded = engines.receive[lane].load().and_then([&] { return engines.send[lane].load(); });
        if (!loaded) {
            return loaded;
        }
    }
    int rounds = 0;
    Nanoseconds next_look = options_.on_stalled ? monotonic_now() + kStallLook : Nanoseconds::max();
    for (;;) {
        Result<bool> moved = pump_all(engines);
        if (!moved) {
            return tl::unexpected<Error>(std::move(moved.error()));
        }
        publish(engines);
        if (engines.done()) {
            return {};
        }
        if (*moved && ++rounds < kRoundsBetweenLooks) {
            continue;
        }
        rounds = 0;
        stats.waits += *moved ? 0 : 1;
        Result<WaitResult> waited =
            transport_.wait(Deadline::at(*moved ? Nanoseconds(0) : std::min(deadline.when(), next_look)));
        if (!waited) {
            return tl::unexpected<Error>(std::move(waited.error()));
        }
        look_for_stalls(next_look);
        if (Result<void> alive = check_closed(engines); !alive) {
            return alive;
        }
        if (*waited == WaitResult::kTimedOut && deadline.passed()) {
            return fail(stalled_error(engines));
        }
    }
}

Result<bool> Executor::pump_all(Engines& engines) {
    bool moved = false;
    const std::size_t lanes = engines.send.size();
    const auto receive_order = std::span(engines.receive_order).first(lanes);
    const auto send_order = std::span(engines.send_order).first(lanes);
    std::size_t next_receive = 0;
    std::size_t next_send = 0;
    for (std::size_t turn = 0; turn < lanes; ++turn) {
        Result<bool> received = engines.receive[receive_order[next_receive]].pump(engines.sends_completed());
        if (!received) {
            return received;
        }
        Result<bool> sent = engines.send[send_order[next_send]].pump(engines.receive_progress());
        if (!sent) {
            return sent;
        }
        moved = moved || *received || *sent;
        // A lane that moved goes behind the others, whose places move up; one that did not is passed by.
        *received ? to_the_back(receive_order, next_receive) : static_cast<void>(++next_receive);
        *sent ? to_the_back(send_order, next_send) : static_cast<void>(++next_send);
    }
    return moved;
}

void Executor::look_for_stalls(Nanoseconds& next_look) {
    const Nanoseconds now = options_.on_stalled ? monotonic_now() : Nanoseconds(0);
    if (now >= next_look) {
        for (const StalledPath& path : transport_.take_stalled()) {
            options_.on_stalled(path);
        }
        next_look = now + kStallLook;
    }
}

Result<void> Executor::check_closed(const Engines& engines) {
    for (const LinkIndex index : transport_.take_closed()) {
        const LinkSpec link = transport_.link(index);
        const Schedule& schedule = engines.context.schedule;
        if (link.lane >= schedule.lanes() || link.peer >= schedule.ranks() ||
            link != link_of(schedule, engines.context.self, link.direction, link.peer, link.lane)) {
            continue; // a link of another schedule
        }
        const auto lane = static_cast<std::size_t>(link.lane);
        const bool dead = link.direction == Direction::kOutgoing
                              ? engines.send[lane].owes(link.peer)
                              : engines.receive[lane].bytes_owed_by(link.peer) > transport_.readable_bytes(index);
        if (dead) {
            return fail(transport_.closed_error(index));
        }
    }
    return {};
}

Error Executor::stalled_error(const Engines& engines) const {
    std::string text;
    std::vector<std::pair<std::string, std::string>> facts;
    const auto add = [&](std::string_view direction, std::size_t lane, std::int64_t index, std::int64_t count,
                         const Step& step, std::uint64_t done, std::string_view why) {
        const std::int64_t total = step.slice.count * engines.context.element_bytes;
        const bool sends = direction == "send";
        const Port port =
            link_of(engines.context.schedule, engines.context.self, sends ? Direction::kOutgoing : Direction::kIncoming,
                    step.peer, static_cast<Lane>(lane))
                .own_port;
        const std::string place = port.kind == PortKind::kNic ? fmt::format("NIC {}", port.nic) : "inside the host";
        text += fmt::format("{}lane {} {} step {} of {} ({}, {} rank {}, {}): {} of {} bytes, {}",
                            text.empty() ? "" : "; ", lane, direction, index, count, to_string(step.stage),
                            sends ? "to" : "from", step.peer, place, done, total, why);
        if (facts.empty()) {
            facts = {{"lane", std::to_string(lane)},       {"direction", std::string(direction)},
                     {"step", std::to_string(index)},      {"stage", std::string(to_string(step.stage))},
                     {"peer", std::to_string(step.peer)},  {"port", place},
                     {"bytes_done", std::to_string(done)}, {"bytes_total", std::to_string(total)}};
        }
    };
    const Schedule& schedule = engines.context.schedule;
    const Rank self = engines.context.self;
    for (std::size_t lane = 0; lane < engines.receive.size(); ++lane) {
        if (const ReceiveEngine& engine = engines.receive[lane]; !engine.done()) {
            add("receive", lane, engine.completed(), schedule.receive_count(self, static_cast<Lane>(lane)),
                engine.step(), engine.step_bytes_done(), "waits for the peer");
        }
    }
    for (std::size_t lane = 0; lane < engines.send.size(); ++lane) {
        if (const SendEngine& engine = engines.send[lane]; !engine.done()) {
            add("send", lane, engine.completed(), schedule.send_count(self, static_cast<Lane>(lane)), engine.step(),
                engine.step_bytes_done(),
                engine.waits_for_link() ? "waits for room on the link" : "waits for data to forward");
        }
    }
    Error error(ErrorKind::kOutcome, fmt::format("rank {} stalled in {}: {}", self, schedule.name(), text));
    error.add_fact("rank", std::to_string(self));
    for (auto& [name, value] : facts) {
        error.add_fact(name, std::move(value));
    }
    return error;
}

void Executor::publish(const Engines& engines) {
    for (std::size_t lane = 0; lane < engines.send.size(); ++lane) {
        sends_completed_[lane].store(engines.send[lane].completed(), std::memory_order_relaxed);
        receives_completed_[lane].store(engines.receive[lane].completed(), std::memory_order_relaxed);
    }
}

ExecutionProgress Executor::progress() const {
    ExecutionProgress progress;
    for (std::size_t lane = 0; lane < progress.sends_completed.size(); ++lane) {
        progress.sends_completed[lane] = sends_completed_[lane].load(std::memory_order_relaxed);
        progress.receives_completed[lane] = receives_completed_[lane].load(std::memory_order_relaxed);
    }
    return progress;
}

} // namespace railbreak::collective
