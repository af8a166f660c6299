// Agents that fail and die at chosen moments on the bench's NICs, and the question whether the host is as before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "injectors/fault_keeper.hpp"
#include "tests/lab/injector_bench.hpp"

namespace railbreak::injectors {

/// Longest wait for anything that must happen.
inline constexpr auto kPatience = std::chrono::seconds(20);

/// What a test's agent does with its faults. True when all went well.
using Script = std::function<bool(FaultKeeper&)>;
/// Gives a script for one more try: a process that is killed must be another one each time.
using ScriptMaker = std::function<Script()>;

/// Applies the fault and reverts it.
[[nodiscard]] Script apply_and_revert(FaultRequest request);

class InjectorLab : public InjectorBench {
protected:
    [[nodiscard]] KeeperOptions options(const std::string& run = "run",
                                        Nanoseconds lease = std::chrono::minutes(10)) const;
    [[nodiscard]] static FaultKeeper open_keeper(HostOps& ops, const KeeperOptions& options);

    /// Runs the script in an agent process that ends itself with SIGKILL at its `kill_at`th effect after opening (and,
    /// if asked, its guard with it). Returns true when the script came to its end first.
    bool run_agent(const Script& script, int kill_at, bool guard_too);
    /// Compares with a fresh snapshot; `step` stands in failures.
    void expect_as_before(const std::vector<std::string>& before, int step) const;
    /// Kills the agent at effect 1, 2, 3, ... until it comes through; after each the host must be as before. Gives the
    /// number of effects.
    int kill_at_every_effect(const ScriptMaker& make, bool guard_too);
    int kill_at_every_effect(const Script& script, bool guard_too) {
        return kill_at_every_effect([&] { return script; }, guard_too);
    }
    /// Makes effect 1, 2, 3, ... fail until the script comes through; the same.
    int fail_at_every_effect(const ScriptMaker& make);
    int fail_at_every_effect(const Script& script) {
        return fail_at_every_effect([&] { return script; });
    }
    /// Worst time from the agent's end to the guard's end.
    Nanoseconds slowest_undo_{0};
};

} // namespace railbreak::injectors
