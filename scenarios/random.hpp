// The generator behind every random choice of a scenario. Its output for a seed is part of the format: it must stay
// the same for ever, or recorded seeds lose their meaning. So it is written out here instead of taken from <random>,
// whose distributions differ between libraries.
#pragma once

#include <cstdint>

#include "base/check.hpp"

namespace railbreak::scenarios {

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): the state is a counter
/// with a fixed odd step, the output a mix of it.
class SplitMix64 {
public:
    explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

    /// The next 64 bits.
    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31U);
    }

    /// A number in [0, count), each equally likely: values of the incomplete last round are drawn again.
    std::uint64_t below(std::uint64_t count) {
        RB_CHECK(count > 0, "cannot choose among nothing");
        const std::uint64_t incomplete = (UINT64_MAX % count + 1) % count; // 2^64 mod count
        std::uint64_t value = next();
        while (value > UINT64_MAX - incomplete) {
            value = next();
        }
        return value % count;
    }

private:
    std::uint64_t state_;
};

} // namespace railbreak::scenarios
