// By what means the packets of one direction of a NIC are treated, chosen once for all faults that will meet there.
//
//   netem      where the kernel has it: delay, loss, duplicates, reordering, on an ifb that a filter redirects to
//   program    the packet program, where there is no netem: loss, corruption, duplicates
//
// The program ends by itself at the lease's end. Where it can be loaded it stands before the redirect, too, for a cap
// as for a netem, and ends that. Otherwise a redirect stays until somebody removes it, as the guard does.
//
// Packets that arrive are corrupted by the program even next to a netem. The NIC has checked their checksums and says
// so; netem would turn a bit behind that check, and wrong data would pass for good. The program turns a bit that is
// checked in any case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

enum class PacketMechanism : std::uint8_t {
    kNone,            ///< neither: caps only
    kProgram,         ///< no netem
    kNetem,           ///< programs cannot be loaded
    kNetemAndProgram, ///< both
};

/// What was found before the first fault of one side of a NIC, and what was decided then.
struct SideFormer {
    PacketMechanism mechanism = PacketMechanism::kNone;
    std::uint32_t seed = 1;      ///< of the packet program
    bool foreign_clsact = false; ///< others had filters on the NIC's clsact, so it stays
    std::string no_netem;        ///< why there is none; empty where there is
    std::string no_program;
};

/// Tries what the kernel has and chooses. The seed comes from the fault's id, so that the same plan has the same
/// losses.
[[nodiscard]] SideFormer choose_mechanism(HostOps& ops, TcDirection direction, const FaultRequest& request);

/// True when the packet program can be loaded.
[[nodiscard]] bool has_program(const SideFormer& former);

/// kRefused, with the reason, when the treatment cannot be made by that mechanism.
[[nodiscard]] Result<void> check_treatment(const SideFormer& former, TcDirection direction,
                                           const PacketTreatment& treatment);

/// The parts of a treatment that fall to the netem and to the program; empty where it has nothing to do. Precondition:
/// check_treatment().
[[nodiscard]] std::optional<PacketTreatment> netem_part(const SideFormer& former, TcDirection direction,
                                                        const PacketTreatment& treatment);
[[nodiscard]] std::optional<PacketTreatment> program_part(const SideFormer& former, TcDirection direction,
                                                          const PacketTreatment& treatment);

/// A netem that holds everything that is on its way at `rate`, and half as much again; without a rate at 100 Gbit/s.
[[nodiscard]] NetemShape netem_shape(const PacketTreatment& treatment, std::optional<BitRate> rate);

/// "1.5% loss", "delay 5ms +- 1ms, 0.1% duplicates": for people.
[[nodiscard]] std::string describe_treatment(const PacketTreatment& treatment);
/// The parts of a treatment that are not zero, as names and values: "send_loss_millionths", "10000".
[[nodiscard]] std::vector<std::pair<std::string, std::string>> treatment_values(std::string_view side,
                                                                                const PacketTreatment& treatment);

/// For the journal. decode fails with kInput on bytes that no encode made.
[[nodiscard]] std::string encode_side(const SideFormer& former);
[[nodiscard]] Result<SideFormer> decode_side(std::string_view bytes);

} // namespace railbreak::injectors
