#include "harness/agent/rank.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "collective/execute/executor.hpp"
#include "collective/execute/links.hpp"
#include "collective/execute/probe.hpp"
#include "collective/transport/rank_transport.hpp"
#include "harness/agent/plan_spec.hpp"
#include "harness/launch/line_channel.hpp"
#include "harness/launch/rpc.hpp"
#include "kernels/digest.hpp"
#include "kernels/dtype.hpp"
#include "kernels/fill.hpp"

namespace railbreak::agent {

using collective::LinkSpec;
using collective::PeerAddresses;
using collective::Rank;
using collective::Schedule;
using launch::field;
using launch::Json;
using launch::RpcMessage;

namespace {

/// Probe flows are of this type.
using ProbeElement = float;

Result<PeerAddresses> peer_from_json(const Json& json) {
    PeerAddresses peer;
    const Result<Json> nics = field<Json>(json, "nics");
    const Result<std::string> local = field<std::string>(json, "local_name");
    if (!nics || !local) {
        return fail(ErrorKind::kHarness, "a peer lacks its NICs or its name inside the host");
    }
    for (const Json& nic : *nics) {
        const Result<std::string> address = field<std::string>(nic, "address");
        const Result<std::uint16_t> port = field<std::uint16_t>(nic, "port");
        if (!address || !port) {
            return fail(ErrorKind::kHarness, "a peer's NIC lacks an address or a port");
        }
        peer.nics.push_back({*address, *port});
    }
    peer.local = *local;
    return peer;
}

Result<collective::LinkProbeSpec> probe_from_json(const Json& params, Rank ranks) {
    const Result<std::int64_t> bytes = field<std::int64_t>(params, "bytes");
    const Result<Rank> ranks_per_server = field<Rank>(params, "ranks_per_server");
    const Result<std::int32_t> nics = field<std::int32_t>(params, "nics_per_server");
    const Result<std::int32_t> first_nic = field<std::int32_t>(params, "first_nic");
    const Result<Rank> shift = field<Rank>(params, "shift");
    const auto dead = field<std::vector<std::uint64_t>>(params, "dead_nics");
    if (!bytes || !ranks_per_server || !nics || !first_nic || !shift || !dead) {
        return fail(ErrorKind::kHarness, "rank.probe lacks a member or has one of the wrong type");
    }
    const Rank servers = *ranks_per_server < 1 ? 0 : ranks / *ranks_per_server;
    if (*bytes <= 0 || servers * *ranks_per_server != ranks || *first_nic < 0 || *first_nic >= *nics || *shift < 1 ||
        *shift >= servers || (!dead->empty() && std::ssize(*dead) != servers)) {
        return fail(ErrorKind::kHarness, "rank.probe has a member that is out of range");
    }
    const std::int64_t elements = std::max<std::int64_t>(*bytes / static_cast<std::int64_t>(sizeof(ProbeElement)), 1);
    return collective::LinkProbeSpec{
        .servers = servers,
        .ranks_per_server = *ranks_per_server,
        .nics_per_server = *nics,
        .first_nic = *first_nic,
        .shift = *shift,
        .warm_elements = std::max(static_cast<std::int64_t>(static_cast<double>(elements) * collective::kWarmShare),
                                  std::int64_t{1}),
        .measured_elements = elements,
        .dead_nics = *dead};
}

class RankServer {
public:
    RankServer() : agent_(UniqueFd(::dup(STDIN_FILENO)), UniqueFd(::dup(STDOUT_FILENO))) {}
    int serve();

private:
    void on_request(const RpcMessage& request);
    [[nodiscard]] Result<Json> dispatch(const std::string& method, const Json& params);
    [[nodiscard]] Result<Json> open(const Json& params);
    [[nodiscard]] Result<Json> prepare(const Json& params);
    [[nodiscard]] Result<Json> fill();
    [[nodiscard]] Result<Json> run(const Json& params);
    [[nodiscard]] Result<void> be_late(const Result<std::int64_t>& late, Deadline deadline);
    [[nodiscard]] Result<Json> probe(const Json& params);
    [[nodiscard]] Result<void> connect(const Schedule& schedule, const Json& params);
    void tell(const collective::StalledPath& path);

    launch::LineChannel agent_;
    Rank self_ = 0;
    Rank ranks_ = 0;
    Dtype dtype_ = Dtype::kFloat32;
    std::uint64_t seed_ = 0;
    std::vector<std::byte> vector_;
    std::unique_ptr<collective::RankTransport> transport_;
    std::unique_ptr<collective::Executor> executor_; ///< counts the runs, which both ends of a link check
    std::map<std::int64_t, collective::Plan> plans_;
};

int RankServer::serve() {
    ::signal(SIGPIPE, SIG_IGN);
    while (!agent_.at_end()) {
        // Waits for its agent's next word without limit: the agent's death is an end of file, and the kernel's SIGKILL.
        pollfd readable{agent_.read_fd(), POLLIN, 0};
        if (::poll(&readable, 1, -1) < 0 && errno != EINTR) {
            return 70;
        }
        Result<std::vector<std::string>> lines = agent_.receive();
        if (!lines) {
            return 70;
        }
        for (const std::string& line : *lines) {
            if (Result<RpcMessage> message = launch::decode(line); message && message->id) {
                on_request(*message);
            }
        }
    }
    return 0;
}

void RankServer::on_request(const RpcMessage& request) {
    Result<Json> result = dispatch(request.method, request.params);
    std::string line =
        result ? launch::encode_result(*request.id, *result) : launch::encode_error(*request.id, result.error());
    Result<void> sent = agent_.send(line);
    while (sent && agent_.wants_write()) {
        pollfd writable{agent_.write_fd(), POLLOUT, 0};
        (void)::poll(&writable, 1, 1000);
        sent = agent_.flush();
    }
}

Result<Json> RankServer::dispatch(const std::string& method, const Json& params) {
    if (method == "rank.open") {
        return open(params);
    }
    if (!transport_) {
        return fail(ErrorKind::kHarness, fmt::format("\"{}\" came before rank.open", method));
    }
    if (method == "rank.prepare") {
        return prepare(params);
    }
    if (method == "rank.fill") {
        return fill();
    }
    if (method == "rank.run") {
        return run(params);
    }
    if (method == "rank.probe") {
        return probe(params);
    }
    return fail(ErrorKind::kHarness, fmt::format("a rank has no method \"{}\"", method));
}

Result<Json> RankServer::open(const Json& params) {
    const Result<Rank> rank = field<Rank>(params, "rank");
    const Result<Rank> ranks = field<Rank>(params, "ranks");
    const auto addresses = field<std::vector<std::string>>(params, "addresses");
    const Result<std::uint64_t> local_rate = field<std::uint64_t>(params, "local_rate_bits_per_s");
    const Result<std::string> token = field<std::string>(params, "token");
    const Result<std::int64_t> elements = field<std::int64_t>(params, "elements");
    const Result<std::string> dtype_name = field<std::string>(params, "dtype");
    const Result<std::uint64_t> seed = field<std::uint64_t>(params, "seed");
    if (!rank || !ranks || !addresses || !local_rate || !token || !elements || !dtype_name || !seed) {
        return fail(ErrorKind::kHarness, "rank.open lacks a member or has one of the wrong type");
    }
    const std::optional<Dtype> dtype = parse_dtype(*dtype_name);
    if (!dtype || *elements < 0) {
        return fail(ErrorKind::kHarness, "rank.open has an unknown dtype or a negative size");
    }
    self_ = *rank;
    ranks_ = *ranks;
    dtype_ = *dtype;
    seed_ = *seed;
    vector_.resize(static_cast<std::size_t>(*elements) * size_of(dtype_));
    Result<std::unique_ptr<collective::RankTransport>> transport = collective::RankTransport::listen(
        {.self = self_, .addresses = *addresses, .token = *token, .local_rate = BitRate::bits_per_s(*local_rate)});
    if (!transport) {
        return fail(std::move(transport.error()));
    }
    transport_ = std::move(*transport);
    executor_ = std::make_unique<collective::Executor>(
        *transport_,
        collective::ExecutorOptions{.on_stalled = [this](const collective::StalledPath& path) { tell(path); }});
    Json ports = Json::array();
    for (std::size_t nic = 0; nic < addresses->size(); ++nic) {
        ports.push_back(transport_->port(nic));
    }
    return Json{{"ports", ports}, {"local_name", transport_->local_name()}};
}

Result<void> RankServer::connect(const Schedule& schedule, const Json& params) {
    const Result<Json> peers = field<Json>(params, "peers");
    const Result<std::int64_t> timeout = field<std::int64_t>(params, "timeout_ns");
    if (!peers || !timeout) {
        return fail(ErrorKind::kHarness, "a request to connect lacks peers or a timeout");
    }
    std::map<Rank, PeerAddresses> addresses;
    for (std::size_t peer = 0; peer < peers->size(); ++peer) {
        Result<PeerAddresses> one = peer_from_json((*peers)[peer]);
        if (!one) {
            return fail(std::move(one.error()).during(fmt::format("reading the addresses of rank {}", peer)));
        }
        addresses[static_cast<Rank>(peer)] = std::move(*one);
    }
    const std::vector<LinkSpec> links = collective::links_of(schedule, self_);
    return transport_->connect(addresses, links, Deadline::after(Nanoseconds(*timeout)));
}

Result<Json> RankServer::prepare(const Json& params) {
    const Result<std::int64_t> id = field<std::int64_t>(params, "plan_id");
    const Result<Json> plan_json = field<Json>(params, "plan");
    if (!id || !plan_json) {
        return fail(ErrorKind::kHarness, "rank.prepare lacks an id or a plan");
    }
    Result<PlanSpec> spec = plan_spec_from_json(*plan_json);
    if (!spec) {
        return fail(std::move(spec.error()));
    }
    Result<collective::Plan> plan = make_plan(*spec);
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    if (Result<void> connected = connect(*plan->schedule, params); !connected) {
        return fail(std::move(connected.error()));
    }
    Json reply{
        {"schedule", plan->schedule->name()}, {"predicted_ns", plan->predicted.count()}, {"reason", plan->reason}};
    plans_[*id] = std::move(*plan);
    return reply;
}

/// At once, and not with the reply: what was seen counts from the moment when it was seen. Words that the agent does
/// not take now go out with the reply.
void RankServer::tell(const collective::StalledPath& path) {
    const LinkSpec link = transport_->link(path.link);
    (void)agent_.send(launch::encode_notification(
        launch::kPathStalled, {{"rank", self_},
                               {"peer", link.peer},
                               {"lane", link.lane},
                               {"nic", link.own_port.nic},
                               {"resends", path.resends},
                               {"unacknowledged_segments", path.unacknowledged},
                               {"text", fmt::format("{} is not answered any more, although TCP has resent",
                                                    transport_->describe(path.link))}}));
}

Result<Json> RankServer::fill() {
    if (Result<void> filled = kernels::fill(vector_, dtype_, seed_, self_, ranks_); !filled) {
        return fail(std::move(filled.error()));
    }
    return Json::object();
}

Result<Json> RankServer::run(const Json& params) {
    const Result<std::int64_t> id = field<std::int64_t>(params, "plan_id");
    const Result<std::int64_t> timeout = field<std::int64_t>(params, "timeout_ns");
    if (!id || !timeout || !plans_.contains(*id)) {
        return fail(ErrorKind::kHarness, "rank.run names no prepared plan");
    }
    const Deadline deadline = Deadline::after(Nanoseconds(*timeout));
    const Nanoseconds called_at = monotonic_now();
    if (const auto late = params.find("late_ns"); late != params.end()) {
        if (Result<void> waited = be_late(field<std::int64_t>(params, "late_ns"), deadline); !waited) {
            return fail(std::move(waited.error()));
        }
    }
    Result<collective::ExecutionStats> stats = executor_->run(*plans_.at(*id).schedule, dtype_, vector_, deadline);
    if (!stats) {
        return fail(std::move(stats.error()));
    }
    return Json{{"called_at", called_at.count()},          {"started_at", stats->started_at.count()},
                {"ended_at", stats->ended_at.count()},     {"bytes_sent", stats->bytes_sent},
                {"bytes_received", stats->bytes_received}, {"digest", kernels::digest(vector_)}};
}

/// Holds the rank back: it waits on a timer, and for nothing else but the end of its agent.
Result<void> RankServer::be_late(const Result<std::int64_t>& late, Deadline deadline) {
    if (!late || *late < 0) {
        return fail(ErrorKind::kHarness, "rank.run has a lateness that is no time");
    }
    const UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer.valid()) {
        return fail_errno(ErrorKind::kHarness, "make a timer", errno);
    }
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(Nanoseconds(*late));
    const itimerspec due{.it_interval = {}, .it_value = {whole.count(), (Nanoseconds(*late) - whole).count()}};
    if (::timerfd_settime(timer.get(), 0, &due, nullptr) != 0) {
        return fail_errno(ErrorKind::kHarness, "set a timer", errno);
    }
    std::array<pollfd, 2> fds{pollfd{timer.get(), POLLIN, 0}, pollfd{agent_.read_fd(), 0, 0}};
    while (*late > 0 && fds[0].revents == 0) {
        if (deadline.passed()) {
            return fail(Error(ErrorKind::kOutcome,
                              fmt::format("rank {} was held back for the whole time limit of the iteration", self_))
                            .with("rank", std::to_string(self_)));
        }
        if (::poll(fds.data(), fds.size(), deadline.poll_timeout_ms()) < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "wait for a timer", errno);
        }
        if (fds[1].revents != 0) {
            return fail(ErrorKind::kHarness, "the rank's agent is gone");
        }
    }
    return {};
}

Result<Json> RankServer::probe(const Json& params) {
    const Result<collective::LinkProbeSpec> spec = probe_from_json(params, ranks_);
    const Result<std::int64_t> timeout = field<std::int64_t>(params, "timeout_ns");
    if (!spec || !timeout) {
        return fail(Error(spec ? timeout.error() : spec.error()));
    }
    const collective::LinkProbe probe(*spec);
    if (Result<void> connected = connect(probe, params); !connected) {
        return fail(std::move(connected.error()));
    }
    std::vector<std::byte> buffer(static_cast<std::size_t>(probe.elements()) * sizeof(ProbeElement));
    const Result<collective::ExecutionStats> stats =
        executor_->run(probe, Dtype::kFloat32, buffer, Deadline::after(Nanoseconds(*timeout)));
    if (!stats) {
        return fail(Error(stats.error()));
    }
    Json flows = Json::array();
    for (collective::Lane lane = 0; lane < probe.lanes(); ++lane) {
        if (probe.receive_count(self_, lane) > 0) {
            flows.push_back({{"nic", probe.nic(self_, lane)},
                             {"goodput_bits_per_s", collective::received_goodput(*stats, lane).bits_per_s()}});
        }
    }
    return Json{{"flows", flows}};
}

} // namespace

int rank_main() {
    return RankServer().serve();
}

} // namespace railbreak::agent
