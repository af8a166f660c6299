// The real binary, run as a user runs it, with a state folder and a database of its own. The state folder's path is in
// the environment of every process that belongs to the run, guards and keepers included: that is how they are found.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch/child.hpp"

namespace railbreak::tests {

/// A folder that is removed at the end of its life.
class TemporaryFolder {
public:
    TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// What a finished process left.
struct Finished {
    launch::ExitStatus status;
    std::string out;
    std::string err;
};

/// One invocation of the binary.
class RailbreakProcess {
public:
    /// Starts `railbreak ARGUMENTS` with RAILBREAK_STATE_DIR and RAILBREAK_DB inside `home`; or another program, which
    /// may start it.
    RailbreakProcess(const std::filesystem::path& home, const std::vector<std::string>& arguments,
                     const std::string& program = RAILBREAK_BINARY);
    ~RailbreakProcess();

    /// Reads output until stderr holds `text`, the process has ended, or the patience is over; true: it is there.
    bool wait_for_stderr(const std::string& text, Nanoseconds patience);
    /// The same of stdout.
    bool wait_for_stdout(const std::string& text, Nanoseconds patience);
    /// Reads output until the process has ended. Nothing when it does not end in time.
    std::optional<Finished> finish(Nanoseconds patience);
    [[nodiscard]] const launch::Child& child() const { return child_; }
    [[nodiscard]] const std::string& err() const { return err_; }

private:
    void read_output(Nanoseconds budget);
    [[nodiscard]] bool wait_for(const std::string& output, const UniqueFd& from, const std::string& text,
                                Nanoseconds patience);
    launch::Child child_;
    std::string out_;
    std::string err_;
};

/// Runs to the end; a process that does not end in time fails the test by an exit code of -1.
[[nodiscard]] Finished run_railbreak(const std::filesystem::path& home, const std::vector<std::string>& arguments,
                                     Nanoseconds patience = std::chrono::seconds(60),
                                     const std::string& program = RAILBREAK_BINARY);

/// A process of a run, found by its environment.
struct RunProcess {
    pid_t pid = -1;
    /// First word after the program name: "agent", "rank", "guard", "run"; "keeper"; or the process's comm.
    std::string role;
};
[[nodiscard]] std::vector<RunProcess> processes_of(const std::filesystem::path& home);
/// Waits until none is left; returns those that are still there. A process that is ending has no environment any more
/// and does not count, although it may still be inside a network namespace: for those there is namespaces.hpp.
[[nodiscard]] std::vector<RunProcess> wait_until_none(const std::filesystem::path& home, Nanoseconds patience);
/// Waits until a process that was sent SIGSTOP has stopped; false when it has not in time.
[[nodiscard]] bool wait_until_stopped(pid_t pid, Nanoseconds patience);

} // namespace railbreak::tests
