#include "collective/execute/wire.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace railbreak::collective {

namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian, and so are all ports");

constexpr std::uint32_t kMagic = 0x31534252; // "RBS1"

/// The layout; no padding.
struct Packed {
    std::uint32_t magic;
    std::uint16_t lane;
    std::uint8_t stage;
    std::uint8_t combine;
    std::uint32_t run;
    std::uint32_t ordinal;
    std::int64_t offset;
    std::uint64_t bytes;
};
static_assert(sizeof(Packed) == kHeaderBytes);

std::string in_words(const Packed& packed) {
    return fmt::format("run {}, step {} of the link, lane {}, stage {}, combine {}, {} bytes from element {}",
                       packed.run, packed.ordinal, packed.lane, packed.stage, packed.combine, packed.bytes,
                       packed.offset);
}

} // namespace

HeaderBytes pack(const StepHeader& header) {
    const Packed packed{kMagic,
                        static_cast<std::uint16_t>(header.lane),
                        static_cast<std::uint8_t>(header.stage),
                        static_cast<std::uint8_t>(header.combine),
                        header.run,
                        header.ordinal,
                        header.offset,
                        header.bytes};
    return std::bit_cast<HeaderBytes>(packed);
}

std::string mismatch(const StepHeader& expected, const HeaderBytes& received) {
    const HeaderBytes wanted = pack(expected);
    if (received == wanted) {
        return {};
    }
    const auto got = std::bit_cast<Packed>(received);
    if (got.magic != kMagic) {
        return fmt::format("the stream holds no step header (starts with {:#010x})", got.magic);
    }
    return fmt::format("expected {}; received {}", in_words(std::bit_cast<Packed>(wanted)), in_words(got));
}

} // namespace railbreak::collective
