// Cutting a range into nearly equal parts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// `total` elements cut into `parts` parts whose sizes differ by one at most, the larger ones first. Parts may be
/// empty. All divisions are in the constructor, so that a schedule that keeps its cuts finds a part without any.
///
/// Cut into k and into k+1 parts, part j of k lies within the parts j and j+1 of k+1.
class EvenSplit {
public:
    constexpr EvenSplit(std::int64_t total, std::int64_t parts) : each_(total / parts), larger_(total % parts) {}

    /// Part `index`, relative to the start of the range.
    [[nodiscard]] constexpr Slice part(std::int64_t index) const {
        return {index * each_ + std::min(index, larger_), each_ + (index < larger_ ? 1 : 0)};
    }
    /// Size of the largest part.
    [[nodiscard]] constexpr std::int64_t largest() const { return each_ + (larger_ > 0 ? 1 : 0); }
    /// Size of the smallest part: largest(), or one less.
    [[nodiscard]] constexpr std::int64_t smallest() const { return each_; }

private:
    std::int64_t each_;
    std::int64_t larger_; ///< how many parts have one element more
};

} // namespace railbreak::collective
