// One algorithm over time. Every iteration is a bar as wide as it lasted and as high as well, with the mark of its
// algorithm on top. Above the plot run the phases and, one lane each, the faults; below the lanes the area in which a
// fault was in force is shaded.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "reports/html/charts.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

using record::InjectionRow;
using record::IterationRow;

namespace {

constexpr double kTimelineHeight = 240; // of the plot
constexpr double kPhaseBand = 22;
constexpr double kLane = 20;
constexpr std::size_t kMostLanes = 6;
constexpr std::size_t kMostBars = 400;

/// A stretch of iterations of one phase.
struct Stretch {
    std::string_view phase;
    std::int64_t from = 0;
    std::int64_t to = 0;
};

std::vector<Stretch> stretches(const std::vector<const IterationRow*>& iterations) {
    std::vector<Stretch> found;
    for (const IterationRow* row : iterations) {
        if (found.empty() || found.back().phase != row->phase) {
            found.push_back({row->phase, row->started_at, row->started_at});
        }
        found.back().to = std::max(found.back().to, row->started_at + row->duration_ns);
    }
    return found;
}

/// The end of what is known of a fault.
std::int64_t end_of(const InjectionRow& row, std::int64_t otherwise) {
    return row.restored_at > 0 ? row.restored_at : row.reverted_at > 0 ? row.reverted_at : otherwise;
}

class Timeline {
public:
    Timeline(const View& view, const AlgorithmView& algorithm)
        : view_(view), algorithm_(algorithm), stretches_(stretches(algorithm.iterations)),
          recovery_(algorithm.recovery && algorithm.recovery->iteration != nullptr ? algorithm.recovery : std::nullopt),
          shown_(thinned(algorithm.iterations, kMostBars)), series_(series_class(algorithm.series)) {
        find_range();
        assign_lanes();
        plot_.emplace(fmt::format("timeline-{}", algorithm.series), kFigureWidth,
                      margins().top + kTimelineHeight + margins().bottom, margins());
        x_ = {0, static_cast<double>(to_ - from_), plot_->left(), plot_->right()};
        y_ = {0, highest(), plot_->bottom(), plot_->top()};
    }

    Figure figure() {
        plot_->y_axis(y_, time_unit(y_.high).nanoseconds,
                      fmt::format("time of an AllReduce ({})", time_unit(y_.high).name));
        const Scale since_origin{x_.low + static_cast<double>(from_ - view_.origin),
                                 x_.high + static_cast<double>(from_ - view_.origin), x_.from, x_.to};
        plot_->x_axis(since_origin, 1e9, "time since the run began (s)", true);
        draw_faults();
        draw_phases();
        draw_bars();
        draw_bounds();
        draw_marks();
        draw_recovery();
        return {.id = fmt::format("timeline-{}", algorithm_.series),
                .kind = "timeline",
                .title = fmt::format("{} over time", algorithm_.name),
                .how_to_read = how_to_read(),
                .legend = legend(),
                .picture = plot_->element(fmt::format("{} over time", algorithm_.name), description()),
                .data = data_table()};
    }

private:
    using Layer = Plot::Layer;

    [[nodiscard]] Plot::Margins margins() const {
        return {
            .left = 64, .right = 18, .top = 8 + kPhaseBand + kLane * static_cast<double>(lanes_) + 10, .bottom = 42};
    }
    [[nodiscard]] double x_of(std::int64_t at) const { return x_(static_cast<double>(at - from_)); }

    [[nodiscard]] double width_of(const IterationRow& row) const {
        return std::max(x_of(row.started_at + row.duration_ns) - x_of(row.started_at), 1.0);
    }

    void find_range() {
        from_ = std::numeric_limits<std::int64_t>::max();
        to_ = 0;
        for (const IterationRow* row : algorithm_.iterations) {
            from_ = std::min(from_, row->started_at);
            to_ = std::max(to_, row->started_at + row->duration_ns);
        }
        for (const InjectionRow* row : algorithm_.injections) {
            if (row->ordered_at > 0) {
                from_ = std::min(from_, row->ordered_at);
                to_ = std::max(to_, end_of(*row, row->ordered_at));
            }
        }
        from_ = std::min(from_, to_);
        const std::int64_t gap = std::max<std::int64_t>((to_ - from_) / 60, 1);
        from_ -= gap;
        to_ += gap;
    }

    void assign_lanes() {
        std::vector<std::int64_t> ends; // of each lane
        for (const InjectionRow* row : algorithm_.injections) {
            auto lane =
                std::find_if(ends.begin(), ends.end(), [&](std::int64_t end) { return end <= row->ordered_at; });
            if (lane == ends.end()) {
                lane = ends.insert(ends.end(), 0);
            }
            *lane = end_of(*row, to_);
            lane_of_.push_back(static_cast<std::size_t>(lane - ends.begin()));
        }
        lanes_ = std::min(ends.size(), kMostLanes);
    }

    [[nodiscard]] double highest() const {
        std::int64_t most = 1;
        for (const IterationRow* row : shown_) {
            most = std::max(most, row->duration_ns);
        }
        for (const Stretch& stretch : stretches_) {
            for (const std::string_view model : {"exclusive", "fluid"}) {
                const auto* bound = record::binding_bound(view_.data, algorithm_.name, stretch.phase, model);
                most = std::max(most, bound != nullptr ? bound->time_ns : 0);
            }
        }
        return static_cast<double>(most) * 1.12;
    }

    void draw_phases() {
        for (const Stretch& stretch : stretches_) {
            const double x = x_of(stretch.from);
            const double width = std::max(x_of(stretch.to) - x, 1.0);
            const std::string title =
                fmt::format("{}: {} to {}", stretch.phase, offset(view_, stretch.from), offset(view_, stretch.to));
            plot_->rectangle(Layer::kMoving, x, 8, width, kPhaseBand - 4, fmt::format("phase p-{}", stretch.phase),
                             title);
            if (width > kLetterWidth * static_cast<double>(stretch.phase.size()) + 10) {
                plot_->text(Layer::kMoving, x + 6, 8 + 13, "phasename", stretch.phase);
            }
        }
    }

    void draw_faults() {
        for (std::size_t i = 0; i < algorithm_.injections.size(); ++i) {
            const InjectionRow& row = *algorithm_.injections[i];
            if (row.ordered_at == 0) {
                continue;
            }
            const std::int64_t end = end_of(row, to_);
            const std::int64_t on = row.observed_at > 0 ? row.observed_at : row.applied_at > 0 ? row.applied_at : end;
            const std::int64_t off = row.reverted_at > 0 ? row.reverted_at : end;
            const double height = plot_->bottom() - plot_->top();
            const std::string title = fmt::format(
                "{} ({} on {}): in force {}, from {} to {}", row.name, row.kind, host_name(view_.data, row.host),
                duration(static_cast<double>(off - on)), offset(view_, on), offset(view_, off));
            for (const auto& [from, to] : {std::pair(row.ordered_at, on), std::pair(off, end)}) {
                if (to > from) {
                    plot_->rectangle(Layer::kMoving, x_of(from), plot_->top(), x_of(to) - x_of(from), height,
                                     "faultedge", {}, "faults");
                }
            }
            plot_->rectangle(Layer::kMoving, x_of(on), plot_->top(), x_of(off) - x_of(on), height, "fault", title,
                             "faults");
            if (lane_of_[i] < lanes_) {
                const double y = 8 + kPhaseBand + kLane * static_cast<double>(lane_of_[i]);
                const double width = x_of(end) - x_of(row.ordered_at);
                plot_->rectangle(Layer::kMoving, x_of(row.ordered_at), y, width, kLane - 4, "faultbar", title,
                                 "faults");
                if (width > kLetterWidth * static_cast<double>(row.name.size()) + 10) {
                    plot_->text(Layer::kMoving, x_of(row.ordered_at) + 6, y + 12, "faultname", row.name, "faults");
                }
            }
        }
    }

    void draw_bounds() {
        for (const Stretch& stretch : stretches_) {
            for (const std::string_view model : {"exclusive", "fluid"}) {
                const auto* bound = record::binding_bound(view_.data, algorithm_.name, stretch.phase, model);
                if (bound != nullptr) {
                    const double y = y_(static_cast<double>(bound->time_ns));
                    plot_->line(Layer::kMoving, x_of(stretch.from), y, x_of(stretch.to), y,
                                fmt::format("bound {}", model),
                                fmt::format("lower bound, {} ports ({}): {}", model, bound->name,
                                            duration(static_cast<double>(bound->time_ns))),
                                fmt::format("bound-{}", model));
                }
            }
        }
    }

    void draw_bars() {
        for (const IterationRow* row : shown_) {
            const double y = y_(static_cast<double>(row->duration_ns));
            plot_->rectangle(Layer::kMoving, x_of(row->started_at), y, width_of(*row), plot_->bottom() - y,
                             fmt::format("bar {}", series_));
        }
    }

    void draw_marks() {
        for (const IterationRow* row : shown_) {
            const auto time = static_cast<double>(row->duration_ns);
            const std::string title = fmt::format("{} {} #{}: {} ({})\nfrom {}\n{}", algorithm_.name, row->phase,
                                                  row->iteration, duration(time), exact_duration(row->duration_ns),
                                                  offset(view_, row->started_at), outcome_of(*row, view_.simulated));
            const bool right = is_right(*row);
            const std::size_t shape = right ? algorithm_.series : row->error.empty() ? kWrongShape : kFailedShape;
            plot_->mark(Layer::kMoving, shape, x_of(row->started_at) + width_of(*row) / 2, y_(time),
                        right ? series_ : "bad", title);
        }
    }

    void draw_recovery() {
        if (!recovery_) {
            return;
        }
        const std::int64_t at = recovery_->iteration->started_at + recovery_->iteration->duration_ns;
        const std::string text =
            fmt::format("back to normal {} after the fault", duration(static_cast<double>(recovery_->time_ns)));
        plot_->line(Layer::kMoving, x_of(at), plot_->top() - 8, x_of(at), plot_->bottom(), "recovery", text,
                    "recovery");
        const bool room = x_of(at) + kLetterWidth * static_cast<double>(text.size()) < plot_->right();
        plot_->text(Layer::kMoving, x_of(at) + (room ? 6 : -6), plot_->top() + 6,
                    room ? "recoveryname" : "recoveryname end", text, "recovery");
    }

    [[nodiscard]] std::string how_to_read() const {
        std::string text = "A bar is one AllReduce: as wide as it lasted, and as high. The shaded part is when a fault "
                           "was in force, hatched where it was being put on or taken off.";
        if (recovery_) {
            text += fmt::format(" Back to normal means right and at most {} % above the steady median.",
                                plain(100.0 * recovery_->band / scenarios::kMillion));
        }
        return text + thinning_note(shown_.size(), algorithm_.iterations.size());
    }

    [[nodiscard]] std::string description() const {
        std::string text;
        for (const record::PhaseStatistics& entry : view_.statistics) {
            if (entry.algorithm == algorithm_.name && entry.time_median_ns) {
                text += fmt::format("{}: median {} of {}. ", entry.phase, duration(*entry.time_median_ns),
                                    counted(entry.iterations, "iteration"));
            }
        }
        return text + "The table below the chart has every number.";
    }

    [[nodiscard]] std::vector<LegendEntry> legend() const {
        using Swatch = LegendEntry::Swatch;
        std::vector<LegendEntry> entries{{"iteration", Swatch::kMark, series_, algorithm_.series}};
        const auto any = [&](auto predicate) { return std::any_of(shown_.begin(), shown_.end(), predicate); };
        if (any([](const auto* row) { return row->error.empty() && !row->correct; })) {
            entries.push_back({"wrong result", Swatch::kMark, "bad", kWrongShape});
        }
        if (any([](const auto* row) { return !row->error.empty(); })) {
            entries.push_back({"failed", Swatch::kMark, "bad", kFailedShape});
        }
        if (!algorithm_.injections.empty()) {
            entries.push_back({"fault in force", Swatch::kArea, "fault", 0, "faults"});
        }
        for (const std::string_view model : {"exclusive", "fluid"}) {
            const auto has = [&](const Stretch& stretch) {
                return record::binding_bound(view_.data, algorithm_.name, stretch.phase, model) != nullptr;
            };
            if (std::any_of(stretches_.begin(), stretches_.end(), has)) {
                entries.push_back({fmt::format("lower bound, {} ports", model), Swatch::kLine,
                                   fmt::format("bound {}", model), 0, fmt::format("bound-{}", model)});
            }
        }
        if (recovery_) {
            entries.push_back({"back to normal", Swatch::kLine, "recovery", 0, "recovery"});
        }
        return entries;
    }

    [[nodiscard]] Element data_table() const {
        Table table(fmt::format("Iterations of {}{}", algorithm_.name,
                                shown_.size() < algorithm_.iterations.size() ? " (thinned out)" : ""),
                    {{"phase"}, {"no.", true}, {"began at (s)", true}, {"took (ms)", true}, {"result"}, {"schedule"}});
        for (const IterationRow* row : shown_) {
            const auto began = static_cast<double>(row->started_at - view_.origin);
            table.add({row->phase, Cell(std::to_string(row->iteration), "", row->iteration),
                       Cell(figure_text(began, 1e9), exact_duration(row->started_at - view_.origin), began),
                       Cell(figure_text(static_cast<double>(row->duration_ns), 1e6), exact_duration(row->duration_ns),
                            static_cast<double>(row->duration_ns)),
                       outcome_of(*row, view_.simulated), row->schedule});
        }
        return table.folded(fmt::format("Data: {}", counted(static_cast<std::int64_t>(shown_.size()), "iteration")));
    }
    static std::string figure_text(double value, double unit) { return html::figure(value, unit, 3); }

    const View& view_;
    const AlgorithmView& algorithm_;
    std::vector<Stretch> stretches_;
    std::optional<analyse::Recovery> recovery_;
    std::vector<const IterationRow*> shown_;
    std::string series_;
    std::int64_t from_ = 0; ///< left end of the time axis
    std::int64_t to_ = 0;
    std::vector<std::size_t> lane_of_; ///< by injection
    std::size_t lanes_ = 0;
    std::optional<Plot> plot_;
    Scale x_; ///< from nanoseconds after from_
    Scale y_;
};

} // namespace

Figure timeline(const View& view, const AlgorithmView& algorithm) {
    return Timeline(view, algorithm).figure();
}

} // namespace railbreak::reports::html
