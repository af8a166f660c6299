// What the running kernel can do, and what this process may ask of it: found by trying, in a network namespace made for
// the purpose, never by version numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace railbreak::injectors {

/// One thing that an injector needs of the kernel.
enum class KernelFeature : std::uint8_t {
    kHtb,           ///< sch_htb
    kNetem,         ///< sch_netem
    kIfb,           ///< ifb devices
    kClsact,        ///< sch_ingress with clsact
    kRedirect,      ///< cls_u32 and act_mirred
    kPacketProgram, ///< cls_bpf, and permission to load a program
    kNftIngress,    ///< nf_tables, netdev family, ingress hook
    kNftEgress,     ///< nf_tables, netdev family, egress hook
    kNftForward,    ///< nf_tables, fwd at the egress hook: drops of which the sender is not told
    kPolicyRules,   ///< IP_MULTIPLE_TABLES
};
/// Every KernelFeature.
inline constexpr std::array kKernelFeatures{
    KernelFeature::kHtb,        KernelFeature::kNetem,         KernelFeature::kIfb,        KernelFeature::kClsact,
    KernelFeature::kRedirect,   KernelFeature::kPacketProgram, KernelFeature::kNftIngress, KernelFeature::kNftEgress,
    KernelFeature::kNftForward, KernelFeature::kPolicyRules};
/// "htb", "netem", "ifb", ...
[[nodiscard]] std::string_view to_string(KernelFeature feature);

/// Answers to all of them.
class KernelFeatures {
public:
    [[nodiscard]] bool has(KernelFeature feature) const { return missing(feature).empty(); }
    /// Why it is missing, one sentence with what brings it ("the kernel has no netem (module sch_netem)"); empty when
    /// it is there.
    [[nodiscard]] const std::string& missing(KernelFeature feature) const {
        return missing_.at(static_cast<std::size_t>(feature));
    }
    void set_missing(KernelFeature feature, std::string why) {
        missing_.at(static_cast<std::size_t>(feature)) = std::move(why);
    }

private:
    std::array<std::string, kKernelFeatures.size()> missing_;
};

/// Tries every feature in a network namespace of its own that ends with the call. kRefused when not even such a
/// namespace may be made; then nothing can be injected by this process.
[[nodiscard]] Result<KernelFeatures> probe_kernel_features();

} // namespace railbreak::injectors
