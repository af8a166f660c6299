// What the conformance suite breaks: three NICs, a process and a small file system, all its own.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {

/// One kind of fault in one form, for nic0, the victim process or the small file system.
struct FaultForm {
    const char* name;
    FaultRequest request; ///< without pid and folder
};
/// For messages of failed tests.
void PrintTo(const FaultForm& form, std::ostream* out);
/// Every kind of fault, those with directions in each.
[[nodiscard]] std::vector<FaultForm> all_fault_forms();

class ConformanceTargets : public InjectorLab {
protected:
    void SetUp() override;
    void TearDown() override;
    void make_more_nics() override;

    /// The request with a living victim and the folder filled in. A victim that a fault has killed is replaced.
    [[nodiscard]] FaultRequest aimed(FaultRequest request);
    /// The bench's, with policy rules, nft tables, the victim's state and cgroups, railbreak's cgroups and the small
    /// file system.
    [[nodiscard]] std::vector<std::string> snapshot() const override;
    /// Lines of a snapshot that speak of something that railbreak made.
    [[nodiscard]] std::vector<std::string> own_things() const;
    void end_victim();
    [[nodiscard]] pid_t victim() const { return victim_; }
    [[nodiscard]] const std::string& small_disk() const { return disk_; }
    /// Why there is no small file system here; empty when there is one.
    [[nodiscard]] const std::string& no_disk() const { return no_disk_; }

private:
    void start_victim();
    void mount_small_disk();
    pid_t victim_ = 0;
    std::vector<pid_t> victims_; ///< all that there ever were
    bool victim_counts_ = true;  ///< a killed one is no part of the snapshot
    std::string disk_;
    std::string no_disk_;
};

} // namespace railbreak::injectors
