// Each flow has a box in the row of the sending side and one in the row of the receiving side. The scale is chosen so
// that a typical flow is wide enough for its label, within limits; boxes of which several would share a pixel are
// merged. When that still leaves too many, half of the ranks go, until it fits.
#include "harness/planner/gantt_layout.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/units.hpp"
#include "harness/planner/facts.hpp"

namespace railbreak::planner {

namespace {

using collective::Lane;
using collective::Rank;
using collective::SimulatedFlow;

constexpr double kLeastWidth = 1000;
constexpr double kTypicalBox = 48;
constexpr Rank kLeastRanks = 2;

using SliceKey = std::pair<std::int64_t, std::int64_t>;
using SliceNumbers = std::map<SliceKey, std::int64_t>;
using RowKey = std::tuple<Rank, Lane, int>; // int: 0 sends, 1 receives

SliceNumbers number_slices(const std::vector<SimulatedFlow>& flows) {
    SliceNumbers numbers;
    for (const SimulatedFlow& flow : flows) {
        numbers.try_emplace({flow.slice.offset, flow.slice.count});
    }
    std::int64_t next = 0;
    for (auto& [slice, number] : numbers) {
        number = next++;
    }
    return numbers;
}

double choose_width(const std::vector<SimulatedFlow>& flows, Nanoseconds horizon, double most) {
    std::vector<std::int64_t> lengths;
    for (const SimulatedFlow& flow : flows) {
        lengths.push_back(std::max<std::int64_t>(1, (flow.end - flow.start).count()));
    }
    if (lengths.empty()) {
        return kLeastWidth;
    }
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::ranges::nth_element(lengths, middle);
    const double width = kTypicalBox * static_cast<double>(horizon.count()) / static_cast<double>(*middle);
    return std::clamp(width, kLeastWidth, std::max(most, kLeastWidth));
}

std::string title_of(const SimulatedFlow& flow, std::int64_t slice) {
    return fmt::format("{}, the receiver {}\n"
                       "rank {} ({}) to rank {} ({}), lane {}\n"
                       "slice {}: elements {} to {} ({})\n"
                       "{} to {} (takes {})\n"
                       "send {} of rank {}, receive {} of rank {}",
                       collective::to_string(flow.stage),
                       flow.combine == collective::Combine::kReduce ? "adds" : "overwrites", flow.from,
                       port_text(flow.from_port), flow.to, port_text(flow.to_port), flow.lane, slice, flow.slice.offset,
                       flow.slice.end() - 1, flow.slice.count, to_string(flow.start), to_string(flow.end),
                       to_string(flow.end - flow.start), flow.send_index, flow.from, flow.receive_index, flow.to);
}

/// Builds rows and boxes for a choice of ranks.
class LayoutBuilder {
public:
    LayoutBuilder(GanttLayout& layout, const SliceNumbers& slices, double narrow)
        : layout_(layout), slices_(slices), narrow_(narrow) {}

    void build(const std::vector<SimulatedFlow>& flows) {
        const std::set<Rank> shown(layout_.ranks.begin(), layout_.ranks.end());
        for (const SimulatedFlow& flow : flows) {
            const bool from = shown.contains(flow.from);
            const bool to = shown.contains(flow.to);
            layout_.whole_flows += from && to ? 1 : 0;
            if (from) {
                rows_[{flow.from, flow.lane, 0}].push_back(&flow);
            }
            if (to) {
                rows_[{flow.to, flow.lane, 1}].push_back(&flow);
            }
        }
        for (auto& [key, row_flows] : rows_) {
            const bool sending = std::get<2>(key) == 0;
            const SimulatedFlow& first = *row_flows.front();
            layout_.rows.push_back(
                {std::get<0>(key), std::get<1>(key), sending, sending ? first.from_port : first.to_port});
            std::ranges::sort(row_flows, [](const SimulatedFlow* left, const SimulatedFlow* right) {
                return std::tie(left->start, left->end, left->send_index) <
                       std::tie(right->start, right->end, right->send_index);
            });
            for (const SimulatedFlow* flow : row_flows) {
                add(*flow, sending);
            }
        }
    }

private:
    [[nodiscard]] double pixels(Nanoseconds time) const {
        return static_cast<double>(time.count()) / static_cast<double>(layout_.horizon.count()) * layout_.width;
    }

    void add(const SimulatedFlow& flow, bool sending) {
        const std::size_t row = layout_.rows.size() - 1;
        if (!layout_.boxes.empty()) {
            GanttBox& last = layout_.boxes.back();
            // Only a run of narrow boxes that together stay narrow: a merged box must not look like one long flow.
            if (last.row == row && pixels(flow.end - last.start) < narrow_) {
                last.end = std::max(last.end, flow.end);
                last.mixed = last.mixed || last.stage != flow.stage;
                ++last.flows;
                last.label.clear();
                last.title = fmt::format("{} flows, {}\n{} to {}", last.flows,
                                         last.mixed ? "several stages" : collective::to_string(last.stage),
                                         to_string(last.start), to_string(last.end));
                return;
            }
        }
        const std::int64_t slice = slices_.at({flow.slice.offset, flow.slice.count});
        layout_.boxes.push_back(
            {.row = row,
             .start = flow.start,
             .end = flow.end,
             .stage = flow.stage,
             .label = fmt::format("{}{}{}", slice, sending ? "\u2192" : "\u2190", sending ? flow.to : flow.from),
             .title = title_of(flow, slice)});
    }

    GanttLayout& layout_;
    const SliceNumbers& slices_;
    double narrow_;
    std::map<RowKey, std::vector<const SimulatedFlow*>> rows_;
};

} // namespace

std::vector<Rank> choose_ranks(const collective::Topology& topology, std::size_t most) {
    std::vector<Rank> chosen;
    for (const bool slow : {true, false}) {
        for (Rank rank = 0; rank < topology.ranks() && chosen.size() < most; ++rank) {
            if (is_slow(topology.server(topology.server_of(rank))) == slow) {
                chosen.push_back(rank);
            }
        }
    }
    std::ranges::sort(chosen);
    return chosen;
}

GanttLayout lay_out(const collective::Topology& topology, const std::vector<SimulatedFlow>& flows,
                    Nanoseconds least_horizon, const LayoutLimits& limits) {
    const SliceNumbers slices = number_slices(flows);
    Nanoseconds horizon = std::max(least_horizon, Nanoseconds(1));
    for (const SimulatedFlow& flow : flows) {
        horizon = std::max(horizon, flow.end);
    }
    for (std::size_t count = limits.ranks;; count /= 2) {
        GanttLayout layout;
        layout.ranks = choose_ranks(topology, count);
        layout.horizon = horizon;
        layout.width = choose_width(flows, horizon, limits.width);
        LayoutBuilder(layout, slices, limits.narrow).build(flows);
        if (layout.boxes.size() <= limits.boxes || count / 2 < kLeastRanks) {
            return layout;
        }
    }
}

} // namespace railbreak::planner
