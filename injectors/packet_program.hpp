// The packet program: a BPF classifier that loses, damages and doubles packets where the kernel has no netem.
//
// It hangs in a clsact qdisc and leaves the root qdisc alone. Every setting carries a deadline on CLOCK_BOOTTIME, and
// past it the program lets everything pass: a fault made with it ends by itself when nobody is left to undo it. Loss
// is silent (the sender's stack is told that the packet went out), as it is on a wire. The program counts what it does,
// and these counts are the proof that the fault acts.
//
// A packet is what the network stack hands over: with segmentation offload up to 64 kB of a TCP flow are lost or
// doubled as one. A damaged packet is one that the receiver discards (a bit of its IP header is turned over, which is
// checked in every case): TCP sees a loss. Damage that passes for good data is another fault, which this program does
// not make.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "injectors/fault.hpp"

namespace railbreak::injectors {

/// Setting of a packet program.
struct PacketProgram {
    PacketTreatment treatment; ///< loss or bursts, corrupt, duplicate; no delay, no reorder
    std::uint32_t seed = 1;    ///< of its random numbers
    Nanoseconds deadline_boottime{0};
    bool ends_redirect = false; ///< past the deadline packets skip the filters behind it: a redirect ends as well
    bool operator==(const PacketProgram&) const = default;
};

/// What it did so far, in packets.
struct PacketProgramCounts {
    std::uint64_t seen = 0; ///< while there was something to do
    std::uint64_t lost = 0;
    std::uint64_t corrupted = 0;
    std::uint64_t duplicated = 0;
};

/// A packet program as read back.
struct PacketProgramRecord {
    PacketProgram program;
    PacketProgramCounts counts;
};

} // namespace railbreak::injectors
