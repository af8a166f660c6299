#include "injectors/packet_mechanism.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

/// The first of them that is missing, in its own words; empty when all are there.
std::string first_missing(const KernelFeatures& features, std::initializer_list<KernelFeature> needed) {
    for (const KernelFeature feature : needed) {
        if (!features.has(feature)) {
            return features.missing(feature);
        }
    }
    return {};
}

bool has_netem(const SideFormer& former) {
    return former.mechanism == PacketMechanism::kNetem || former.mechanism == PacketMechanism::kNetemAndProgram;
}

tl::unexpected<Error> lacks(std::string_view what, const std::string& why) {
    return fail(ErrorKind::kRefused, fmt::format("{}: {}", what, why));
}

std::string percent(Millionths part) {
    return fmt::format("{:g}%", static_cast<double>(part) / 10'000);
}

std::optional<PacketTreatment> if_it_acts(const PacketTreatment& treatment) {
    return acts(treatment) ? std::optional(treatment) : std::nullopt;
}

} // namespace

bool has_program(const SideFormer& former) {
    return former.mechanism == PacketMechanism::kProgram || former.mechanism == PacketMechanism::kNetemAndProgram;
}

SideFormer choose_mechanism(HostOps& ops, TcDirection direction, const FaultRequest& request) {
    SideFormer former;
    former.seed = static_cast<std::uint32_t>(request.id) * 2 + (direction == TcDirection::kIngress ? 1 : 0);
    const auto features = ops.features();
    if (!features) {
        former.no_netem = former.no_program = features.error().message();
        return former;
    }
    former.no_netem = first_missing(
        *features, {KernelFeature::kNetem, KernelFeature::kIfb, KernelFeature::kClsact, KernelFeature::kRedirect});
    former.no_program = first_missing(*features, {KernelFeature::kClsact, KernelFeature::kPacketProgram});
    const bool netem = former.no_netem.empty();
    const bool program = former.no_program.empty();
    former.mechanism = netem && program ? PacketMechanism::kNetemAndProgram
                       : netem          ? PacketMechanism::kNetem
                       : program        ? PacketMechanism::kProgram
                                        : PacketMechanism::kNone;
    return former;
}

Result<void> check_treatment(const SideFormer& former, TcDirection direction, const PacketTreatment& treatment) {
    if (!acts(treatment)) {
        return {};
    }
    if (former.mechanism == PacketMechanism::kNone) {
        return lacks("single packets cannot be treated here",
                     fmt::format("{}; and there is no packet program: {}", former.no_netem, former.no_program));
    }
    const bool needs_netem = treatment.delay.count() != 0 || treatment.jitter.count() != 0 || treatment.reorder != 0;
    if (needs_netem && !has_netem(former)) {
        return lacks("packets can be delayed and reordered only by netem", former.no_netem);
    }
    if (treatment.corrupt != 0 && direction == TcDirection::kIngress && !has_program(former)) {
        return lacks("packets that arrive can be corrupted only by the packet program", former.no_program);
    }
    return {};
}

std::optional<PacketTreatment> netem_part(const SideFormer& former, TcDirection direction,
                                          const PacketTreatment& treatment) {
    PacketTreatment part = treatment;
    if (direction == TcDirection::kIngress) {
        part.corrupt = 0;
    }
    return has_netem(former) ? if_it_acts(part) : std::nullopt;
}

std::optional<PacketTreatment> program_part(const SideFormer& former, TcDirection direction,
                                            const PacketTreatment& treatment) {
    if (!has_program(former)) {
        return std::nullopt;
    }
    if (!has_netem(former)) {
        return if_it_acts(treatment);
    }
    PacketTreatment part;
    part.corrupt = direction == TcDirection::kIngress ? treatment.corrupt : 0;
    return if_it_acts(part);
}

NetemShape netem_shape(const PacketTreatment& treatment, std::optional<BitRate> rate) {
    constexpr double kPacketBytes = 1500;
    constexpr double kLeast = 1000;
    constexpr double kMost = 1'000'000;
    const double bytes_per_s = static_cast<double>(rate ? rate->bytes_per_s() : 12'500'000'000);
    const double seconds = std::chrono::duration<double>(treatment.delay + treatment.jitter).count();
    const double packets = kLeast + 1.5 * bytes_per_s * seconds / kPacketBytes;
    return {treatment, static_cast<std::uint32_t>(std::min(packets, kMost))};
}

std::string describe_treatment(const PacketTreatment& treatment) {
    const auto milliseconds = [](Nanoseconds time) {
        return fmt::format("{:g}ms", std::chrono::duration<double, std::milli>(time).count());
    };
    std::vector<std::string> parts;
    if (treatment.delay.count() != 0) {
        parts.push_back("delay " + milliseconds(treatment.delay) +
                        (treatment.jitter.count() != 0 ? " +- " + milliseconds(treatment.jitter) : ""));
    }
    const auto add = [&](Millionths part, std::string_view what) {
        if (part != 0) {
            parts.push_back(fmt::format("{} {}", percent(part), what));
        }
    };
    add(treatment.loss, "lost");
    if (const auto& bursts = treatment.bursts) {
        parts.push_back(fmt::format("lost in bursts (good to bad {}, back {}; lost then {}, else {})",
                                    percent(bursts->good_to_bad), percent(bursts->bad_to_good),
                                    percent(bursts->loss_in_bad), percent(bursts->loss_in_good)));
    }
    add(treatment.corrupt, "corrupted");
    add(treatment.duplicate, "duplicated");
    add(treatment.reorder, "sent at once");
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::pair<std::string, std::string>> treatment_values(std::string_view side,
                                                                  const PacketTreatment& treatment) {
    std::vector<std::pair<std::string, std::string>> values;
    const auto add = [&](std::string_view name, std::int64_t value) {
        if (value != 0) {
            values.emplace_back(fmt::format("{}_{}", side, name), std::to_string(value));
        }
    };
    add("delay_ns", treatment.delay.count());
    add("jitter_ns", treatment.jitter.count());
    add("loss_millionths", treatment.loss);
    if (const auto& bursts = treatment.bursts) {
        add("burst_good_to_bad_millionths", bursts->good_to_bad);
        add("burst_bad_to_good_millionths", bursts->bad_to_good);
        add("burst_loss_in_bad_millionths", bursts->loss_in_bad);
        add("burst_loss_in_good_millionths", bursts->loss_in_good);
    }
    add("corrupt_millionths", treatment.corrupt);
    add("duplicate_millionths", treatment.duplicate);
    add("reorder_millionths", treatment.reorder);
    return values;
}

std::string encode_side(const SideFormer& former) {
    Encoder out;
    out.put(static_cast<std::uint8_t>(former.mechanism));
    out.put(former.seed);
    out.put(static_cast<std::uint8_t>(former.foreign_clsact));
    out.put_string(former.no_netem);
    out.put_string(former.no_program);
    return out.take();
}

Result<SideFormer> decode_side(std::string_view bytes) {
    Decoder in(bytes);
    SideFormer former;
    const auto mechanism = in.get<std::uint8_t>();
    former.mechanism = static_cast<PacketMechanism>(mechanism);
    former.seed = in.get<std::uint32_t>();
    const auto foreign = in.get<std::uint8_t>();
    former.foreign_clsact = foreign != 0;
    former.no_netem = in.get_string();
    former.no_program = in.get_string();
    if (!in.finished() || mechanism > static_cast<std::uint8_t>(PacketMechanism::kNetemAndProgram) || foreign > 1) {
        return fail(ErrorKind::kInput, "the former state of a NIC's packet treatment is damaged");
    }
    return former;
}

} // namespace railbreak::injectors
