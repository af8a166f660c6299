// Times of the faults that an agent has in force: when the controller must have confirmed them, when they must be over.
//
// After a fault was applied the agent tells the controller, which answers with "fault.confirm": a round trip over the
// control connection with the fault in force. When the answer does not come in time, the fault may have cut off the
// very connection by which it could be ordered back, so the agent undoes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace railbreak::agent {

/// How long the controller has for its answer.
inline constexpr Nanoseconds kConfirmTimeout = std::chrono::seconds(2);

/// See the file comment. Times are CLOCK_MONOTONIC, given by the caller.
class FaultWatch {
public:
    /// A fault is in force. `longest`: what the site policy allows, if anything.
    void applied(std::int32_t id, std::vector<std::string> nics, Nanoseconds now, std::optional<Nanoseconds> longest);
    void confirmed(std::int32_t id);
    void reverted(std::int32_t id) { faults_.erase(id); }
    void clear() { faults_.clear(); }

    /// The earliest time at which overdue() may have something to say; nothing when there is none.
    [[nodiscard]] std::optional<Nanoseconds> next() const;
    /// Why all faults must be undone now, one sentence; nothing when all is well.
    [[nodiscard]] std::optional<std::string> overdue(Nanoseconds now) const;
    /// NICs of the faults in force.
    [[nodiscard]] std::vector<std::string> nics() const;

private:
    struct Watched {
        std::vector<std::string> nics;
        std::optional<Nanoseconds> confirm_by;
        std::optional<Nanoseconds> over_by;
    };
    std::map<std::int32_t, Watched> faults_;
};

} // namespace railbreak::agent
