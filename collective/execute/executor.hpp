// Runs a schedule over a transport: one thread, and for each lane a sending and a receiving engine.
//
// The engines of a lane never wait for each other except where the schedule says so. The thread gives each engine one
// call at a time in turn and sleeps in the transport when none can move. Lanes that share a port share it evenly: the
// one that has not moved for the longest time goes first. While some lanes move without a pause the transport is asked
// now and then, so that the others are not forgotten. A send that waits for a receive may forward the part that has
// arrived, so a ring moves as one stream and not step by step.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "collective/execute/receive_engine.hpp"
#include "collective/execute/run_context.hpp"
#include "collective/schedule.hpp"
#include "collective/transport/transport.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::collective {

/// What one rank saw of one run. Times are on the monotonic clock of the rank's host.
struct ExecutionStats {
    Nanoseconds started_at{0};
    Nanoseconds ended_at{0};
    std::uint64_t bytes_sent = 0;     ///< payload
    std::uint64_t bytes_received = 0; ///< payload
    Nanoseconds first_receive_at{0};  ///< when the first payload was read; zero when nothing was received
    Nanoseconds last_receive_at{0};   ///< when the last payload was read
    PrefixCounts send_steps{};        ///< by lane, empty steps included
    PrefixCounts receive_steps{};
    std::array<ReceivedFlow, kMaxLanes> last_flows{}; ///< by lane: the last non-empty receive step
    std::uint64_t waits = 0;                          ///< times the thread went to sleep
};

/// How far a run is; may be read from any thread.
struct ExecutionProgress {
    PrefixCounts sends_completed{};
    PrefixCounts receives_completed{};
};

/// Runs schedules for one rank over one transport, one after the other. All ranks must run the same schedules in the
/// same order. Not thread-safe but for progress().
class Executor {
public:
    /// The transport must outlive the executor and belongs to it during run().
    explicit Executor(Transport& transport, const ExecutorOptions& options = {});

    /// Runs the part of this rank (the transport's) on its vector, in place. `vector` holds schedule.elements()
    /// elements. Returns when all own steps are complete: everything owed has arrived, and everything to send is in the
    /// kernel's hands.
    ///
    /// Errors: kOutcome when a peer broke its connection, is out of step, or the deadline passed; the last names, for
    /// every stalled engine, lane, step, stage, peer and bytes. kHarness when a link was never connected. After any
    /// error the transport is aborted, so that peers notice at once, and cannot be used again.
    [[nodiscard]] Result<ExecutionStats> run(const Schedule& schedule, Dtype dtype, std::span<std::byte> vector,
                                             Deadline deadline);

    /// Steps completed in the present run, or in the last one.
    [[nodiscard]] ExecutionProgress progress() const;

private:
    struct Engines;
    /// Lanes, the one that has not moved for the longest time first.
    using LaneOrder = std::array<std::uint8_t, kMaxLanes>;

    [[nodiscard]] Result<void> drive(Engines& engines, Deadline deadline, ExecutionStats& stats);
    [[nodiscard]] Result<bool> pump_all(Engines& engines);
    /// Tells of paths that stalled, when it is time to ask.
    void look_for_stalls(Nanoseconds& next_look);
    /// A peer that closed although something is owed is dead.
    [[nodiscard]] Result<void> check_closed(const Engines& engines);
    [[nodiscard]] Error stalled_error(const Engines& engines) const;
    void publish(const Engines& engines);

    Transport& transport_;
    ExecutorOptions options_;
    std::uint32_t runs_ = 0;
    std::array<std::atomic<std::int64_t>, kMaxLanes> sends_completed_{};
    std::array<std::atomic<std::int64_t>, kMaxLanes> receives_completed_{};
};

} // namespace railbreak::collective
