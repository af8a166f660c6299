// The verdict and what did not pass come first. Then every item as a row, when each ran, and how far each algorithm
// stayed from its lower bound under the faults of each item.
#include "reports/html/suite_page.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/analyse/suite.hpp"
#include "reports/facts.hpp"
#include "reports/html/chart.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/page.hpp"
#include "reports/html/sections.hpp"
#include "reports/html/table.hpp"
#include "reports/html/view.hpp"

namespace railbreak::reports {

using record::PhaseStatistics;
using record::RunData;
using record::SuiteData;
using record::SuiteItemRow;

namespace html {

namespace {

constexpr std::size_t kMostItems = 120; // of a chart
constexpr double kItemRow = 24;
constexpr double kItemNames = 300;
constexpr std::int64_t kLatest = std::int64_t{1} << 62U; // the year 2116

/// One item with what became of it.
struct Item {
    const SuiteItemRow& row;
    std::string run_id;  ///< or what stands in its place, see run_cell()
    std::string verdict; ///< analyse::ItemOutcome::word
    std::string reason;
    const RunData* run = nullptr;
    std::int64_t started_at = 0; ///< of the run, wall clock, held within what can be reckoned with
    std::int64_t finished_at = 0;
    std::vector<PhaseStatistics> statistics{};
};

/// A suite as its page looks at it.
struct SuiteView {
    const SuiteData& data;
    analyse::SuiteOutcome outcome;
    std::vector<Item> items;
    std::vector<std::string> algorithms; ///< of all runs, in the order in which they come; the index is the series
};

std::string at_or_empty(const std::vector<std::string>& texts, std::size_t i) {
    return i < texts.size() ? texts[i] : "";
}

SuiteView suite_view_of(const SuiteData& suite, const std::vector<RunData>& runs) {
    SuiteView view{.data = suite, .outcome = analyse::judge_suite(suite), .items = {}, .algorithms = {}};
    for (std::size_t i = 0; i < suite.items.size(); ++i) {
        Item item{.row = suite.items[i],
                  .run_id = run_cell(suite, i),
                  .verdict = view.outcome.items[i].word,
                  .reason = at_or_empty(suite.reasons, i)};
        item.reason = item.reason.empty() ? item.row.reason : item.reason;
        item.run = find_run(runs, at_or_empty(suite.run_ids, i));
        const record::PrunedOutcome& pruned = item.row.pruned;
        item.started_at = std::clamp<std::int64_t>(
            item.run != nullptr ? item.run->run.started_realtime_ns : pruned.started_realtime_ns, 0, kLatest);
        item.finished_at = std::clamp<std::int64_t>(
            item.run != nullptr ? item.run->run.finished_realtime_ns : pruned.finished_realtime_ns, 0, kLatest);
        item.statistics = statistics_of(item.row, item.run);
        for (const PhaseStatistics& entry : item.statistics) {
            if (std::find(view.algorithms.begin(), view.algorithms.end(), entry.algorithm) == view.algorithms.end()) {
                view.algorithms.push_back(entry.algorithm);
            }
        }
        view.items.push_back(std::move(item));
    }
    return view;
}

/// How many items have each word; the worst verdict first, what is no verdict before those that passed.
std::vector<std::pair<std::string, std::int64_t>> counts_of(const SuiteView& view) {
    std::map<std::string, std::int64_t> found;
    for (const Item& item : view.items) {
        ++found[item.verdict];
    }
    std::vector<std::pair<std::string, std::int64_t>> counts(found.begin(), found.end());
    const auto badness = [](const auto& count) {
        const std::optional<analyse::Verdict> verdict = analyse::parse_verdict(count.first);
        return verdict ? 2 * static_cast<int>(*verdict) : 1;
    };
    std::ranges::stable_sort(counts, std::greater(), badness);
    return counts;
}

/// "host 3, fraction 1/2": what the matrix set.
std::string params_text(const std::string& json) {
    const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
    if (!parsed.is_object()) {
        return json;
    }
    std::string text;
    for (const auto& [name, value] : parsed.items()) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                            value.is_string()
                                ? value.get<std::string>()
                                : value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    }
    return text;
}

Element banner_of(const SuiteView& view) {
    const std::string_view verdict = to_string(view.outcome.verdict);
    std::string sentence;
    for (const auto& [word, count] : counts_of(view)) {
        sentence += fmt::format("{}{} {}", sentence.empty() ? ": " : ", ", grouped(count), word);
    }
    Element banner("div", {{"class", fmt::format("banner v-{}", verdict)}});
    banner.add(element("p", {{"class", "verdict"}}, badge(verdict)));
    if (!view.outcome.reason.empty()) {
        banner.add(element("p", {{"class", "reason"}}, view.outcome.reason));
    }
    banner.add(element("p", {{"class", "reason"}},
                       fmt::format("{}{}.", counted(static_cast<std::int64_t>(view.items.size()), "item"), sentence)));
    if (view.data.suite.finished_realtime_ns == 0) {
        banner.add(element("p", {{"class", "teardown"}}, "The suite has not ended: it goes on, or was interrupted."));
    }
    return banner;
}

Element problems_of(const SuiteView& view) {
    Table table("Items that did not pass", {{"item"}, {"verdict"}, {"attempts", true}, {"reason"}});
    for (const Item& item : view.items) {
        if (item.verdict != "pass") {
            table.add({item.row.name, badge(item.verdict),
                       Cell(std::to_string(item.row.attempts), "", item.row.attempts), item.reason});
        }
    }
    return table.empty() ? element("p", {}, "Every item passed.") : table.element();
}

double took_ns(const Item& item) {
    return item.finished_at > 0 ? static_cast<double>(item.finished_at - item.started_at) : 0;
}

/// The smallest overhead over the fluid bound that an algorithm reached under the item's faults.
const PhaseStatistics* best_degraded(const Item& item) {
    const PhaseStatistics* best = nullptr;
    for (const PhaseStatistics& entry : item.statistics) {
        if (entry.phase == "degraded" && entry.overhead_fluid &&
            (best == nullptr || *entry.overhead_fluid < *best->overhead_fluid)) {
            best = &entry;
        }
    }
    return best;
}

Element items_table(const SuiteView& view) {
    Table table("Every item", {{"item"},
                               {"scenario"},
                               {"parameters"},
                               {"verdict"},
                               {"attempts", true},
                               {"took", true},
                               {"best over bound", true},
                               {"by"},
                               {"run"},
                               {"reason"}});
    for (const Item& item : view.items) {
        const PhaseStatistics* best = best_degraded(item);
        const double took = took_ns(item);
        table.add({item.row.name, item.row.scenario_name, params_text(item.row.params_json), badge(item.verdict),
                   Cell(std::to_string(item.row.attempts), "", item.row.attempts),
                   took > 0 ? Cell(duration(took), exact_duration(static_cast<std::int64_t>(took)), took) : Cell(kNone),
                   best != nullptr ? Cell(times(best->overhead_fluid), fmt::format("{}", *best->overhead_fluid),
                                          *best->overhead_fluid)
                                   : Cell(kNone),
                   best != nullptr ? Cell(best->algorithm) : Cell(kNone), item.run_id, item.reason});
    }
    return table.element();
}

std::string row_name(const Item& item) {
    const std::string name = clean(item.row.name);
    constexpr std::size_t kMost = 38;
    return name.size() > kMost ? name.substr(0, kMost - 2) + ".." : name;
}

std::string left_out(std::size_t drawn, std::size_t all) {
    return drawn < all ? fmt::format(" The first {} of {} items are drawn; the table has all.", drawn, all) : "";
}

/// The names of the rows at the left.
void draw_names(Plot& plot, const std::vector<const Item*>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
        const double y = plot.top() + kItemRow * (static_cast<double>(i) + 0.5);
        plot.text(Plot::Layer::kFront, 8, y + 4, "rowname", row_name(*items[i]));
        plot.line(Plot::Layer::kBehind, 8, y + kItemRow / 2, plot.right(), y + kItemRow / 2, "groupline");
    }
}

Figure overhead_figure(const SuiteView& view) {
    std::vector<const Item*> items;
    double most = 1.1;
    std::size_t with_figures = 0;
    for (const Item& item : view.items) {
        if (best_degraded(item) == nullptr) {
            continue;
        }
        ++with_figures;
        if (items.size() < kMostItems) {
            items.push_back(&item);
            for (const PhaseStatistics& entry : item.statistics) {
                most = entry.phase == "degraded" ? std::max(most, entry.overhead_fluid.value_or(1)) : most;
            }
        }
    }
    Plot plot("overhead", kFigureWidth, 14 + kItemRow * static_cast<double>(items.size()) + 46,
              {.left = kItemNames, .right = 30, .top = 14, .bottom = 46});
    const Scale x{std::min(0.95, 1 - (most - 1) / 20), most + (most - 1) / 20, plot.left(), plot.right()};
    plot.x_axis(x, 1, "median time over the fluid lower bound, faults in force (\u00D7)");
    draw_names(plot, items);
    plot.line(Plot::Layer::kMoving, x(1), plot.top(), x(1), plot.bottom(), "bound fluid", "the lower bound");
    for (std::size_t i = 0; i < items.size(); ++i) {
        const double y = plot.top() + kItemRow * (static_cast<double>(i) + 0.5);
        for (const PhaseStatistics& entry : items[i]->statistics) {
            if (entry.phase == "degraded" && entry.overhead_fluid) {
                const auto at = std::find(view.algorithms.begin(), view.algorithms.end(), entry.algorithm);
                const auto series = static_cast<std::size_t>(at - view.algorithms.begin());
                plot.mark(Plot::Layer::kMoving, series, x(*entry.overhead_fluid), y, series_class(series),
                          fmt::format("{}\n{}: {} of the fluid bound, median {}", items[i]->row.name, entry.algorithm,
                                      times(entry.overhead_fluid), duration(entry.time_median_ns.value_or(0))),
                          entry.algorithm);
            }
        }
    }
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < view.algorithms.size(); ++i) {
        legend.push_back({view.algorithms[i], LegendEntry::Swatch::kMark, series_class(i), i, view.algorithms[i]});
    }
    return {.id = "overhead",
            .kind = "overhead",
            .title = "How far from the best under each item's faults",
            .how_to_read = "Each mark is an algorithm's median while the faults were in force, over the lower bound "
                           "for the bandwidths measured in that run." +
                           left_out(items.size(), with_figures),
            .legend = std::move(legend),
            .picture = plot.element("Overhead of each algorithm in each item", "The table of items has the best."),
            .data = Element()};
}

Figure schedule_figure(const SuiteView& view) {
    std::vector<const Item*> items;
    std::size_t ran = 0;
    std::int64_t from = 0;
    std::int64_t to = 1;
    for (const Item& item : view.items) {
        if (took_ns(item) <= 0) {
            continue;
        }
        if (++ran <= kMostItems) {
            from = items.empty() ? item.started_at : std::min(from, item.started_at);
            to = std::max(to, item.finished_at);
            items.push_back(&item);
        }
    }
    Plot plot("course", kFigureWidth, 14 + kItemRow * static_cast<double>(items.size()) + 46,
              {.left = kItemNames, .right = 110, .top = 14, .bottom = 46});
    const double span = std::max(static_cast<double>(to - from), 1.0);
    const Scale x{0, span, plot.left(), plot.right()};
    const bool minutes = span > 600e9;
    plot.x_axis(x, minutes ? 60e9 : 1e9,
                minutes ? "time since the first run began (min)" : "time since the first run began (s)", true);
    draw_names(plot, items);
    for (std::size_t i = 0; i < items.size(); ++i) {
        const double y = plot.top() + kItemRow * (static_cast<double>(i) + 0.5);
        const double begin = x(static_cast<double>(items[i]->started_at - from));
        const double end = x(static_cast<double>(items[i]->finished_at - from));
        plot.rectangle(
            Plot::Layer::kMoving, begin, y - 7, std::max(end - begin, 2.0), 14,
            fmt::format("span v-{}", items[i]->verdict),
            fmt::format("{}: {}, took {}", items[i]->row.name, items[i]->verdict, duration(took_ns(*items[i]))),
            items[i]->verdict);
        plot.text(Plot::Layer::kFront, plot.right() + 10, y + 4, "value", fmt::format("{}", items[i]->verdict),
                  items[i]->verdict);
    }
    return {.id = "course",
            .kind = "timeline",
            .title = "When each item ran",
            .how_to_read = "Items that share no host may run at the same time." + left_out(items.size(), ran),
            .legend = {},
            .picture = plot.element("When each item ran", "The table of items has how long each took."),
            .data = Element()};
}

std::vector<Element> facts_of(const SuiteView& view) {
    const record::SuiteRow& suite = view.data.suite;
    std::vector<Element> facts;
    const auto fact = [&](std::string_view label, std::string_view value) {
        facts.push_back(element("span", {}, label, " ", element("b", {}, value)));
    };
    fact("started", moment(suite.started_realtime_ns));
    fact("took", suite.finished_realtime_ns > 0 ? duration(static_cast<double>(suite.finished_realtime_ns) -
                                                           static_cast<double>(suite.started_realtime_ns))
                                                : "not finished");
    fact("on", suite.cluster.empty() ? suite.backend : suite.cluster);
    fact("items", std::to_string(view.items.size()));
    fact("seed", std::to_string(suite.seed));
    return facts;
}

std::vector<Section> sections_of(const SuiteView& view) {
    const record::SuiteRow& suite = view.data.suite;
    std::vector<Section> sections;
    sections.push_back({"problems", "Problems", "What did not pass", "", {panel(problems_of(view))}});
    const auto any = [&](auto predicate) { return std::any_of(view.items.begin(), view.items.end(), predicate); };
    if (any([](const Item& item) { return best_degraded(item) != nullptr; })) {
        sections.push_back({"bounds", "Bounds", "Times and lower bounds", "", {figure_element(overhead_figure(view))}});
    }
    sections.push_back({"items", "Items", "Every item", "", {panel(items_table(view))}});
    if (any([](const Item& item) { return took_ns(item) > 0; })) {
        sections.push_back({"when", "Course", "What ran when", "", {figure_element(schedule_figure(view))}});
    }
    record::RunData origin; // a suite has an environment as a run has
    origin.run.version = suite.version;
    origin.run.environment_json = suite.environment_json;
    sections.push_back(
        {"environment", "Environment", "Environment", "", {panel(environment_list(html::view_of(origin)))}});
    Element again;
    again.add(element("p", {}, "As it was called:"));
    again.add(element("div", {{"class", "command"}}, code_block("Command line of this suite", suite.command_line)));
    again.add(definition_list({{"suite", Element::text(suite.suite_id)},
                               {"seed", Element::text(std::to_string(suite.seed))},
                               {"plan hash", Element::text(suite.plan_hash)}}));
    again.add(details("Suite as it was read", code_block("Suite", suite.text)));
    sections.push_back({"again", "Reproduce", "Do it again", "", {std::move(again)}});
    return sections;
}

} // namespace

} // namespace html

std::string suite_html(const SuiteData& suite, const std::vector<RunData>& runs) {
    const html::SuiteView view = html::suite_view_of(suite, runs);
    html::Page page;
    page.title = fmt::format("{} \u2013 railbreak suite {}", suite.suite.name, suite.suite.suite_id);
    page.kicker = fmt::format("Suite {}", suite.suite.suite_id);
    page.heading = suite.suite.name;
    page.facts = html::facts_of(view);
    page.head.push_back(html::banner_of(view));
    page.sections = html::sections_of(view);
    page.footer = fmt::format("Made by railbreak {} from the suite's database alone.", suite.suite.version);
    return html::page_html(std::move(page));
}

} // namespace railbreak::reports
