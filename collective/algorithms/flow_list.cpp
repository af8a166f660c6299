#include "collective/algorithms/flow_list.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

using Counts = std::array<std::int32_t, kMaxLanes>;

/// A transfer with what its send waits for.
struct Flow {
    Transfer transfer;
    Counts after{};
};

/// Which receives have written the elements of one rank: ranges that were always written together, with the number of
/// leading receives of each lane up to the last that wrote them. Ranges nobody wrote have no entry.
class Written {
public:
    /// Leading receives that cover everything written into the slice.
    [[nodiscard]] Counts needed(const Slice& slice) const {
        Counts counts{};
        for (auto range = first_touching(slice); range != ranges_.end() && range->first < slice.end(); ++range) {
            for (std::size_t lane = 0; lane < counts.size(); ++lane) {
                counts[lane] = std::max(counts[lane], range->second.counts[lane]);
            }
        }
        return counts;
    }

    /// Receive number `count` (from 1) of a lane writes the slice.
    void write(const Slice& slice, Lane lane, std::int32_t count) {
        cut(slice.offset);
        cut(slice.end());
        std::int64_t at = slice.offset;
        for (auto range = ranges_.lower_bound(at); at < slice.end();) {
            if (range == ranges_.end() || range->first > at) { // a gap
                const std::int64_t end = range == ranges_.end() ? slice.end() : std::min(range->first, slice.end());
                range = ranges_.emplace_hint(range, at, Range{end, {}});
            }
            range->second.counts[static_cast<std::size_t>(lane)] = count;
            at = range->second.end;
            ++range;
        }
    }

private:
    struct Range {
        std::int64_t end = 0;
        Counts counts{};
    };

    [[nodiscard]] std::map<std::int64_t, Range>::const_iterator first_touching(const Slice& slice) const {
        auto range = ranges_.upper_bound(slice.offset);
        if (range != ranges_.begin() && std::prev(range)->second.end > slice.offset) {
            --range;
        }
        return range;
    }

    /// Makes sure that no range reaches across the border.
    void cut(std::int64_t border) {
        const auto after = ranges_.lower_bound(border);
        if (after == ranges_.begin()) {
            return;
        }
        Range& before = std::prev(after)->second;
        if (before.end > border) {
            ranges_.emplace_hint(after, border, before);
            before.end = border;
        }
    }

    std::map<std::int64_t, Range> ranges_; ///< by start
};

class TableSchedule final : public Schedule {
public:
    TableSchedule(std::string name, Rank ranks, std::int64_t elements, std::vector<Port> ports,
                  std::vector<Transfer> transfers)
        : name_(std::move(name)), ranks_(ranks), elements_(elements), ports_(std::move(ports)),
          queues_(static_cast<std::size_t>(ranks) * ports_.size() * 2) {
        std::vector<Written> written(static_cast<std::size_t>(ranks));
        flows_.reserve(transfers.size());
        for (const Transfer& transfer : transfers) {
            const auto number = static_cast<std::int32_t>(flows_.size());
            flows_.push_back({transfer, written[static_cast<std::size_t>(transfer.from)].needed(transfer.slice)});
            queues_[queue(transfer.from, transfer.lane, false)].push_back(number);
            std::vector<std::int32_t>& receives = queues_[queue(transfer.to, transfer.lane, true)];
            receives.push_back(number);
            written[static_cast<std::size_t>(transfer.to)].write(transfer.slice, transfer.lane,
                                                                 static_cast<std::int32_t>(receives.size()));
        }
    }

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Rank ranks() const override { return ranks_; }
    [[nodiscard]] Lane lanes() const override { return static_cast<Lane>(ports_.size()); }
    [[nodiscard]] Port port(Rank, Lane lane) const override { return ports_[static_cast<std::size_t>(lane)]; }
    [[nodiscard]] std::int64_t elements() const override { return elements_; }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override {
        return std::ssize(queues_[queue(rank, lane, false)]);
    }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return std::ssize(queues_[queue(rank, lane, true)]);
    }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        const Flow& flow = flow_at(queue(rank, lane, false), index);
        Step step = step_of(flow.transfer, flow.transfer.to);
        std::copy(flow.after.begin(), flow.after.end(), step.after.begin());
        return step;
    }
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        const Flow& flow = flow_at(queue(rank, lane, true), index);
        return step_of(flow.transfer, flow.transfer.from);
    }

private:
    [[nodiscard]] std::size_t queue(Rank rank, Lane lane, bool receive) const {
        return (static_cast<std::size_t>(rank) * ports_.size() + static_cast<std::size_t>(lane)) * 2 +
               (receive ? 1 : 0);
    }
    [[nodiscard]] const Flow& flow_at(std::size_t queue, std::int64_t index) const {
        return flows_[static_cast<std::size_t>(queues_[queue][static_cast<std::size_t>(index)])];
    }
    [[nodiscard]] static Step step_of(const Transfer& transfer, Rank peer) {
        return {peer, transfer.slice, transfer.stage, transfer.combine, {}};
    }

    std::string name_;
    Rank ranks_;
    std::int64_t elements_;
    std::vector<Port> ports_;
    std::vector<Flow> flows_;
    std::vector<std::vector<std::int32_t>> queues_; ///< numbers of flows
};

} // namespace

FlowList::FlowList(std::string name, Rank ranks, std::int64_t elements, std::vector<Port> ports)
    : name_(std::move(name)), ranks_(ranks), elements_(elements), ports_(std::move(ports)) {
    RB_CHECK(ranks >= 2 && elements >= 1, "at least two ranks and one element");
    RB_CHECK(!ports_.empty() && ports_.size() <= static_cast<std::size_t>(kMaxLanes), "one to kMaxLanes lanes");
}

void FlowList::add(const Transfer& transfer) {
    RB_CHECK(transfer.from >= 0 && transfer.from < ranks_ && transfer.to >= 0 && transfer.to < ranks_ &&
                 transfer.from != transfer.to,
             "a transfer joins two ranks");
    RB_CHECK(transfer.slice.offset >= 0 && transfer.slice.count >= 0 && transfer.slice.end() <= elements_,
             "a slice lies within the vector");
    RB_CHECK(transfer.lane >= 0 && transfer.lane < std::ssize(ports_), "a lane of the list");
    RB_CHECK(transfers_.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
             "a table holds up to 2^31 flows");
    if (transfer.slice.count > 0) {
        transfers_.push_back(transfer);
    }
}

void FlowList::exchange(Rank a, Rank b, const Slice& slice, Lane lane) {
    const Slice front{slice.offset, (slice.count + 1) / 2};
    const Slice back{front.end(), slice.count - front.count};
    add({a, b, front, Stage::kExchange, Combine::kReduce, lane});
    add({b, a, back, Stage::kExchange, Combine::kReduce, lane});
    add({b, a, front, Stage::kExchange, Combine::kCopy, lane});
    add({a, b, back, Stage::kExchange, Combine::kCopy, lane});
}

std::unique_ptr<const Schedule> FlowList::finish() {
    return std::make_unique<TableSchedule>(std::move(name_), ranks_, elements_, std::move(ports_),
                                           std::exchange(transfers_, {}));
}

} // namespace railbreak::collective
