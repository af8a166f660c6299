// Processes to be broken: each counts in memory that the test sees, so that standing still can be told from running.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {

/// What the cgroup trees of the machine are to a test.
enum class Surroundings : std::uint8_t {
    kUnified, ///< as mounted here: cgroup v2, and v1 for what v2 lacks
    kOld,     ///< cgroup v1 alone
    kNone,    ///< no cgroups at all
};
[[nodiscard]] std::string_view to_string(Surroundings surroundings);

/// What a worker's threads count in.
struct Counters {
    std::atomic<std::uint64_t> first;  ///< its first thread
    std::atomic<std::uint64_t> second; ///< its second thread
    std::atomic<std::uint64_t> child;  ///< the process that it forked
    std::atomic<bool> hurry;           ///< the first thread takes no pauses
};

/// A process with two threads and a child, all of which count. Ends with this object.
class Worker {
public:
    /// Forks it; on return all three have counted.
    Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker();

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] pid_t child_pid() const { return child_; }
    [[nodiscard]] std::vector<std::uint64_t> counts() const;
    /// Lets the first thread count without a pause, or with pauses again.
    void hurry(bool on);
    /// Waits until each of the three (or the first alone) has counted once more. False when one does not.
    [[nodiscard]] bool all_count(bool with_child = true) const;
    /// True when none of them counts while another worker, of the same making, does many times.
    [[nodiscard]] bool none_counts(bool with_child = true) const;
    /// CPU time that the worker has had, its child not counted.
    [[nodiscard]] Nanoseconds cpu_time() const;
    /// Kills and reaps the worker itself; its child lives on.
    void end();

private:
    void run();
    Counters* counters_ = nullptr; ///< shared with the worker
    pid_t pid_ = 0;
    pid_t child_ = 0;
};

/// A fixture without NICs. The workers of a test are in cgroups of the test's own.
class ProcessLab : public InjectorLab, public ::testing::WithParamInterface<Surroundings> {
protected:
    void SetUp() override;
    void TearDown() override;
    /// Cgroups of ours, the test's own ones with their settings, and where the workers are.
    [[nodiscard]] std::vector<std::string> snapshot() const override;

    /// Puts a worker into the test's cgroups.
    void settle(const Worker& worker);
    [[nodiscard]] FaultRequest pause(std::int32_t id) const;
    [[nodiscard]] FaultRequest kill_it(std::int32_t id) const;
    [[nodiscard]] FaultRequest slow_down(std::int32_t id, Millionths cpu) const;
    /// Mount points of cgroup trees that are to be seen, with "2 " before that of cgroup v2 and "1 " before others.
    [[nodiscard]] static std::vector<std::string> trees();
    /// How a process is paused and slowed down in these surroundings; empty when it cannot be.
    [[nodiscard]] static std::string pause_mechanism();
    [[nodiscard]] static std::string cpu_mechanism();

    std::unique_ptr<Worker> worker_;

private:
    UniqueFd mounts_; ///< the mount namespace to go back to
    std::vector<std::string> own_;
};

} // namespace railbreak::injectors
