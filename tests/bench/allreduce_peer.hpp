// What the comparison programs of other libraries have in common: input, timing, check and output.
//
// Everything is as in executor_bench: in place on the same pattern, timed from the first rank's start to the last
// rank's end on the host's one monotonic clock, and the result's digest compared with an independent one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "kernels/digest.hpp"
#include "kernels/fill.hpp"

namespace railbreak::bench {

/// One rank of a library under comparison.
struct Peer {
    std::int32_t rank = 0;
    std::int32_t ranks = 0;
    std::function<void()> barrier;
    std::function<void()> allreduce;                       ///< of the whole vector, in place
    std::function<std::int64_t(std::int64_t)> greatest_of; ///< maximum over all ranks
};

/// Runs the iterations of one rank on `vector`. Rank 0 prints the line "times_ms T T ... right|WRONG" that run_bench.sh
/// reads. Gives the process's exit code.
inline int run_peer(const Peer& peer, std::vector<float>& vector, int warm_up, int iterations) {
    const auto bytes = std::as_writable_bytes(std::span(vector));
    const auto expected =
        kernels::expected_digest(1, peer.ranks, static_cast<std::int64_t>(vector.size()), Dtype::kFloat32);
    if (!expected) {
        std::fprintf(stderr, "%s\n", expected.error().to_line().c_str());
        return 1;
    }
    std::string times;
    std::int64_t wrong = 0;
    for (int i = -warm_up; i < iterations; ++i) {
        if (const auto filled = kernels::fill(bytes, Dtype::kFloat32, 1, peer.rank, peer.ranks); !filled) {
            std::fprintf(stderr, "%s\n", filled.error().to_line().c_str());
            return 1;
        }
        peer.barrier();
        const std::int64_t start = monotonic_now().count();
        peer.allreduce();
        const std::int64_t end = monotonic_now().count();
        const std::int64_t took = peer.greatest_of(end) + peer.greatest_of(-start);
        wrong = std::max(wrong, peer.greatest_of(kernels::digest(bytes) == *expected ? 0 : 1));
        if (i >= 0) {
            times += fmt::format(" {:.3f}", static_cast<double>(took) / 1e6);
        }
    }
    if (peer.rank == 0) {
        fmt::print("times_ms{} {}\n", times, wrong == 0 ? "right" : "WRONG");
    }
    return wrong == 0 ? 0 : 1;
}

} // namespace railbreak::bench
