#include "injectors/kernel_features.hpp"

#include <cerrno>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "injectors/host_records.hpp"
#include "injectors/netfilter.hpp"
#include "injectors/netlink.hpp"
#include "injectors/nft_messages.hpp"
#include "injectors/program_loader.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

namespace {

constexpr int kLoopback = 1; ///< every namespace has it, with this index
constexpr TcHandle kProbeHandle = tc_handle(0xfaff, 0);
constexpr std::uint16_t kProbePriority = 0xfaff;

/// What brings a feature that a kernel was built without.
std::string_view remedy(KernelFeature feature) {
    switch (feature) {
    case KernelFeature::kHtb: return "module sch_htb";
    case KernelFeature::kNetem: return "module sch_netem";
    case KernelFeature::kIfb: return "module ifb";
    case KernelFeature::kClsact: return "module sch_ingress";
    case KernelFeature::kRedirect: return "modules cls_u32 and act_mirred";
    case KernelFeature::kPacketProgram:
        return "module cls_bpf and CAP_BPF with CAP_SYS_ADMIN in the first user namespace";
    case KernelFeature::kNftIngress: return "module nf_tables with CONFIG_NETFILTER_INGRESS";
    case KernelFeature::kNftEgress: return "Linux 5.16 with CONFIG_NETFILTER_EGRESS";
    case KernelFeature::kNftForward: return "Linux 5.17 with module nft_fwd_netdev";
    case KernelFeature::kPolicyRules: return "CONFIG_IP_MULTIPLE_TABLES";
    }
    return "";
}

/// Tries in the calling thread's network namespace, which is thrown away afterwards.
class Prober {
public:
    explicit Prober(NetlinkChannel channel) : channel_(std::move(channel)) {}

    KernelFeatures run() {
        note(KernelFeature::kHtb, add_htb(channel_, kLoopback, kProbeHandle, 1));
        (void)delete_qdisc(channel_, kLoopback, kTcRoot, kProbeHandle); // gone with the namespace in any case
        note(KernelFeature::kNetem, add_netem(channel_, kLoopback, kTcRoot, kProbeHandle, NetemShape{}));
        const auto ifb = add_ifb(channel_, "rbprobe", "railbreak probe");
        note(KernelFeature::kIfb, ifb.map([](int) {}));
        note(KernelFeature::kClsact, add_clsact(channel_, kLoopback));
        note(KernelFeature::kRedirect,
             add_redirect(channel_, kLoopback, TcDirection::kIngress, kProbePriority, ifb ? *ifb : kLoopback));
        note(KernelFeature::kPacketProgram,
             attach_packet_program(channel_, kLoopback, TcDirection::kEgress, kProbePriority, PacketProgram{}));
        note(KernelFeature::kNftIngress, try_nft_hook(kNftIngressHook));
        note(KernelFeature::kNftEgress, try_nft_hook(kNftEgressHook));
        note(KernelFeature::kNftForward, try_nft_forward());
        note(KernelFeature::kPolicyRules, list_rules(channel_).map([](const auto&) {}));
        return std::move(features_);
    }

private:
    /// A table with one chain on the loopback interface; gone with the namespace.
    static Result<void> try_nft_hook(std::uint32_t hook) {
        const UniqueFd here(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        const NftTable table{kNftNetdev, fmt::format("railbreak_probe_{}", hook)};
        return commit_nft(here.get(),
                          {nft_new_table(table, "railbreak probe"), nft_new_chain(table, {"probe", hook, 0, "lo"})},
                          "make an nftables chain");
    }

    static Result<void> try_nft_forward() {
        const UniqueFd here(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        const NftTable table{kNftNetdev, "railbreak_probe_fwd"};
        return commit_nft(here.get(),
                          {nft_new_table(table, "railbreak probe"),
                           nft_new_chain(table, {"probe", kNftEgressHook, 0, "lo"}),
                           nft_new_rule(table, "probe", NftExpressions().swallow(), "railbreak probe")},
                          "make an nftables rule that forwards");
    }

    void note(KernelFeature feature, const Result<void>& tried) {
        if (tried) {
            return;
        }
        const int code = kernel_errno(tried.error());
        const bool unknown = code == ENOENT || code == EOPNOTSUPP || code == EPROTONOSUPPORT;
        features_.set_missing(feature,
                              unknown ? fmt::format("this kernel has no {} ({})", to_string(feature), remedy(feature))
                                      : fmt::format("{} (needs {})", tried.error().message(), remedy(feature)));
    }

    NetlinkChannel channel_;
    KernelFeatures features_;
};

Result<KernelFeatures> probe_in_new_namespace() {
    // Only this thread moves, and it ends with the probe.
    if (unshare(CLONE_NEWNET) != 0) {
        return fail_errno(ErrorKind::kRefused, "make a network namespace to try the kernel's features in", errno);
    }
    auto channel = NetlinkChannel::open();
    if (!channel) {
        return tl::unexpected(std::move(channel.error()));
    }
    return Prober(std::move(*channel)).run();
}

} // namespace

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
    case KernelFeature::kNftForward: return "nft_forward";
    case KernelFeature::kPolicyRules: return "policy_rules";
    }
    return "?";
}

Result<KernelFeatures> probe_kernel_features() {
    std::optional<Result<KernelFeatures>> found;
    std::thread([&] { found = probe_in_new_namespace(); }).join();
    return std::move(*found);
}

} // namespace railbreak::injectors
