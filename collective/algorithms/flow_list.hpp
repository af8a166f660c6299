// A schedule written out as a table, built from one global list of transfers. For baselines whose steps have no handy
// closed form: every rank builds the whole table, so memory and time are proportional to all flows of all ranks. The
// plans that are meant for large clusters compute their steps instead.
//
// The list is an order in which the transfers could be carried out one at a time. It is cut into the queues of the
// ranks, which makes it free of deadlock: the first transfer not yet done is always at the head of both its queues and
// everything it waits for comes before it.
//
// What a send waits for follows from the list: every earlier receive of its sender that wrote an element of its slice.
// A receive waits for nothing. Only a copy could destroy an element that has still to leave, and the copies of a list
// are to carry complete sums: the receiver's own part is in one, so the one send that took that part along is over. (So
// two ranks cannot add to each other's partial sums in place. They exchange halves: each adds one and gets the other
// back.) A list in which a copy may destroy something does not pass verify().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// One transfer of a list.
struct Transfer {
    Rank from = 0;
    Rank to = 0;
    Slice slice; ///< an empty one is left out
    Stage stage = Stage::kReduceScatter;
    Combine combine = Combine::kCopy;
    Lane lane = 0;
};

/// Collects transfers and turns them into a schedule.
class FlowList {
public:
    /// `ports[lane]` is what the lane of every rank is attached to; 1..kMaxLanes lanes. ranks >= 2, elements >= 1.
    FlowList(std::string name, Rank ranks, std::int64_t elements, std::vector<Port> ports = {Port{}});

    /// Appends a transfer between two ranks; its slice lies within the vector.
    void add(const Transfer& transfer);
    /// Both ranks add the other's part of the slice to their own: halves cross, each is summed by one end and copied
    /// back by the other, so that every port is busy for one slice in each direction.
    void exchange(Rank a, Rank b, const Slice& slice, Lane lane = 0);

    [[nodiscard]] std::size_t size() const { return transfers_.size(); }
    /// The schedule of everything added so far; the list is empty afterwards.
    [[nodiscard]] std::unique_ptr<const Schedule> finish();

private:
    std::string name_;
    Rank ranks_;
    std::int64_t elements_;
    std::vector<Port> ports_;
    std::vector<Transfer> transfers_;
};

} // namespace railbreak::collective
