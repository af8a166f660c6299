// A cluster that stands ready: hosts, agents, ranks, and the workload's operations on all of them at once. Everything
// a run does to its cluster goes through here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "harness/agent/plan_spec.hpp"
#include "harness/controller/agent_pool.hpp"
#include "harness/lab/lab.hpp"
#include "harness/record/recorder.hpp"
#include "scenarios/model.hpp"
#include "scenarios/policy.hpp"

namespace railbreak::controller {

/// Measured payload rate of one NIC.
struct PortGoodput {
    BitRate send;
    BitRate receive;
};

/// By host, then by NIC.
using Goodputs = std::vector<std::vector<PortGoodput>>;

/// How long the measured flow of a probe takes. Long enough that start and end of a flow and one queue of a port
/// (20 ms) weigh less than half a per cent.
inline constexpr Nanoseconds kProbeSpan = std::chrono::milliseconds(500);
/// A disturbance of the machine only ever lowers what a probe sees, so the best of several is what the port can do.
inline constexpr int kBaselineProbes = 3;

/// How long a probe of every NIC takes, through ports of which the slowest has that rate: the flow that opens each
/// path, then the measured one. 0 where there is no rate.
[[nodiscard]] Nanoseconds probe_time(const scenarios::ClusterSpec& cluster, BitRate slowest);

/// A schedule that every rank has made and holds connections for.
struct PreparedPlan {
    std::int64_t id = 0;
    std::string schedule; ///< Schedule::name(), equal on every rank
    Nanoseconds predicted{0};
    std::string reason;
    agent::PlanSpec spec;       ///< what it was made from
    collective::Lane lanes = 1; ///< of the schedule; set by whoever planned it
};

/// One rank's part of one iteration, on the controller's clock.
struct RankOutcome {
    Nanoseconds called_at{0}; ///< when it was told to begin
    Nanoseconds started_at{0};
    Nanoseconds ended_at{0};
    std::int64_t bytes_sent = 0;
    std::int64_t bytes_received = 0;
    std::string digest;
};

/// One AllReduce on all ranks.
struct IterationOutcome {
    Nanoseconds started_at{0}; ///< earliest start
    Nanoseconds duration{0};   ///< latest end - earliest start
    std::vector<RankOutcome> ranks;
};

/// By how much ranks are to begin late, by their number over all hosts.
using Lateness = std::map<std::int32_t, Nanoseconds>;

/// See the file comment. Single-threaded; its destructor tears the cluster down as far as close() did not.
class Session {
public:
    struct Options {
        std::string executable; ///< absolute path of the railbreak binary
        std::string run_id;
        std::string token_hex; ///< secret of this run's data plane
        std::uint64_t fill_seed = 0;
        std::vector<scenarios::SitePolicy> policies{}; ///< every agent checks them again
    };

    /// Builds the lab, starts agents and ranks, and writes hosts, NICs and ranks to the database.
    [[nodiscard]] static Result<std::unique_ptr<Session>> open(const scenarios::Plan& plan, const Options& options,
                                                               record::Recorder& recorder, std::int64_t run,
                                                               AgentPool::NotificationHandler handler);

    /// Has every rank make the plan and connect to the peers it needs.
    [[nodiscard]] Result<PreparedPlan> prepare(const agent::PlanSpec& spec);
    /// Fills every rank's vector, then runs the plan once. `on_start` is called when every rank is ready to start, and
    /// says which of them are to do so late. An Error of a rank carries its host as the fact "host".
    [[nodiscard]] Result<IterationOutcome> iterate(const PreparedPlan& plan, Nanoseconds timeout,
                                                   const std::function<Lateness(Nanoseconds started_at)>& on_start);
    /// Ends every rank, whatever it is doing, and starts new ones, which know no plan and have no connections yet.
    [[nodiscard]] Result<void> restart_ranks(record::Recorder& recorder, std::int64_t run);
    /// Measures every NIC of every host with plain flows, each to the same NIC of the host `shift` further on (modulo
    /// the hosts, not 0), about `span` long at the rate of the slowest NIC (which the caller knows). A flow tells of
    /// the NIC it leaves and of the one it reaches: whoever knows that two NICs in a row are slow asks again with
    /// another shift.
    /// `dead`, by host, has a bit for every NIC that has no link and is left out; empty: all NICs are alive.
    [[nodiscard]] Result<Goodputs> probe(Nanoseconds span, BitRate slowest, std::int32_t shift,
                                         const std::vector<std::uint64_t>& dead);

    /// Ends ranks and agents (each undoes what is still open), removes the lab. Returns what could not be confirmed.
    [[nodiscard]] std::vector<Error> close();

    [[nodiscard]] AgentPool& agents() { return *agents_; }
    [[nodiscard]] const scenarios::Plan& plan() const { return plan_; }
    [[nodiscard]] std::int64_t elements() const;
    /// What every NIC has carried since it exists: rows "tx_bytes" and "rx_bytes" of one moment.
    [[nodiscard]] Result<std::vector<record::CounterRow>> counters(std::int64_t run);
    /// The database's row of a NIC of a host, with its measured goodput.
    [[nodiscard]] record::NicRow nic_row(std::int32_t host, std::int32_t nic, const PortGoodput& port,
                                         std::int64_t run) const;
    /// Address of a NIC on the data plane.
    [[nodiscard]] std::string address(std::int32_t host, std::int32_t nic) const;
    /// A host's monotonic time as the controller's.
    [[nodiscard]] Nanoseconds to_controller_clock(std::int32_t host, Nanoseconds there);

private:
    Session(const scenarios::Plan& plan, Options options) : plan_(plan), options_(std::move(options)) {}
    [[nodiscard]] Result<void> start_agents();
    [[nodiscard]] Result<void> init_agents();
    [[nodiscard]] Result<void> start_ranks();
    [[nodiscard]] Result<void> open_ranks();
    [[nodiscard]] Result<void> record_cluster(record::Recorder& recorder, std::int64_t run);
    [[nodiscard]] Result<void> record_ranks(record::Recorder& recorder, std::int64_t run);
    [[nodiscard]] Result<IterationOutcome> outcome_from(const std::vector<launch::Json>& replies);
    /// One request to every rank, as AgentPool::call_all() to every host; the replies in the order of the ranks.
    [[nodiscard]] Result<std::vector<launch::Json>>
    call_ranks(std::string_view method, const std::function<launch::Json(std::int32_t rank)>& params, Deadline deadline,
               Nanoseconds grace = std::chrono::hours(24));
    [[nodiscard]] std::int32_t host_of(std::int32_t rank) const { return rank / plan_.cluster.ranks_per_host; }

    const scenarios::Plan& plan_;
    Options options_;
    std::unique_ptr<lab::Lab> lab_;
    std::unique_ptr<AgentPool> agents_;
    launch::Json peers_ = launch::Json::array(); ///< data-plane addresses of all ranks
    std::vector<std::int64_t> rank_pids_;
    std::int64_t next_plan_id_ = 1;
};

} // namespace railbreak::controller
