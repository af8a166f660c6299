#include "injectors/kernel_features.hpp"

namespace railbreak::injectors {

std::string_view to_string(KernelFeature feature) {
    switch (feature) {
    case KernelFeature::kHtb: return "htb";
    case KernelFeature::kNetem: return "netem";
    case KernelFeature::kIfb: return "ifb";
    case KernelFeature::kClsact: return "clsact";
    case KernelFeature::kRedirect: return "redirect";
    case KernelFeature::kPacketProgram: return "packet_program";
    case KernelFeature::kNftIngress: return "nft_ingress";
    case KernelFeature::kNftEgress: return "nft_egress";
    case KernelFeature::kPolicyRules: return "policy_rules";
    }
    return "?";
}

Result<KernelFeatures> probe_kernel_features() {
    return KernelFeatures();
}

} // namespace railbreak::injectors
