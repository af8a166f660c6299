#include "harness/controller/session.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "collective/execute/probe.hpp"
#include "harness/analyse/analyse.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::controller {

using launch::Json;

namespace {

/// Starting processes and opening sockets on every host; generous, because a loaded machine is not a broken one.
constexpr Nanoseconds kStartTimeout = std::chrono::seconds(20);
constexpr Nanoseconds kConnectTimeout = std::chrono::seconds(20);
/// Until the kernel has removed the lab; less when the user will not wait: what remains, its keeper removes.
constexpr Nanoseconds kLabDown = std::chrono::seconds(20);
constexpr Nanoseconds kAbandonedLab = std::chrono::seconds(2);
/// Every rank holds the bytes of a probe in memory, so that fast ports are probed for a shorter time.
constexpr std::uint64_t kProbeBytesMax = 256ULL << 20;
/// Less than this through a slow port would mostly measure a shaper's burst and a queue.
constexpr std::uint64_t kProbeBytesMin = 512ULL << 10;

/// A rank that fails breaks its links, so that its peers fail as well and say why; one that stands still never answers.
constexpr Nanoseconds kGraceAfterError = std::chrono::seconds(2);

std::uint64_t probe_bytes(BitRate rate, Nanoseconds span) {
    const double wanted = static_cast<double>(rate.bytes_per_s()) * std::chrono::duration<double>(span).count();
    return std::max(static_cast<std::uint64_t>(std::min(wanted, static_cast<double>(kProbeBytesMax))), kProbeBytesMin);
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
    const auto ranks = static_cast<std::uint64_t>(plan.cluster.ranks());
    const std::uint64_t needed = ranks * (plan.workload.bytes.bytes() + probe_bytes(plan.cluster.rate, kProbeSpan));
    const std::optional<std::uint64_t> available = available_memory();
    if (!available || needed <= *available) {
        return {};
    }
    return fail(
        Error(ErrorKind::kRefused, fmt::format("{} ranks with {} each need more memory than this machine has available",
                                               ranks, to_string(plan.workload.bytes)))
            .with("needed_bytes", std::to_string(needed))
            .with("available_bytes", std::to_string(*available))
            .advise("use fewer ranks or a smaller vector"));
}

/// Notes what a rank saw of the flows that it received: what the source's send side and the destination's receive side
/// of a NIC let through.
Result<void> take_flows(const Json& reply, std::vector<PortGoodput>& source, std::vector<PortGoodput>& destination) {
    const Result<Json> flows = launch::field<Json>(reply, "flows");
    if (!flows) {
        return fail(Error(flows.error()));
    }
    for (const Json& flow : *flows) {
        const Result<std::size_t> nic = launch::field<std::size_t>(flow, "nic");
        const Result<std::uint64_t> rate = launch::field<std::uint64_t>(flow, "goodput_bits_per_s");
        if (!nic || !rate || *nic >= destination.size()) {
            return fail(ErrorKind::kHarness, "a rank's report of a probe lacks a NIC or a rate");
        }
        destination[*nic].receive = BitRate::bits_per_s(*rate);
        source[*nic].send = BitRate::bits_per_s(*rate);
    }
    return {};
}

} // namespace

Nanoseconds probe_time(const scenarios::ClusterSpec& cluster, BitRate slowest) {
    const std::int32_t at_once = collective::kMaxLanes * std::max(cluster.ranks_per_host, 1);
    const std::int32_t turns = (cluster.nics_per_host + at_once - 1) / at_once;
    const double flows = 1 + collective::kWarmShare;
    const double payload_bits_per_s =
        static_cast<double>(slowest.bits_per_s()) * analyse::payload_share(cluster.mtu_bytes);
    const double seconds = 8 * flows * static_cast<double>(probe_bytes(slowest, kProbeSpan)) / payload_bits_per_s;
    return payload_bits_per_s > 0
               ? std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds * turns))
               : Nanoseconds(0);
}

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
    Json policies = Json::array();
    for (const scenarios::SitePolicy& policy : options_.policies) {
        policies.push_back({{"source", policy.source}, {"text", policy.text}});
    }
    const auto params = [&](std::int32_t host) {
        return Json{{"run_id", options_.run_id},
                    {"host_name", agents_->link(host).name()},
                    {"lease_ns", plan_.lease.count()},
                    {"protected_nics", Json::array()},
                    {"with_faults", !plan_.faults.empty()},
                    {"policies", policies}};
    };
    Result<std::vector<Json>> replies =
        agents_->call_all("init", params, Deadline::after(kStartTimeout + kLeftoversTime));
    return replies ? Result<void>() : fail(std::move(replies.error()));
}

Result<std::vector<Json>> Session::call_ranks(std::string_view method, const std::function<Json(std::int32_t)>& params,
                                              Deadline deadline, Nanoseconds grace) {
    const std::int32_t per_host = plan_.cluster.ranks_per_host;
    const auto addressed = [&](std::int32_t rank) {
        Json one = params(rank);
        one["local_rank"] = rank % per_host;
        return one;
    };
    return agents_->call_each(method, static_cast<std::size_t>(per_host), addressed, deadline, grace);
}

Result<void> Session::start_ranks() {
    const Json count{{"count", plan_.cluster.ranks_per_host}};
    Result<std::vector<Json>> started = agents_->call_all(
        "start_ranks", [&](std::int32_t) { return Json(count); }, Deadline::after(kStartTimeout));
    if (!started) {
        return fail(std::move(started.error()));
    }
    for (const Json& reply : *started) {
        const auto pids = launch::field<std::vector<std::int64_t>>(reply, "pids");
        if (!pids) {
            return fail(Error(pids.error()));
        }
        rank_pids_.insert(rank_pids_.end(), pids->begin(), pids->end());
    }
    return open_ranks();
}

Result<void> Session::open_ranks() {
    const auto addresses_of = [&](std::int32_t rank) {
        std::vector<std::string> addresses;
        for (const lab::LabNic& nic : lab_->hosts().at(static_cast<std::size_t>(host_of(rank))).nics) {
            addresses.push_back(nic.address);
        }
        return addresses;
    };
    const auto params = [&](std::int32_t rank) {
        return Json{{"rank", rank},
                    {"ranks", plan_.cluster.ranks()},
                    {"addresses", addresses_of(rank)},
                    {"local_rate_bits_per_s", plan_.cluster.local_rate.bits_per_s()},
                    {"token", options_.token_hex},
                    {"elements", elements()},
                    {"dtype", std::string(to_string(plan_.workload.dtype))},
                    {"seed", options_.fill_seed}};
    };
    Result<std::vector<Json>> opened = call_ranks("rank.open", params, Deadline::after(kStartTimeout));
    if (!opened) {
        return fail(std::move(opened.error()));
    }
    for (std::int32_t rank = 0; rank < plan_.cluster.ranks(); ++rank) {
        const Json& reply = (*opened)[static_cast<std::size_t>(rank)];
        const auto ports = launch::field<std::vector<std::int64_t>>(reply, "ports");
        const Result<std::string> local_name = launch::field<std::string>(reply, "local_name");
        const std::vector<std::string> addresses = addresses_of(rank);
        if (!ports || !local_name || ports->size() != addresses.size()) {
            return fail(ErrorKind::kHarness, fmt::format("rank {} does not say where it listens", rank));
        }
        Json nics = Json::array();
        for (std::size_t nic = 0; nic < addresses.size(); ++nic) {
            nics.push_back({{"address", addresses[nic]}, {"port", (*ports)[nic]}});
        }
        peers_.push_back({{"nics", nics}, {"local_name", *local_name}});
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
        if (!stored) {
            return stored;
        }
    }
    return record_ranks(recorder, run);
}

Result<void> Session::record_ranks(record::Recorder& recorder, std::int64_t run) {
    for (std::int32_t rank = 0; rank < plan_.cluster.ranks(); ++rank) {
        const std::int64_t pid = rank_pids_.at(static_cast<std::size_t>(rank));
        if (Result<void> stored = recorder.add_rank({.run = run, .rank = rank, .host = host_of(rank), .pid = pid});
            !stored) {
            return stored;
        }
    }
    return {};
}

Result<void> Session::restart_ranks(record::Recorder& recorder, std::int64_t run) {
    Result<std::vector<Json>> ended = agents_->call_all(
        "end_ranks", [](std::int32_t) { return Json::object(); }, Deadline::after(kStartTimeout));
    if (!ended) {
        return fail(std::move(ended.error()).during("ending the ranks"));
    }
    rank_pids_.clear();
    peers_ = Json::array();
    Result<void> started = start_ranks();
    return started ? record_ranks(recorder, run) : fail(std::move(started.error()).during("starting the ranks anew"));
}

std::string Session::address(std::int32_t host, std::int32_t nic) const {
    return lab_->hosts().at(static_cast<std::size_t>(host)).nics.at(static_cast<std::size_t>(nic)).address;
}

record::NicRow Session::nic_row(std::int32_t host, std::int32_t nic, const PortGoodput& port, std::int64_t run) const {
    const lab::LabNic& lab_nic =
        lab_->hosts().at(static_cast<std::size_t>(host)).nics.at(static_cast<std::size_t>(nic));
    return {.run = run,
            .host = host,
            .nic = nic,
            .name = lab_nic.name,
            .mac = lab_nic.mac,
            .address = lab_nic.address,
            .line_rate_bits_per_s = static_cast<std::int64_t>(plan_.cluster.rate.bits_per_s()),
            .send_goodput_bits_per_s = static_cast<std::int64_t>(port.send.bits_per_s()),
            .receive_goodput_bits_per_s = static_cast<std::int64_t>(port.receive.bits_per_s())};
}

Result<std::vector<record::CounterRow>> Session::counters(std::int64_t run) {
    Result<std::vector<Json>> replies = agents_->call_all(
        "counters", [](std::int32_t) { return Json::object(); }, Deadline::after(kStartTimeout));
    if (!replies) {
        return fail(std::move(replies.error()));
    }
    const std::int64_t now = monotonic_now().count();
    std::vector<record::CounterRow> rows;
    for (const lab::LabHost& host : lab_->hosts()) {
        for (const Json& seen : (*replies)[host.index].value("nics", Json::array())) {
            const std::string name = seen.value("name", "");
            const auto nic = std::ranges::find_if(host.nics, [&](const lab::LabNic& own) { return own.name == name; });
            for (const char* counter : {"tx_bytes", "rx_bytes"}) {
                if (nic != host.nics.end()) {
                    rows.push_back({.run = run,
                                    .host = static_cast<std::int32_t>(host.index),
                                    .nic = static_cast<std::int32_t>(nic - host.nics.begin()),
                                    .at = now,
                                    .source = "rtnl_link_stats64",
                                    .name = counter,
                                    .value = seen.value(counter, std::int64_t{0})});
                }
            }
        }
    }
    return rows;
}

Result<PreparedPlan> Session::prepare(const agent::PlanSpec& spec) {
    const std::int64_t id = next_plan_id_++;
    const Json params{
        {"plan_id", id}, {"plan", agent::to_json(spec)}, {"peers", peers_}, {"timeout_ns", kConnectTimeout.count()}};
    Result<std::vector<Json>> replies = call_ranks(
        "rank.prepare", [&](std::int32_t) { return Json(params); }, Deadline::after(2 * kConnectTimeout));
    if (!replies) {
        return fail(std::move(replies.error()));
    }
    PreparedPlan prepared;
    prepared.id = id;
    prepared.spec = spec;
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
                                          const std::function<Lateness(Nanoseconds)>& on_start) {
    Result<std::vector<Json>> filled = call_ranks(
        "rank.fill", [](std::int32_t) { return Json::object(); }, Deadline::after(kStartTimeout));
    if (!filled) {
        return fail(std::move(filled.error()));
    }
    const Lateness late = on_start(monotonic_now());
    const auto params = [&](std::int32_t rank) {
        Json one{{"plan_id", plan.id}, {"timeout_ns", timeout.count()}};
        if (const auto found = late.find(rank); found != late.end()) {
            one["late_ns"] = found->second.count();
        }
        return one;
    };
    // The ranks keep the timeout themselves and name the stalled step; the controller waits a little longer.
    Result<std::vector<Json>> replies =
        call_ranks("rank.run", params, Deadline::after(timeout + std::chrono::seconds(5)), kGraceAfterError);
    if (!replies) {
        return fail(std::move(replies.error()));
    }
    return outcome_from(*replies);
}

Result<IterationOutcome> Session::outcome_from(const std::vector<Json>& replies) {
    IterationOutcome outcome;
    outcome.started_at = Nanoseconds::max();
    Nanoseconds ended_at = Nanoseconds::min();
    for (std::int32_t rank = 0; rank < plan_.cluster.ranks(); ++rank) {
        const Json& reply = replies[static_cast<std::size_t>(rank)];
        const Result<std::int64_t> called = launch::field<std::int64_t>(reply, "called_at");
        const Result<std::int64_t> started = launch::field<std::int64_t>(reply, "started_at");
        const Result<std::int64_t> ended = launch::field<std::int64_t>(reply, "ended_at");
        if (!called || !started || !ended) {
            return fail(Error(!called ? called.error() : !started ? started.error() : ended.error()));
        }
        RankOutcome one{to_controller_clock(host_of(rank), Nanoseconds(*called)),
                        to_controller_clock(host_of(rank), Nanoseconds(*started)),
                        to_controller_clock(host_of(rank), Nanoseconds(*ended)),
                        reply.value("bytes_sent", std::int64_t{0}),
                        reply.value("bytes_received", std::int64_t{0}),
                        reply.value("digest", "")};
        outcome.started_at = std::min(outcome.started_at, one.started_at);
        ended_at = std::max(ended_at, one.ended_at);
        outcome.ranks.push_back(std::move(one));
    }
    outcome.duration = ended_at - outcome.started_at;
    return outcome;
}

Result<Goodputs> Session::probe(Nanoseconds span, BitRate slowest, std::int32_t shift,
                                const std::vector<std::uint64_t>& dead) {
    const scenarios::ClusterSpec& cluster = plan_.cluster;
    const auto hosts = static_cast<std::size_t>(cluster.hosts);
    Goodputs ports(hosts, std::vector<PortGoodput>(static_cast<std::size_t>(cluster.nics_per_host)));
    const std::int32_t at_once = collective::kMaxLanes * cluster.ranks_per_host;
    for (std::int32_t first = 0; first < cluster.nics_per_host; first += at_once) {
        const Json params{{"bytes", probe_bytes(slowest, span)},
                          {"ranks_per_server", cluster.ranks_per_host},
                          {"nics_per_server", cluster.nics_per_host},
                          {"first_nic", first},
                          {"shift", shift},
                          {"dead_nics", dead},
                          {"peers", peers_},
                          {"timeout_ns", std::max<Nanoseconds>(50 * span, kConnectTimeout).count()}};
        Result<std::vector<Json>> replies = call_ranks(
            "rank.probe", [&](std::int32_t) { return Json(params); }, Deadline::after(50 * span + 2 * kConnectTimeout));
        if (!replies) {
            return fail(std::move(replies.error()));
        }
        for (std::size_t rank = 0; rank < replies->size(); ++rank) {
            const std::size_t host = rank / static_cast<std::size_t>(cluster.ranks_per_host);
            std::vector<PortGoodput>& source = ports[(host + hosts - static_cast<std::size_t>(shift)) % hosts];
            if (Result<void> taken = take_flows((*replies)[rank], source, ports[host]); !taken) {
                return fail(std::move(taken.error()));
            }
        }
    }
    return ports;
}

std::vector<Error> Session::close() {
    std::vector<Error> problems;
    if (agents_) {
        problems = agents_->shut_down(plan_.lease);
    }
    const bool abandoned = agents_ && agents_->abandoned();
    if (lab_) {
        if (Result<void> down = lab_->down(Deadline::after(abandoned ? kAbandonedLab : kLabDown)); !down) {
            problems.push_back(std::move(down.error()));
        }
        lab_.reset();
    }
    return problems;
}

} // namespace railbreak::controller
