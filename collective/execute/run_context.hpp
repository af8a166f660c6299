// What the engines of one run share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "collective/schedule.hpp"
#include "collective/transport/transport.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::collective {

/// Sizes that trade latency for calls.
struct ExecutorOptions {
    /// A step that forwards data still arriving sends it in pieces of at least this size: the delay that each hop adds.
    std::size_t forward_bytes = std::size_t{32} * 1024;
    /// At most this much moves in one system call, so that no engine keeps the others waiting.
    std::size_t call_bytes = std::size_t{256} * 1024;
    /// Staging buffer of a receiving engine that adds; small enough to stay in the second-level cache.
    std::size_t staging_bytes = std::size_t{128} * 1024;
    /// Told, within the run, of every path of it that stalls. May be empty: then nobody asks the transport.
    std::function<void(const StalledPath&)> on_stalled{};
};

/// Outlives the engines of its run. The vector is the rank's own, changed in place.
struct RunContext {
    Transport& transport;
    const Schedule& schedule;
    Rank self = 0;
    Dtype dtype = Dtype::kFloat32;
    std::int64_t element_bytes = 4;
    std::span<std::byte> vector;
    std::uint32_t run = 0;
    ExecutorOptions options;

    /// The bytes of a slice of the vector.
    [[nodiscard]] std::span<std::byte> bytes_of(const Slice& slice) const {
        return vector.subspan(static_cast<std::size_t>(slice.offset * element_bytes),
                              static_cast<std::size_t>(slice.count * element_bytes));
    }
};

} // namespace railbreak::collective
