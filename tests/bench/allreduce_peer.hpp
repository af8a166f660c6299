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
#include <sys/resource.h>

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
    std::function<std::int64_t(std::int64_t)> sum_of;      ///< sum over all ranks
};

/// Processor time of this process so far, in nanoseconds.
inline std::int64_t cpu_ns() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1000; };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

/// Runs the iterations of one rank on `vector`. Rank 0 prints the line "times_ms T T ... cpu_ms T right|WRONG" that
/// run_bench.sh reads; the processor time is that of all ranks for one iteration. Gives the process's exit code.
inline int run_peer(const Peer& peer, std::vector<float>& vector, int warm_up, int iterations) {
    const auto bytes = std::as_writable_bytes(std::span(vector));
    const auto expected =
        kernels::expected_digest(1, peer.ranks, static_cast<std::int64_t>(vector.size()), Dtype::kFloat32);
    if (!expected) {
        std::fprintf(stderr, "%s\n", expected.error().to_line().c_str());
        return 1;
    }
    std::string times;
    std::int64_t cpu = 0;
    std::int64_t wrong = 0;
    for (int i = -warm_up; i < iterations; ++i) {
        if (const auto filled = kernels::fill(bytes, Dtype::kFloat32, 1, peer.rank, peer.ranks); !filled) {
            std::fprintf(stderr, "%s\n", filled.error().to_line().c_str());
            return 1;
        }
        peer.barrier();
        const std::int64_t cpu_before = cpu_ns();
        const std::int64_t start = monotonic_now().count();
        peer.allreduce();
        const std::int64_t end = monotonic_now().count();
        const std::int64_t used = peer.sum_of(cpu_ns() - cpu_before);
        const std::int64_t took = peer.greatest_of(end) + peer.greatest_of(-start);
        wrong = std::max(wrong, peer.greatest_of(kernels::digest(bytes) == *expected ? 0 : 1));
        if (i >= 0) {
            cpu += used / iterations;
            times += fmt::format(" {:.3f}", static_cast<double>(took) / 1e6);
        }
    }
    if (peer.rank == 0) {
        fmt::print("times_ms{} cpu_ms {:.1f} {}\n", times, static_cast<double>(cpu) / 1e6,
                   wrong == 0 ? "right" : "WRONG");
    }
    return wrong == 0 ? 0 : 1;
}

} // namespace railbreak::bench
