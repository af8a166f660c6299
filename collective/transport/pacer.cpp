#include "collective/transport/pacer.hpp"

#include <algorithm>
#include <limits>

namespace railbreak::collective {

namespace {

/// What may move at once: as much as passes in this time, so that flows share the port finely and a wake-up is worth
/// its cost; at least kLeastPiece.
constexpr Nanoseconds kPieceTime = std::chrono::microseconds(200);
constexpr std::size_t kLeastPiece = std::size_t{16} * 1024;

} // namespace

std::size_t Pacer::allowance(Nanoseconds now) {
    if (!limited()) {
        return std::numeric_limits<std::size_t>::max();
    }
    if (now < busy_until_) {
        waited_for_ = true;
        return 0;
    }
    const double piece = static_cast<double>(rate_.bytes_per_s()) * std::chrono::duration<double>(kPieceTime).count();
    return std::max(kLeastPiece, static_cast<std::size_t>(piece));
}

void Pacer::moved(std::size_t bytes, Nanoseconds now) {
    if (!limited()) {
        return;
    }
    const Nanoseconds start = waited_for_ ? std::max(busy_until_, now - kMostLateness) : now;
    const double ns = static_cast<double>(bytes) * 8e9 / static_cast<double>(rate_.bits_per_s());
    busy_until_ = start + Nanoseconds(static_cast<std::int64_t>(ns));
    waited_for_ = false;
}

std::optional<Nanoseconds> Pacer::wake_at() const {
    return waited_for_ ? std::optional(busy_until_) : std::nullopt;
}

} // namespace railbreak::collective
