// One chart for each algorithm and phase; runs stand evenly from left to right, oldest first, with a break where there
// was none for unusually long. What changed is told in words first.
#include "reports/html/trend_page.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "reports/html/chart.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/page.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports {

using analyse::ChangePoint;
using analyse::Measure;
using analyse::Trend;
using analyse::TrendPoint;
using analyse::TrendRun;
using analyse::TrendSeries;

namespace html {

namespace {

constexpr double kTrendHeight = 230;   // of the plot
constexpr std::size_t kMostRuns = 400; // the latest

/// "overhead_fluid" -> what an axis calls it.
std::string_view words_of(Measure measure) {
    switch (measure) {
    case Measure::kTime: return "median time of an AllReduce";
    case Measure::kOverheadExclusive: return "median time over the exclusive bound";
    case Measure::kOverheadFluid: return "median time over the fluid bound";
    case Measure::kVsHealthy: return "median time over the healthy ring";
    case Measure::kVsSteady: return "median time over the own steady phase";
    }
    return "";
}

std::string value_text(Measure measure, double value) {
    return measure == Measure::kTime ? duration(value) : times(value);
}

std::string per_cent(double share) {
    return fmt::format("{:+.1f} %", 100 * share);
}

std::string day(const TrendRun& run) {
    return moment(run.started_realtime_ns).substr(0, 10);
}

/// One series being drawn.
class SeriesChart {
public:
    SeriesChart(const Trend& trend, std::size_t series)
        : trend_(trend), series_(trend.series[series]), number_(series),
          first_(trend.runs.size() > kMostRuns ? trend.runs.size() - kMostRuns : 0),
          end_(std::min(trend.runs.size(), series_.points.size())),
          plot_(fmt::format("trend-{}", series), kFigureWidth, 30 + kTrendHeight + 46,
                {.left = 72, .right = 18, .top = 30, .bottom = 46}) {
        find_range();
    }

    Figure figure() {
        const bool time = trend_.measure == Measure::kTime;
        const TimeUnit unit = time ? time_unit(y_.high) : TimeUnit{"\u00D7", 1};
        plot_.y_axis(y_, unit.nanoseconds, fmt::format("{} ({})", time ? "median" : "ratio", unit.name));
        draw_days();
        draw_bands();
        draw_changes();
        draw_points();
        const std::string title = fmt::format("{} {}", series_.algorithm, series_.phase);
        return {.id = fmt::format("trend-{}", number_),
                .kind = "trend",
                .title = title,
                .how_to_read = how_to_read(),
                .legend = legend(),
                .picture = plot_.element(fmt::format("{}: {}", title, words_of(trend_.measure)), summary()),
                .data = data_table()};
    }

    /// What changed, in words.
    [[nodiscard]] std::string summary() const {
        std::string text;
        for (const ChangePoint& change : series_.changes) {
            if (change.first < trend_.runs.size()) {
                text += fmt::format("{}{} from {} on ({} to {}, p = {:.2g})", text.empty() ? "" : "; ",
                                    per_cent(change.change()), day(trend_.runs[change.first]),
                                    value_text(trend_.measure, change.before), value_text(trend_.measure, change.after),
                                    change.p_value);
            }
        }
        return text.empty() ? "no change of level found" : text;
    }

private:
    using Layer = Plot::Layer;

    [[nodiscard]] double x_of(std::size_t run) const {
        const auto shown = static_cast<double>(std::max<std::size_t>(end_ - first_, 1));
        return plot_.left() + (plot_.right() - plot_.left()) * (static_cast<double>(run - first_) + 0.5) / shown;
    }

    void find_range() {
        double low = std::numeric_limits<double>::max();
        double high = std::numeric_limits<double>::lowest();
        const auto take = [&](const std::optional<double>& value) {
            if (value && std::isfinite(*value)) {
                low = std::min(low, *value);
                high = std::max(high, *value);
            }
        };
        for (std::size_t i = first_; i < end_; ++i) {
            take(series_.points[i].value);
            take(series_.points[i].band_low);
            take(series_.points[i].band_high);
        }
        if (low > high) {
            low = 0;
            high = 1;
        }
        const double gap = std::max((high - low) * 0.08, std::abs(high) * 0.005 + 1e-9);
        y_ = {low - gap, high + gap, plot_.bottom(), plot_.top()};
    }

    /// Days below the plot, as many as fit, and the breaks between distant runs.
    void draw_days() {
        const std::size_t shown = end_ - first_;
        const std::size_t step = std::max<std::size_t>(1, (shown + 7) / 8);
        for (std::size_t i = first_; i < end_; ++i) {
            const TrendRun& run = trend_.runs[i];
            if ((i - first_) % step == 0) {
                plot_.line(Layer::kBehind, x_of(i), plot_.bottom(), x_of(i), plot_.bottom() + 5, "base");
                plot_.text(Layer::kBehind, x_of(i), plot_.bottom() + 18, "day", day(run));
            }
            if (i > first_ && (run.gap || run.new_plan)) {
                const double x = (x_of(i - 1) + x_of(i)) / 2;
                plot_.line(Layer::kMoving, x, plot_.top(), x, plot_.bottom(), run.new_plan ? "newplan" : "break",
                           run.new_plan ? fmt::format("another plan from {} on: another experiment", day(run))
                                        : fmt::format("{:.3g} times the usual distance between runs", *run.gap));
            }
        }
        plot_.line(Layer::kBehind, plot_.left(), plot_.bottom(), plot_.right(), plot_.bottom(), "base");
        plot_.text(Layer::kBehind, (plot_.left() + plot_.right()) / 2, plot_.bottom() + 36, "label",
                   "runs, oldest first");
    }

    void draw_bands() {
        const double half =
            (plot_.right() - plot_.left()) / static_cast<double>(std::max<std::size_t>(end_ - first_, 1)) / 2;
        for (std::size_t i = first_; i < end_; ++i) {
            const TrendPoint& point = series_.points[i];
            if (point.band_low && point.band_high) {
                plot_.rectangle(Layer::kMoving, x_of(i) - half, y_(*point.band_high), 2 * half,
                                y_(*point.band_low) - y_(*point.band_high), "band", {}, "band");
            }
            if (point.baseline) {
                plot_.line(Layer::kMoving, x_of(i) - half, y_(*point.baseline), x_of(i) + half, y_(*point.baseline),
                           "baseline", {}, "band");
            }
        }
    }

    void draw_changes() {
        for (const ChangePoint& change : series_.changes) {
            if (change.first <= first_ || change.first >= end_) {
                continue;
            }
            const double x = (x_of(change.first - 1) + x_of(change.first)) / 2;
            const std::string text =
                fmt::format("{} from {}", per_cent(change.change()), day(trend_.runs[change.first]));
            plot_.line(Layer::kMoving, x, plot_.top() - 8, x, plot_.bottom(), "change",
                       fmt::format("{}: {} before, {} after, p = {:.2g}", text,
                                   value_text(trend_.measure, change.before), value_text(trend_.measure, change.after),
                                   change.p_value),
                       "changes");
            const bool room = x + kLetterWidth * static_cast<double>(text.size()) < plot_.right();
            plot_.text(Layer::kMoving, x + (room ? 6 : -6), plot_.top() - 6, room ? "changename" : "changename end",
                       text, "changes");
        }
    }

    void draw_points() {
        std::optional<std::size_t> before;
        for (std::size_t i = first_; i < end_; ++i) {
            const TrendPoint& point = series_.points[i];
            if (!point.value) {
                before.reset();
                continue;
            }
            if (before && !trend_.runs[i].new_plan) {
                plot_.line(Layer::kMoving, x_of(*before), y_(*series_.points[*before].value), x_of(i), y_(*point.value),
                           "thread " + series_class(0));
            }
            before = i;
        }
        for (std::size_t i = first_; i < end_; ++i) {
            const TrendPoint& point = series_.points[i];
            if (!point.value) {
                continue;
            }
            const TrendRun& run = trend_.runs[i];
            const std::string title =
                fmt::format("{}\n{}: {} of {}{}\nverdict {}{}", run.run_id, moment(run.started_realtime_ns),
                            value_text(trend_.measure, *point.value), counted(point.iterations, "iteration"),
                            point.change ? fmt::format(", {} of the baseline{}", per_cent(*point.change),
                                                       point.outside ? ", outside of its band" : "")
                                         : "",
                            run.verdict.empty() ? "none" : run.verdict, run.reason.empty() ? "" : ": " + run.reason);
            plot_.mark(Layer::kMoving, point.outside ? 3 : 0, x_of(i), y_(*point.value),
                       point.outside  ? "bad"
                       : point.counts ? series_class(0)
                                      : "hollow " + series_class(0),
                       title);
        }
    }

    [[nodiscard]] std::string how_to_read() const {
        std::string text = fmt::format("Each mark is a run's median. Level: {}.", summary());
        if (first_ > 0) {
            text += fmt::format(" The latest {} of {} runs are drawn.", kMostRuns, trend_.runs.size());
        }
        return text;
    }

    [[nodiscard]] std::vector<LegendEntry> legend() const {
        using Swatch = LegendEntry::Swatch;
        std::vector<LegendEntry> entries{{"run", Swatch::kMark, series_class(0), 0}};
        const auto any = [&](auto predicate) {
            return std::any_of(series_.points.begin(), series_.points.end(), predicate);
        };
        if (any([](const TrendPoint& point) { return point.outside; })) {
            entries.push_back({"outside of its band", Swatch::kMark, "bad", 3});
        }
        if (any([](const TrendPoint& point) { return point.value && !point.counts; })) {
            entries.push_back({"did not pass, not in baselines", Swatch::kMark, "hollow " + series_class(0), 0});
        }
        if (any([](const TrendPoint& point) { return point.band_low.has_value(); })) {
            entries.push_back({"expected band", Swatch::kArea, "band", 0, "band"});
        }
        if (!series_.changes.empty()) {
            entries.push_back({"change of level", Swatch::kLine, "change", 0, "changes"});
        }
        const auto any_run = [&](auto predicate) {
            return std::any_of(trend_.runs.begin(), trend_.runs.end(), predicate);
        };
        if (any_run([](const TrendRun& run) { return run.new_plan; })) {
            entries.push_back({"another plan from here on", Swatch::kLine, "newplan"});
        }
        if (any_run([](const TrendRun& run) { return run.gap.has_value(); })) {
            entries.push_back({"no run for long", Swatch::kLine, "break"});
        }
        return entries;
    }

    [[nodiscard]] Element data_table() const {
        Table table(fmt::format("Runs of {} {}", series_.algorithm, series_.phase), {{"run"},
                                                                                     {"started"},
                                                                                     {"verdict"},
                                                                                     {"n", true},
                                                                                     {"value", true},
                                                                                     {"baseline", true},
                                                                                     {"band from", true},
                                                                                     {"to", true},
                                                                                     {"change", true},
                                                                                     {"over fluid bound", true},
                                                                                     {"note"}});
        const auto cell = [&](const std::optional<double>& value) {
            return value ? Cell(value_text(trend_.measure, *value), fmt::format("{}", *value), *value) : Cell(kNone);
        };
        for (std::size_t i = first_; i < end_; ++i) {
            const TrendPoint& point = series_.points[i];
            const TrendRun& run = trend_.runs[i];
            table.add({run.run_id, moment(run.started_realtime_ns), badge(run.verdict),
                       Cell(std::to_string(point.iterations), "", point.iterations), cell(point.value),
                       cell(point.baseline), cell(point.band_low), cell(point.band_high),
                       point.change ? Cell(per_cent(*point.change), fmt::format("{}", *point.change), *point.change)
                                    : Cell(kNone),
                       point.overhead ? Cell(times(point.overhead), fmt::format("{}", *point.overhead), *point.overhead)
                                      : Cell(kNone),
                       run.new_plan    ? "another plan"
                       : point.outside ? "outside of its band"
                                       : ""});
        }
        return table.folded(fmt::format("Data: {}", counted(static_cast<std::int64_t>(end_ - first_), "run")));
    }

    const Trend& trend_;
    const TrendSeries& series_;
    std::size_t number_;
    std::size_t first_;
    std::size_t end_;
    Plot plot_;
    Scale y_;
};

Element changes_table(const Trend& trend) {
    Table table("Where a level changed", {{"algorithm"},
                                          {"phase"},
                                          {"first run"},
                                          {"started"},
                                          {"before", true},
                                          {"after", true},
                                          {"change", true},
                                          {"p", true}});
    for (const TrendSeries& series : trend.series) {
        for (const ChangePoint& change : series.changes) {
            if (change.first < trend.runs.size()) {
                const TrendRun& run = trend.runs[change.first];
                table.add(
                    {series.algorithm, series.phase, run.run_id, moment(run.started_realtime_ns),
                     Cell(value_text(trend.measure, change.before), fmt::format("{}", change.before), change.before),
                     Cell(value_text(trend.measure, change.after), fmt::format("{}", change.after), change.after),
                     Cell(per_cent(change.change()), fmt::format("{}", change.change()), change.change()),
                     Cell(fmt::format("{:.2g}", change.p_value), fmt::format("{}", change.p_value), change.p_value)});
            }
        }
    }
    return table.empty() ? element("p", {}, "No change of level was found.") : table.element();
}

Element runs_table(const Trend& trend) {
    Table table(
        "Runs",
        {{"run"}, {"started"}, {"verdict"}, {"plan"}, {"railbreak"}, {"distance to the run before", true}, {"reason"}});
    for (const TrendRun& run : trend.runs) {
        table.add({run.run_id, moment(run.started_realtime_ns), badge(run.verdict),
                   run.plan_hash.substr(0, 12) + (run.new_plan ? " (new)" : ""), run.version,
                   run.gap ? Cell(fmt::format("{:.3g}\u00D7 usual", *run.gap), fmt::format("{}", *run.gap), *run.gap)
                           : Cell("usual"),
                   run.reason});
    }
    return table.element();
}

/// What the latest run says, in a sentence.
Element banner_of(const Trend& trend) {
    std::size_t changes = 0;
    std::string outside;
    for (const TrendSeries& series : trend.series) {
        changes += series.changes.size();
        if (!series.points.empty() && series.points.back().outside) {
            outside += fmt::format("{}{} {} ({})", outside.empty() ? "" : ", ", series.algorithm, series.phase,
                                   per_cent(series.points.back().change.value_or(0)));
        }
    }
    Element banner("div", {{"class", fmt::format("banner v-{}", outside.empty() ? "none" : "inconclusive")}});
    if (trend.runs.empty()) {
        return std::move(banner.add(element("p", {{"class", "reason"}}, "There is no run to show.")));
    }
    banner.add(element("p", {{"class", "reason"}},
                       outside.empty() ? std::string("The latest run lies within every band.")
                                       : fmt::format("The latest run lies outside of the band: {}.", outside)));
    banner.add(element("p", {{"class", "teardown"}},
                       fmt::format("{} of level found over {}, among {} of algorithm and phase.",
                                   counted(static_cast<std::int64_t>(changes), "change"),
                                   counted(static_cast<std::int64_t>(trend.runs.size()), "run"),
                                   counted(static_cast<std::int64_t>(trend.series.size()), "pair"))));
    return banner;
}

std::vector<Section> sections_of(const Trend& trend) {
    const auto panel = [](Element content) { return element("div", {{"class", "panel"}}, std::move(content)); };
    std::vector<Section> sections;
    sections.push_back({"changes", "Changes", "What changed", "", {}});
    for (const std::string& note : trend.notes) {
        sections.back().content.push_back(element("p", {{"class", "lead"}}, note));
    }
    sections.back().content.push_back(panel(changes_table(trend)));
    Section charts{"charts",
                   "Charts",
                   "Run by run",
                   "The band is where one more run like those before falls 99 times of 100. It begins anew where the "
                   "level or the plan changed.",
                   {}};
    for (std::size_t i = 0; i < trend.series.size(); ++i) {
        charts.content.push_back(figure_element(SeriesChart(trend, i).figure()));
    }
    if (!charts.content.empty()) {
        sections.push_back(std::move(charts));
    }
    sections.push_back({"runs", "Runs", "Every run", "", {panel(runs_table(trend))}});
    return sections;
}

} // namespace

} // namespace html

std::string trend_html(const Trend& trend) {
    using html::element;
    html::Page page;
    page.title = fmt::format("{} \u2013 railbreak trend", trend.scenario_name);
    page.kicker = "Trend";
    page.heading = trend.scenario_name;
    const auto fact = [&](std::string_view label, std::string_view value) {
        page.facts.push_back(element("span", {}, label, " ", element("b", {}, value)));
    };
    fact("runs", std::to_string(trend.runs.size()));
    if (!trend.runs.empty()) {
        fact("from", html::day(trend.runs.front()));
        fact("to", html::day(trend.runs.back()));
    }
    fact("on", trend.cluster);
    fact("measure", html::words_of(trend.measure));
    page.head.push_back(html::banner_of(trend));
    page.sections = html::sections_of(trend);
    page.footer = "Made by railbreak from the database alone.";
    return html::page_html(std::move(page));
}

} // namespace railbreak::reports
