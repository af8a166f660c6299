// What stands between an order and a fault besides the injectors' own preflight: the halt file, the host's lock, the
// site policies, and the watch over the faults in force.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "harness/agent/fault_watch.hpp"
#include "harness/launch/rpc.hpp"
#include "injectors/host_lock.hpp"
#include "scenarios/policy.hpp"

namespace railbreak::agent {

/// The policy that holds on a host whoever runs on it.
inline constexpr const char* kHostPolicy = "/etc/railbreak/policy.yaml";

/// See the file comment. Single-threaded.
class Safeguard {
public:
    /// From the parameters of "init": {run_id, host_name, lease_ns, with_faults, policies: [{source, text}]}. Reads the
    /// host's own policy too. With faults to come it takes the host's lock, without it only notes that it is there.
    /// kRefused when the host is halted, has another owner, or a policy does not allow the lease; kInput for a policy
    /// that is none.
    [[nodiscard]] static Result<std::unique_ptr<Safeguard>> open(const launch::Json& init);

    /// What is known only after the keeper was opened; for those who read the lock.
    void note_keeper(std::int32_t guard_pid, const std::string& journal);

    /// Whether a fault may be applied now. kRefused with the reason.
    [[nodiscard]] Result<void> may_apply(const launch::Json& order);
    /// The order was carried out, or taken back.
    void applied(const launch::Json& order);
    void confirmed(std::int32_t id) { watch_.confirmed(id); }
    void reverted(std::int32_t id) { watch_.reverted(id); }
    void all_reverted() { watch_.clear(); }

    /// Readable when the state folder has changed; -1 when that cannot be watched (then each poll looks).
    [[nodiscard]] int halt_fd() const { return halt_watch_.get(); }
    /// What the halt file says, when there is one. Takes news off halt_fd().
    [[nodiscard]] std::optional<std::string> halted();
    /// The earliest time at which overdue() may have something to say.
    [[nodiscard]] std::optional<Nanoseconds> next_deadline() const { return watch_.next(); }
    /// Why all faults must be undone now; nothing when all is well.
    [[nodiscard]] std::optional<std::string> overdue() const { return watch_.overdue(monotonic_now()); }

private:
    Safeguard(std::string host_name, std::string state_folder, std::vector<scenarios::SitePolicy> policies);
    [[nodiscard]] std::optional<Nanoseconds> longest_fault() const;

    std::string host_name_;
    std::string state_folder_;
    std::vector<scenarios::SitePolicy> policies_;
    bool with_faults_ = false; ///< init announced some
    std::optional<injectors::HostLock> lock_; ///< with faults; else the note
    UniqueFd halt_watch_;
    FaultWatch watch_;
};

} // namespace railbreak::agent
