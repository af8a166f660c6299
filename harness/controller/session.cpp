#include "harness/controller/session.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "kernels/dtype.hpp"

namespace railbreak::controller {

using launch::Json;

namespace {

/// Starting processes and opening sockets on every host; generous, because a loaded machine is not a broken one.
constexpr Nanoseconds kStartTimeout = std::chrono::seconds(20);
constexpr Nanoseconds kConnectTimeout = std::chrono::seconds(20);
/// Every rank holds the bytes of a probe in memory, so that fast ports are probed for a shorter time.
constexpr std::uint64_t kProbeBytesMax = 256ULL << 20;
/// Less than this through a slow port would mostly measure a shaper's burst and a queue.
constexpr std::uint64_t kProbeBytesMin = 512ULL << 10;

/// An upper estimate of how long a probe of a full run lasts.
constexpr Nanoseconds kUsualProbe = std::chrono::milliseconds(500);

std::uint64_t probe_bytes(BitRate rate, Nanoseconds span) {
    const double wanted = static_cast<double>(rate.bytes_per_s()) * std::chrono::duration<double>(span).count();
    return static_cast<std::uint64_t>(std::min(wanted, static_cast<double>(kProbeBytesMax)));
}

/// What the kernel could give without swapping; nothing where it does not say.
std::optional<std::uint64_t> available_memory() {
    std::ifstream file("/proc/meminfo");
    for (std::string word; file >> word;) {
        std::uint64_t kibibytes = 0;
        if (word == "MemAvailable:" && file >> kibibytes) {
            return kibibytes * 1024;
        }
    }
    return std::nullopt;
}

/// Refuses a cluster whose ranks, all on this machine, need more memory than there is: the kernel would end processes
/// that have nothing to do with the run.
Result<void> check_memory(const scenarios::Plan& plan) {
    const auto ranks = static_cast<std::uint64_t>(plan.cluster.hosts);
    const std::uint64_t needed = ranks * (plan.workload.bytes.bytes() + probe_bytes(plan.cluster.rate, kUsualProbe));
    const std::optional<std::uint64_t> available = available_memory();
    if (!available || needed <= *available) {
        return {};
    }
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} ranks with {} each need more memory than this machine has available",
                                               ranks, to_string(plan.workload.bytes)))
            .with("needed_bytes", std::to_string(needed))
            .with("available_bytes", std::to_string(*available))
            .advise("use fewer hosts or a smaller vector"));
}

} // namespace

std::int64_t Session::elements() const {
    return static_cast<std::int64_t>(plan_.workload.bytes.bytes() / size_of(plan_.workload.dtype));
}

Nanoseconds Session::to_controller_clock(std::int32_t host, Nanoseconds there) {
    return there - agents_->link(host).clock().offset;
}

Result<std::unique_ptr<Session>> Session::open(const scenarios::Plan& plan, const Options& options,
                                               record::Recorder& recorder, std::int64_t run,
                                               AgentPool::NotificationHandler handler) {
    if (Result<void> enough = check_memory(plan); !enough) {
        return fail(std::move(enough.error()));
    }
    std::unique_ptr<Session> session(new Session(plan, options));
    Result<std::unique_ptr<AgentPool>> agents = AgentPool::create(plan.lease, std::move(handler));
    if (!agents) {
        return fail(std::move(agents.error()));
    }
    session->agents_ = std::move(*agents);
    Result<lab::Lab> lab = lab::Lab::up({.name = fmt::format("run-{}", ::getpid()),
                                         .hosts = static_cast<unsigned>(plan.cluster.hosts),
                                         .nics_per_host = static_cast<unsigned>(plan.cluster.nics_per_host),
                                         .rate = plan.cluster.rate,
                                         .mtu_bytes = static_cast<unsigned>(plan.cluster.mtu_bytes)});
    if (!lab) {
        return fail(std::move(lab.error()));
    }
    session->lab_ = std::make_unique<lab::Lab>(std::move(*lab));
    Result<void> ready = session->start_agents();
    if (ready) {
        ready = session->init_agents();
    }
    if (ready) {
        ready = session->start_ranks();
    }
    if (ready) {
        ready = session->record_cluster(recorder, run);
    }
    if (!ready) {
        (void)session->close();
        return fail(std::move(ready.error()));
    }
    return session;
}

Result<void> Session::start_agents() {
    for (std::int32_t host = 0; host < plan_.cluster.hosts; ++host) {
        Result<launch::Child> child = launch::spawn({.argv = {options_.executable, "agent", "--stdio"},
                                                     .netns_fd = lab_->host_netns_fd(static_cast<unsigned>(host))});
        if (!child) {
            return fail(std::move(child.error()).during(fmt::format("starting the agent of host h{}", host)));
        }
        agents_->add(host, lab_->hosts().at(static_cast<std::size_t>(host)).name, std::move(*child));
    }
    return agents_->await_hellos(Deadline::after(kStartTimeout));
}

Result<void> Session::init_agents() {
    const auto params = [&](std::int32_t host) {
        return Json{{"run_id", options_.run_id},
                    {"host_name", agents_->link(host).name()},
                    {"lease_ns", plan_.lease.count()},
                    {"protected_nics", Json::array()}};
    };
    Result<std::vector<Json>> replies = agents_->call_all("init", params, Deadline::after(kStartTimeout));
    return replies ? Result<void>() : fail(std::move(replies.error()));
}

Result<void> Session::start_ranks() {
    Result<std::vector<Json>> started = agents_->call_all(
        "start_rank", [](std::int32_t) { return Json::object(); }, Deadline::after(kStartTimeout));
    if (!started) {
        return fail(std::move(started.error()));
    }
    const auto params = [&](std::int32_t host) {
        return Json{{"rank", host},
                    {"ranks", plan_.cluster.hosts},
                    {"address", lab_->hosts().at(static_cast<std::size_t>(host)).nics.front().address},
                    {"token", options_.token_hex},
                    {"elements", elements()},
                    {"dtype", std::string(to_string(plan_.workload.dtype))},
                    {"seed", options_.fill_seed}};
    };
    Result<std::vector<Json>> opened = agents_->call_all("rank.open", params, Deadline::after(kStartTimeout));
    if (!opened) {
        return fail(std::move(opened.error()));
    }
    for (std::int32_t host = 0; host < plan_.cluster.hosts; ++host) {
        const auto index = static_cast<std::size_t>(host);
        const Result<std::int64_t> port = launch::field<std::int64_t>((*opened)[index], "port");
        const Result<std::int64_t> pid = launch::field<std::int64_t>((*started)[index], "pid");
        if (!port || !pid) {
            return fail(Error(port ? pid.error() : port.error()));
        }
        peers_.push_back({{"address", lab_->hosts().at(index).nics.front().address}, {"port", *port}});
        rank_pids_.push_back(*pid);
    }
    return {};
}

Result<void> Session::record_cluster(record::Recorder& recorder, std::int64_t run) {
    for (const lab::LabHost& lab_host : lab_->hosts()) {
        const auto host = static_cast<std::int32_t>(lab_host.index);
        AgentLink& link = agents_->link(host);
        Result<void> stored = recorder.add_host({.run = run,
                                                 .host = host,
                                                 .name = lab_host.name,
                                                 .boot_id = link.hello().value("boot_id", ""),
                                                 .netns = link.hello().value("netns", ""),
                                                 .clock_offset_ns = link.clock().offset.count(),
                                                 .clock_error_ns = link.clock().error.count()});
        if (stored) {
            stored = recorder.add_rank({.run = run, .rank = host, .host = host, .pid = rank_pids_.at(lab_host.index)});
        }
        if (!stored) {
            return stored;
        }
    }
    return {};
}

record::NicRow Session::nic_row(std::int32_t host, const PortGoodput& port, std::int64_t run) const {
    const lab::LabNic& nic = lab_->hosts().at(static_cast<std::size_t>(host)).nics.front();
    return {.run = run,
            .host = host,
            .nic = 0,
            .name = nic.name,
            .mac = nic.mac,
            .address = nic.address,
            .line_rate_bits_per_s = static_cast<std::int64_t>(plan_.cluster.rate.bits_per_s()),
            .send_goodput_bits_per_s = static_cast<std::int64_t>(port.send.bits_per_s()),
            .receive_goodput_bits_per_s = static_cast<std::int64_t>(port.receive.bits_per_s())};
}

Result<PreparedPlan> Session::prepare(const agent::PlanSpec& spec) {
    const std::int64_t id = next_plan_id_++;
    const Json params{
        {"plan_id", id}, {"plan", agent::to_json(spec)}, {"peers", peers_}, {"timeout_ns", kConnectTimeout.count()}};
    Result<std::vector<Json>> replies = agents_->call_all(
        "rank.prepare", [&](std::int32_t) { return Json(params); }, Deadline::after(2 * kConnectTimeout));
    if (!replies) {
        return fail(std::move(replies.error()));
    }
    PreparedPlan prepared;
    prepared.id = id;
    for (const Json& reply : *replies) {
        const std::string schedule = reply.value("schedule", "");
        if (!prepared.schedule.empty() && schedule != prepared.schedule) {
            return fail(Error(ErrorKind::kInternal, "ranks made different schedules from one request")
                            .with("one", prepared.schedule)
                            .with("other", schedule));
        }
        prepared.schedule = schedule;
        prepared.predicted = Nanoseconds(reply.value("predicted_ns", std::int64_t{0}));
        prepared.reason = reply.value("reason", "");
    }
    return prepared;
}

Result<IterationOutcome> Session::iterate(const PreparedPlan& plan, Nanoseconds timeout,
                                          const std::function<void(Nanoseconds)>& on_start) {
    Result<std::vector<Json>> filled = agents_->call_all(
        "rank.fill", [](std::int32_t) { return Json::object(); }, Deadline::after(kStartTimeout));
    if (!filled) {
        return fail(std::move(filled.error()));
    }
    on_start(monotonic_now());
    const Json params{{"plan_id", plan.id}, {"timeout_ns", timeout.count()}};
    // The ranks keep the timeout themselves and name the stalled step; the controller waits a little longer.
    Result<std::vector<Json>> replies = agents_->call_all(
        "rank.run", [&](std::int32_t) { return Json(params); }, Deadline::after(timeout + std::chrono::seconds(5)));
    if (!replies) {
        return fail(std::move(replies.error()));
    }
    IterationOutcome outcome;
    outcome.started_at = Nanoseconds::max();
    Nanoseconds ended_at = Nanoseconds::min();
    for (std::int32_t rank = 0; rank < plan_.cluster.hosts; ++rank) {
        const Json& reply = (*replies)[static_cast<std::size_t>(rank)];
        const Result<std::int64_t> started = launch::field<std::int64_t>(reply, "started_at");
        const Result<std::int64_t> ended = launch::field<std::int64_t>(reply, "ended_at");
        if (!started || !ended) {
            return fail(Error(started ? ended.error() : started.error()));
        }
        RankOutcome one{to_controller_clock(rank, Nanoseconds(*started)),
                        to_controller_clock(rank, Nanoseconds(*ended)), reply.value("bytes_sent", std::int64_t{0}),
                        reply.value("bytes_received", std::int64_t{0}), reply.value("digest", "")};
        outcome.started_at = std::min(outcome.started_at, one.started_at);
        ended_at = std::max(ended_at, one.ended_at);
        outcome.ranks.push_back(std::move(one));
    }
    outcome.duration = ended_at - outcome.started_at;
    return outcome;
}

Result<std::vector<PortGoodput>> Session::probe(Nanoseconds span, BitRate slowest) {
    const Json params{{"bytes", std::max(probe_bytes(slowest, span), kProbeBytesMin)},
                      {"peers", peers_},
                      {"timeout_ns", std::max<Nanoseconds>(50 * span, kConnectTimeout).count()}};
    Result<std::vector<Json>> replies = agents_->call_all(
        "rank.probe", [&](std::int32_t) { return Json(params); }, Deadline::after(50 * span + 2 * kConnectTimeout));
    if (!replies) {
        return fail(std::move(replies.error()));
    }
    // Rank i receives from rank i-1: what it saw is what i-1's send side and i's receive side let through.
    const std::size_t ranks = replies->size();
    std::vector<PortGoodput> ports(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Result<std::uint64_t> rate = launch::field<std::uint64_t>((*replies)[rank], "goodput_bits_per_s");
        if (!rate) {
            return fail(Error(rate.error()));
        }
        ports[rank].receive = BitRate::bits_per_s(*rate);
        ports[(rank + ranks - 1) % ranks].send = BitRate::bits_per_s(*rate);
    }
    return ports;
}

std::vector<Error> Session::close() {
    std::vector<Error> problems;
    if (agents_) {
        problems = agents_->shut_down(plan_.lease);
    }
    if (lab_) {
        if (Result<void> down = lab_->down(Deadline::after(std::chrono::seconds(20))); !down) {
            problems.push_back(std::move(down.error()));
        }
        lab_.reset();
    }
    return problems;
}

} // namespace railbreak::controller
