// Collateral damage: whether anything on the host changed beside what a fault was asked to change.
//
// The interfaces that no fault acts on are looked at before a fault begins, while it is in force, and after it was
// undone: their flags, MTU, address and queueing disciplines must not have moved.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "injectors/fault.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::agent {

/// Watches the interfaces of one network namespace. `ops` must outlive it.
class CollateralWatch {
public:
    explicit CollateralWatch(injectors::HostOps& ops) : ops_(ops) {}

    /// Looks at all interfaces but those of the fault itself and of faults that are open. From now on no open watch
    /// looks at the interfaces of this fault any more.
    void begin(const injectors::FaultRequest& fault);
    /// What has changed since begin(), one sentence each. A failed look is a sentence as well: it proves nothing.
    [[nodiscard]] std::vector<std::string> changes(std::int32_t id);
    /// Ends the watch of a fault.
    void forget(std::int32_t id) { watches_.erase(id); }

private:
    /// What must not move, by what it is called in sentences: {"MTU", "1500"}.
    using Look = std::map<std::string, std::string>;
    using Looks = std::map<std::string, Look>; ///< by interface
    struct Watch {
        std::set<std::string> own; ///< interfaces of the fault
        Looks before;
        std::string error; ///< of the first look
    };
    [[nodiscard]] Result<Looks> look();

    injectors::HostOps& ops_;
    std::map<std::int32_t, Watch> watches_;
};

} // namespace railbreak::agent
