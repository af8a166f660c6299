// What can be injected on this host by this process, found out the way a fault would be: by planning it.
//
// For every NIC and every kind of fault the preflight and the first step of each facet run (they only look), and give
// the mechanism that would be used or the reason why there is none. Nothing is changed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/fault.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// One kind of fault on one target.
struct SurveyedKind {
    FaultKind kind = FaultKind::kCap;
    std::string mechanism; ///< how it would be made; empty when it cannot be
    std::string realism;
    std::string data_path;
    std::string reason; ///< why it cannot be made, one sentence with what would help; empty when it can
};

/// One NIC with everything that acts on NICs.
struct SurveyedNic {
    LinkRecord link;
    std::vector<SurveyedKind> kinds;
};

/// The whole host.
struct Survey {
    KernelFeatures features;
    std::string features_missing;        ///< why the kernel could not be tried; empty when it was
    std::vector<SurveyedNic> nics;       ///< all but loopback and ifb devices
    std::vector<SurveyedKind> processes; ///< what acts on processes, with this process as the example
    std::vector<SurveyedKind> folders;   ///< what acts on file systems
    /// True when at least one kind can be made on at least one NIC.
    [[nodiscard]] bool any_nic() const;
};

/// Surveys the namespace of `ops`. `protected_nics` and `journal_folder` as in KeeperOptions; for the faults that fill
/// a file system `folder` is the example.
[[nodiscard]] Result<Survey> survey_host(HostOps& ops, std::span<const std::string> protected_nics,
                                         const std::string& journal_folder, const std::string& folder);

/// How a kind of fault is proven in railbreak's own tests, one sentence: for people who must decide whether to trust
/// it.
[[nodiscard]] std::string_view proof_of(FaultKind kind);
/// What has not been seen with such hardware yet, and what it needs: "needs a NIC of ...". Empty when the kind is
/// proven.
[[nodiscard]] std::string_view unproven_of(FaultKind kind);

} // namespace railbreak::injectors
