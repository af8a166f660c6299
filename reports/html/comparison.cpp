// The charts that set algorithms and phases side by side: one row for each, grouped by phase, so that what ran under
// the same conditions stands together.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "reports/html/charts.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

using record::PhaseStatistics;

namespace {

constexpr double kLine = 30;
constexpr double kHead = 26; // of a group of rows
constexpr double kLineNames = 170;
constexpr std::size_t kMostLines = 60;
constexpr std::size_t kMostPoints = 200; // of a row
constexpr std::size_t kBoxPoints = 5;    // from so many on, quartiles say something

constexpr std::array<std::string_view, 3> kPhases{"steady", "degraded", "recovered"};

/// One row of a chart, or the head of a group.
struct Line {
    const PhaseStatistics* entry = nullptr; ///< none: a head
    std::string_view phase;
    std::size_t series = 0;
    double y = 0; ///< middle
};

std::size_t series_of(const View& view, std::string_view algorithm) {
    const auto found = std::find_if(view.algorithms.begin(), view.algorithms.end(),
                                    [&](const AlgorithmView& other) { return other.name == algorithm; });
    return found != view.algorithms.end() ? found->series : 0;
}

/// The rows with a time, by phase; `bottom` becomes the height that they take.
std::vector<Line> lines_of(const View& view, double top, double& bottom) {
    std::vector<Line> lines;
    bottom = top;
    std::size_t rows = 0;
    for (const std::string_view phase : kPhases) {
        bool headed = false;
        for (const PhaseStatistics& entry : view.statistics) {
            if (entry.phase != phase || !entry.time_median_ns || rows == kMostLines) {
                continue;
            }
            if (!headed) {
                lines.push_back({nullptr, phase, 0, bottom + kHead / 2});
                bottom += kHead;
                headed = true;
            }
            lines.push_back({&entry, phase, series_of(view, entry.algorithm), bottom + kLine / 2});
            bottom += kLine;
            ++rows;
        }
    }
    return lines;
}

/// Heads and names of the rows, left of the plot.
void draw_names(Plot& plot, const std::vector<Line>& lines) {
    for (const Line& line : lines) {
        if (line.entry == nullptr) {
            plot.text(Plot::Layer::kFront, 8, line.y + 6, "grouphead", line.phase);
            plot.line(Plot::Layer::kBehind, 8, line.y - kHead / 2 + 2, plot.right(), line.y - kHead / 2 + 2,
                      "groupline");
            continue;
        }
        std::string name = clean(line.entry->algorithm);
        if (name.size() > 22) {
            name = name.substr(0, 20) + "..";
        }
        plot.mark(Plot::Layer::kFront, line.series, 16, line.y, series_class(line.series), line.entry->algorithm);
        plot.text(Plot::Layer::kFront, 28, line.y + 4, "rowname", name);
    }
}

std::string left_out(const View& view, const std::vector<Line>& lines) {
    const auto drawn =
        std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.entry != nullptr; });
    const auto all = std::count_if(view.statistics.begin(), view.statistics.end(), [](const PhaseStatistics& entry) {
        return entry.time_median_ns && std::find(kPhases.begin(), kPhases.end(), entry.phase) != kPhases.end();
    });
    return drawn < all ? fmt::format(" The first {} of {} rows are drawn; the table has all.", drawn, all) : "";
}

double bound_ns(const View& view, const PhaseStatistics& entry, std::string_view model) {
    const auto* bound = record::binding_bound(view.data, entry.algorithm, entry.phase, model);
    return bound != nullptr ? static_cast<double>(bound->time_ns) : 0;
}

void draw_overhead(const View& view, Plot& plot, const Line& line, const Scale& x) {
    const PhaseStatistics& entry = *line.entry;
    const double median = *entry.time_median_ns;
    const std::string series = series_class(line.series);
    const std::string text = entry.overhead_exclusive || entry.overhead_fluid
                                 ? fmt::format("{}  \u00B7  {} exclusive, {} fluid", duration(median),
                                               times(entry.overhead_exclusive), times(entry.overhead_fluid))
                                 : duration(median);
    const std::string title =
        fmt::format("{} {}: median {}, {} to {}\n{} of the exclusive bound, {} of the fluid bound", entry.algorithm,
                    entry.phase, duration(median), duration(*entry.time_min_ns), duration(*entry.time_max_ns),
                    times(entry.overhead_exclusive), times(entry.overhead_fluid));
    plot.rectangle(Plot::Layer::kMoving, x(0), line.y - 7, x(median) - x(0), 14, fmt::format("bar {}", series), {},
                   entry.algorithm);
    plot.line(Plot::Layer::kMoving, x(*entry.time_min_ns), line.y, x(*entry.time_max_ns), line.y, "range", {},
              entry.algorithm);
    plot.mark(Plot::Layer::kMoving, line.series, x(median), line.y, series, title, entry.algorithm);
    double end = std::max(median, *entry.time_max_ns);
    for (const std::string_view model : {"exclusive", "fluid"}) {
        if (const double bound = bound_ns(view, entry, model); bound > 0) {
            plot.line(Plot::Layer::kMoving, x(bound), line.y - 12, x(bound), line.y + 12,
                      fmt::format("bound {}", model), fmt::format("lower bound, {} ports: {}", model, duration(bound)),
                      fmt::format("bound-{}", model));
            end = std::max(end, bound);
        }
    }
    plot.text(Plot::Layer::kFront, x(end) + 10, line.y + 4, "value", text, entry.algorithm);
}

std::vector<LegendEntry> algorithm_legend(const View& view) {
    std::vector<LegendEntry> entries;
    for (const AlgorithmView& algorithm : view.algorithms) {
        if (!algorithm.iterations.empty()) {
            entries.push_back({algorithm.name, LegendEntry::Swatch::kMark, series_class(algorithm.series),
                               algorithm.series, algorithm.name});
        }
    }
    return entries;
}

Cell milliseconds(const std::optional<double>& value) {
    return value ? Cell(figure(value, 1e6, 3), exact_duration(std::llround(*value)), *value) : Cell(kNone);
}

Cell ratio(const std::optional<double>& value) {
    return value ? Cell(figure(value, 1, 3), fmt::format("{}", *value), *value) : Cell(kNone);
}

} // namespace

Element phase_table(const View& view) {
    Table table("Times of every algorithm and phase", {{"algorithm"},
                                                       {"phase"},
                                                       {"n", true},
                                                       {"min (ms)", true},
                                                       {"median (ms)", true},
                                                       {"max (ms)", true},
                                                       {"algbw (MB/s)", true},
                                                       {"busbw (MB/s)", true},
                                                       {"vs healthy ring", true},
                                                       {"vs own steady", true},
                                                       {"over exclusive bound", true},
                                                       {"over fluid bound", true},
                                                       {"results"}});
    for (const PhaseStatistics& entry : view.statistics) {
        std::string results = view.simulated ? "proven" : "all right";
        if (entry.wrong > 0 || entry.failed > 0) {
            results = fmt::format("{}{}{}", entry.wrong > 0 ? fmt::format("{} wrong", entry.wrong) : "",
                                  entry.wrong > 0 && entry.failed > 0 ? ", " : "",
                                  entry.failed > 0 ? fmt::format("{} failed", entry.failed) : "");
        }
        Cell outcome(results);
        outcome.css = entry.wrong > 0 || entry.failed > 0 ? "bad" : "";
        const auto megabytes = [](const std::optional<double>& value) {
            return value ? Cell(figure(value, 1e6, 2), fmt::format("{:.0f} byte/s", *value), *value) : Cell(kNone);
        };
        table.add({entry.algorithm, entry.phase, Cell(std::to_string(entry.iterations), "", entry.iterations),
                   milliseconds(entry.time_min_ns), milliseconds(entry.time_median_ns), milliseconds(entry.time_max_ns),
                   megabytes(entry.algbw_bytes_per_s), megabytes(entry.busbw_bytes_per_s), ratio(entry.vs_healthy),
                   ratio(entry.vs_steady), ratio(entry.overhead_exclusive), ratio(entry.overhead_fluid), outcome});
    }
    return table.element();
}

Figure overhead(const View& view) {
    double bottom = 0;
    const std::vector<Line> lines = lines_of(view, 8, bottom);
    double most = 1;
    for (const Line& line : lines) {
        if (line.entry != nullptr) {
            most = std::max({most, *line.entry->time_max_ns, bound_ns(view, *line.entry, "exclusive"),
                             bound_ns(view, *line.entry, "fluid")});
        }
    }
    Plot plot("overhead", kFigureWidth, bottom + 46, {.left = kLineNames, .right = 18, .top = 8, .bottom = 46});
    const Scale x{0, most * 1.5, plot.left(), plot.right()};
    const TimeUnit unit = time_unit(most);
    plot.x_axis(x, unit.nanoseconds, fmt::format("median time of an AllReduce ({})", unit.name));
    draw_names(plot, lines);
    for (const Line& line : lines) {
        if (line.entry != nullptr) {
            draw_overhead(view, plot, line, x);
        }
    }
    std::vector<LegendEntry> legend = algorithm_legend(view);
    for (const std::string_view model : {"exclusive", "fluid"}) {
        legend.push_back({fmt::format("lower bound, {} ports", model), LegendEntry::Swatch::kLine,
                          fmt::format("bound {}", model), 0, fmt::format("bound-{}", model)});
    }
    legend.push_back({"fastest to slowest", LegendEntry::Swatch::kLine, "range"});
    return {.id = "overhead",
            .kind = "overhead",
            .title = "Time and what is best possible",
            .how_to_read = "The nearer a bar ends to its lower bound, the less there is left to gain. Bounds are for "
                           "the bandwidths that were measured in this run: exclusive ports carry one flow at a time, "
                           "fluid ports share." +
                           left_out(view, lines),
            .legend = std::move(legend),
            .picture = plot.element("Median times beside their lower bounds", "Every number is in the table of times."),
            .data = Element()};
}

namespace {

/// Times of an entry that went well, ascending.
std::vector<double> times_of(const View& view, const PhaseStatistics& entry) {
    std::vector<double> values;
    for (const record::IterationRow& row : view.data.iterations) {
        if (row.algorithm == entry.algorithm && row.phase == entry.phase && row.error.empty() && row.duration_ns > 0) {
            values.push_back(static_cast<double>(row.duration_ns));
        }
    }
    std::sort(values.begin(), values.end());
    return values;
}

/// Between the two nearest of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double per_cent(double value, double median) {
    return 100 * (value / median - 1);
}

void draw_distribution(Plot& plot, const Line& line, const std::vector<double>& values, const Scale& x) {
    const PhaseStatistics& entry = *line.entry;
    const double median = *entry.time_median_ns;
    const std::string series = series_class(line.series);
    const auto x_of = [&](double value) { return x(per_cent(value, median)); };
    if (values.size() >= kBoxPoints) {
        const double low = quantile(values, 0.25);
        const double high = quantile(values, 0.75);
        plot.rectangle(Plot::Layer::kMoving, x_of(low), line.y - 9, x_of(high) - x_of(low), 18,
                       fmt::format("box {}", series),
                       fmt::format("{} {}: half of the iterations between {} and {}", entry.algorithm, entry.phase,
                                   duration(low), duration(high)),
                       entry.algorithm);
    }
    plot.line(Plot::Layer::kMoving, x_of(values.front()), line.y, x_of(values.back()), line.y, "range", {},
              entry.algorithm);
    // Evenly over the ranks of large samples, with both ends.
    const std::size_t drawn = std::min(values.size(), kMostPoints);
    for (std::size_t i = 0; i < drawn; ++i) {
        const double value = values[drawn > 1 ? i * (values.size() - 1) / (drawn - 1) : 0];
        const double jitter = drawn > 3 ? (static_cast<double>(i * 7 % 5) - 2) * 2.5 : 0;
        plot.mark(Plot::Layer::kMoving, line.series, x_of(value), line.y + jitter, series + " point",
                  fmt::format("{} {}: {} ({:+.2f} %)", entry.algorithm, entry.phase, duration(value),
                              per_cent(value, median)),
                  entry.algorithm);
    }
    plot.line(Plot::Layer::kMoving, x(0), line.y - 11, x(0), line.y + 11, "median", {}, entry.algorithm);
    plot.text(Plot::Layer::kFront, plot.right() + 10, line.y + 4, "value",
              fmt::format("{}  n={}", duration(median), values.size()), entry.algorithm);
}

Element distribution_table(const View& view) {
    Table table("Distribution of iteration times", {{"algorithm"},
                                                    {"phase"},
                                                    {"n", true},
                                                    {"min (ms)", true},
                                                    {"lower quartile (ms)", true},
                                                    {"median (ms)", true},
                                                    {"upper quartile (ms)", true},
                                                    {"max (ms)", true},
                                                    {"spread (%)", true}});
    for (const PhaseStatistics& entry : view.statistics) {
        const std::vector<double> values = times_of(view, entry);
        if (values.empty()) {
            continue;
        }
        const bool quartiles = values.size() >= kBoxPoints;
        const double spread = 100 * (values.back() - values.front()) / quantile(values, 0.5);
        table.add(
            {entry.algorithm, entry.phase, Cell(std::to_string(values.size()), "", static_cast<double>(values.size())),
             milliseconds(values.front()), quartiles ? milliseconds(quantile(values, 0.25)) : Cell(kNone),
             milliseconds(entry.time_median_ns), quartiles ? milliseconds(quantile(values, 0.75)) : Cell(kNone),
             milliseconds(values.back()), Cell(fmt::format("{:.2f}", spread), fmt::format("{}", spread), spread)});
    }
    return table.folded("Data: distribution");
}

} // namespace

Figure distribution(const View& view) {
    double bottom = 0;
    const std::vector<Line> lines = lines_of(view, 8, bottom);
    double low = -1;
    double high = 1;
    for (const Line& line : lines) {
        if (line.entry != nullptr) {
            low = std::min(low, per_cent(*line.entry->time_min_ns, *line.entry->time_median_ns));
            high = std::max(high, per_cent(*line.entry->time_max_ns, *line.entry->time_median_ns));
        }
    }
    Plot plot("distribution", kFigureWidth, bottom + 46, {.left = kLineNames, .right = 150, .top = 8, .bottom = 46});
    const double gap = (high - low) / 40;
    const Scale x{low - gap, high + gap, plot.left(), plot.right()};
    plot.x_axis(x, 1, "distance from the median of its row (%)");
    draw_names(plot, lines);
    for (const Line& line : lines) {
        if (line.entry != nullptr) {
            draw_distribution(plot, line, times_of(view, *line.entry), x);
        }
    }
    return {.id = "distribution",
            .kind = "distribution",
            .title = "How much iterations differ",
            .how_to_read = fmt::format("Each point is one iteration, set against the median of its own row. From {} "
                                       "iterations on a box spans the middle half; of more than {} the points are "
                                       "thinned out evenly, both ends kept.{}",
                                       kBoxPoints, kMostPoints, left_out(view, lines)),
            .legend = algorithm_legend(view),
            .picture = plot.element("Distribution of iteration times", "The table below has the quartiles."),
            .data = distribution_table(view)};
}

} // namespace railbreak::reports::html
