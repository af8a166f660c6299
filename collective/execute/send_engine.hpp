// The sending half of a lane: works through the lane's send steps strictly in order.
#pragma once

#include <array>
#include <vector>

#include "collective/execute/run_context.hpp"
#include "collective/execute/wire.hpp"

namespace railbreak::collective {

/// How far the receive queues of a rank are, by lane: what a send step's `after` is held against.
struct ReceiveProgress {
    PrefixCounts completed{};               ///< leading complete steps
    std::array<Slice, kMaxLanes> missing{}; ///< elements that the step after those has yet to receive
};

/// Sends one step after the other, forwarding data that is still arriving as soon as a piece worth a call is there.
class SendEngine {
public:
    SendEngine(const RunContext& context, Lane lane);

    /// Loads the next non-empty step, counting empty ones as complete. To be called once before the first pump() of
    /// any engine of the rank: an engine that has not begun cannot tell what it lacks.
    [[nodiscard]] Result<void> load();
    /// Sends one call's worth of data when some may go and the link takes it. True: something moved. Errors as for
    /// ReceiveEngine::pump().
    [[nodiscard]] Result<bool> pump(const ReceiveProgress& receives);

    [[nodiscard]] bool done() const { return completed_ == count_; }
    /// Leading complete steps: everything is in the kernel's hands.
    [[nodiscard]] std::int64_t completed() const { return completed_; }
    /// The step in progress; meaningless when done.
    [[nodiscard]] const Step& step() const { return step_; }
    [[nodiscard]] std::uint64_t step_bytes_done() const { return payload_sent_; }
    /// Payload bytes sent over the run.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// True when data waits for room on the link, false when the engine waits for data.
    [[nodiscard]] bool waits_for_link() const { return !done() && payload_sent_ < released_; }
    /// Is anything still to be sent to this peer?
    [[nodiscard]] bool owes(Rank peer) const;

private:
    /// Bytes of the step, from its start, whose values are final for this step.
    [[nodiscard]] std::uint64_t valid_bytes(const ReceiveProgress& receives) const;

    const RunContext& context_;
    Lane lane_;
    std::int64_t count_;
    std::int64_t completed_ = 0;
    Step step_;
    LinkIndex link_ = -1;
    HeaderBytes header_{};
    std::size_t header_sent_ = 0;
    std::uint64_t payload_sent_ = 0;
    std::uint64_t released_ = 0; ///< bytes of the step that were found valid and worth a call
    std::uint64_t bytes_ = 0;
    std::vector<std::uint32_t> ordinals_; ///< by peer: steps sent so far
};

} // namespace railbreak::collective
