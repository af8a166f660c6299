// A ring AllReduce of a range of the vector over some members: the hops that every ring-like schedule is made of.
//
// Member i receives from i-1 and sends to i+1. In reduce-scatter hop r = 0..m-2 it receives section i-1-r and adds its
// own values, so that section d travels d, d+1, ..., d-1 and is finished at member d-1. In allgather hop r it receives
// the finished section i-r. What member i sends in hop r+1 of either half is what it received in hop r, and what it
// sends first in the allgather is what it received last in the reduce-scatter: send number q always waits for exactly q
// receives.
//
// No receive waits for own sends: the allgather copy of a section exists only after the member's own part of it has
// left, been added further down the ring and come back.
#pragma once

#include <cstdint>

#include "collective/schedule.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

/// The ring of `members` >= 1 members on `range`, cut into as many sections. O(1) memory and time.
class RingPart {
public:
    RingPart(Rank members, Slice range) : members_(members), offset_(range.offset), sections_(range.count, members) {}

    [[nodiscard]] Rank members() const { return members_; }
    /// Messages that each member sends, and as many that it receives.
    [[nodiscard]] std::int64_t hops() const { return 2 * (std::int64_t{members_} - 1); }
    [[nodiscard]] Rank next(Rank member) const { return member + 1 == members_ ? 0 : member + 1; }
    [[nodiscard]] Rank previous(Rank member) const { return member == 0 ? members_ - 1 : member - 1; }
    /// Elements of the largest section.
    [[nodiscard]] std::int64_t largest_section() const { return sections_.largest(); }

    /// What `member` receives as message `index`, 0 <= index < hops(), without peer and waits.
    [[nodiscard]] Step into(Rank member, std::int64_t index) const {
        const bool reducing = index < members_ - 1;
        const std::int64_t section = reducing ? wrap(member - 1 - index) : wrap(member - (index - (members_ - 1)));
        Step step;
        step.slice = sections_.part(section);
        step.slice.offset += offset_;
        step.stage = reducing ? Stage::kReduceScatter : Stage::kAllGather;
        step.combine = reducing ? Combine::kReduce : Combine::kCopy;
        return step;
    }

private:
    /// The member number is at least -members_ here, never below.
    [[nodiscard]] std::int64_t wrap(std::int64_t section) const { return section < 0 ? section + members_ : section; }

    Rank members_;
    std::int64_t offset_;
    EvenSplit sections_;
};

} // namespace railbreak::collective
