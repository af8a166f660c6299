// The receiving half of a lane: works through the lane's receive steps strictly in order.
#pragma once

#include <vector>

#include "collective/execute/run_context.hpp"
#include "collective/execute/wire.hpp"

namespace railbreak::collective {

/// How one receive step arrived, as a measurement of the path.
struct ReceivedFlow {
    Nanoseconds first_read_at{0};             ///< zero when nothing was received
    Nanoseconds last_read_at{0};              ///< when the step was complete
    std::uint64_t bytes_after_first_read = 0; ///< payload
};

/// Receives one step after the other. A copied step goes from the socket straight into the vector; a reduced one goes
/// through a bounded staging buffer, from which whole elements are added as they arrive.
class ReceiveEngine {
public:
    /// Totals over the run.
    struct Totals {
        std::uint64_t bytes = 0;      ///< payload
        Nanoseconds first_read_at{0}; ///< zero before the first payload byte
        ReceivedFlow last_flow;       ///< the step in progress, or the last one when it has not begun
    };

    ReceiveEngine(const RunContext& context, Lane lane);

    /// Loads the next non-empty step, counting empty ones as complete. To be called once before the first pump() of
    /// any engine of the rank: an engine that has not begun cannot tell what it lacks.
    [[nodiscard]] Result<void> load();
    /// Takes one read's worth of data when there is any. True: something moved. `sends_complete` counts the leading
    /// complete send steps of each lane. Error: a broken link (kOutcome), a header that is not the expected one
    /// (kOutcome), a link that was never connected (kHarness).
    [[nodiscard]] Result<bool> pump(const PrefixCounts& sends_complete);

    [[nodiscard]] bool done() const { return completed_ == count_; }
    /// Leading complete steps.
    [[nodiscard]] std::int64_t completed() const { return completed_; }
    /// Elements that the step in progress has yet to receive; empty when done.
    [[nodiscard]] Slice missing() const { return {step_.slice.offset + arrived_, step_.slice.count - arrived_}; }
    /// The step in progress; meaningless when done.
    [[nodiscard]] const Step& step() const { return step_; }
    [[nodiscard]] std::uint64_t step_bytes_done() const { return payload_received_; }
    [[nodiscard]] const Totals& totals() const { return totals_; }
    /// Bytes, headers included, that this engine still expects from a peer.
    [[nodiscard]] std::uint64_t bytes_owed_by(Rank peer) const;

private:
    [[nodiscard]] bool may_write(const PrefixCounts& sends_complete) const;
    /// Where the next payload bytes go.
    [[nodiscard]] std::span<std::byte> destination();
    [[nodiscard]] Result<void> check_header() const;
    void take_payload(std::size_t bytes);

    const RunContext& context_;
    Lane lane_;
    std::int64_t count_;
    std::int64_t completed_ = 0;
    Step step_;
    LinkIndex link_ = -1;
    HeaderBytes header_{};
    std::size_t header_received_ = 0;
    std::uint64_t payload_received_ = 0;
    std::int64_t arrived_ = 0; ///< whole elements of the step that are in the vector
    std::size_t staged_ = 0;   ///< bytes in the staging buffer: part of an element
    std::vector<std::byte> staging_;
    std::vector<std::uint32_t> ordinals_; ///< by peer: steps received so far
    Totals totals_;
};

} // namespace railbreak::collective
