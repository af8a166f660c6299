// The packet program as compiled for BPF, part of this binary.
#pragma once

#include <span>

namespace railbreak::injectors {

/// Bytes of the ELF object file that clang made of packet_program.bpf.c; aligned to eight bytes, there for ever.
[[nodiscard]] std::span<const unsigned char> packet_program_object();

} // namespace railbreak::injectors
