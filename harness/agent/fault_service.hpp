// The fault side of an agent: control messages in, the injectors' FaultKeeper behind, evidence out.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "harness/launch/rpc.hpp"

namespace railbreak::agent {

/// Methods "fault.apply", "fault.revert", "fault.revert_all".
class FaultService {
public:
    /// `init`: {run_id, host_name, lease_ns, protected_nics}. Recovers what an earlier agent left behind first.
    [[nodiscard]] static Result<std::unique_ptr<FaultService>> open(const launch::Json& init,
                                                                    const std::string& executable);
    virtual ~FaultService() = default;

    /// What open() recovered: {recovered: [...]}.
    [[nodiscard]] virtual launch::Json opening_report() const = 0;
    [[nodiscard]] virtual Result<launch::Json> handle(std::string_view method, const launch::Json& params) = 0;
    /// Undoes and verifies every fault. Error (kTeardown) names what is not as it was.
    [[nodiscard]] virtual Result<launch::Json> revert_all() = 0;
    /// revert_all(), then stands the guard down.
    [[nodiscard]] virtual Result<launch::Json> close() = 0;
    virtual void renew_lease() = 0;
    /// Readable when check_guard() has news; -1 when there is no guard any more.
    [[nodiscard]] virtual int guard_fd() const = 0;
    /// An Error when the guard is dead or has undone everything: revert at once, then forget_guard().
    [[nodiscard]] virtual Result<void> check_guard() = 0;
    virtual void forget_guard() = 0;
};

} // namespace railbreak::agent
