#include "reports/html/run_page.hpp"

#include <fmt/format.h>

#include "reports/html/charts.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/page.hpp"
#include "reports/html/sections.hpp"
#include "reports/html/view.hpp"

namespace railbreak::reports {

namespace html {

namespace {

std::vector<Element> facts_of(const View& view) {
    const record::RunRow& run = view.data.run;
    std::vector<Element> facts;
    const auto fact = [&](std::string_view label, std::string_view value) {
        facts.push_back(element("span", {}, label, " ", element("b", {}, value)));
    };
    fact("started", moment(run.started_realtime_ns));
    fact("took", run.finished_realtime_ns > 0
                     ? duration(static_cast<double>(run.finished_realtime_ns - run.started_realtime_ns))
                     : "not finished");
    fact("on", view.simulated ? "a simulation" : run.backend);
    fact("hosts", std::to_string(run.hosts));
    fact("ranks", std::to_string(record::rank_count(view.data)));
    fact("NIC", rate(run.rate_bits_per_s));
    fact("vector", fmt::format("{} of {}", size(run.bytes), run.dtype));
    fact("seed", std::to_string(run.seed));
    return facts;
}

Section times_section(const View& view) {
    Section section{"times", "Times", "Times and lower bounds", "", {}};
    if (view.statistics.empty()) {
        section.content.push_back(element("p", {}, "No iteration was recorded."));
        return section;
    }
    section.content.push_back(figure_element(overhead(view)));
    section.content.push_back(panel(phase_table(view)));
    if (Element tried = comparison_table(view); !tried.empty()) {
        section.content.push_back(panel(std::move(tried)));
    }
    section.content.push_back(bound_table(view));
    return section;
}

Section timeline_section(const View& view) {
    Section section{"timeline", "Timeline", "What happened when", "", {}};
    for (const AlgorithmView& algorithm : view.algorithms) {
        if (!algorithm.iterations.empty() || !algorithm.injections.empty()) {
            section.content.push_back(figure_element(timeline(view, algorithm)));
        }
    }
    return section;
}

Section traffic_section(const View& view) {
    Section section{"traffic",
                    "Traffic",
                    "Who carried the bytes",
                    "The darker a cell, the nearer to the largest value of its map.",
                    {}};
    for (Element& map : traffic(view)) {
        section.content.push_back(panel(std::move(map)));
    }
    return section;
}

std::vector<Section> sections_of(const View& view) {
    std::vector<Section> sections;
    const auto add = [&](Section section) {
        if (!section.content.empty()) {
            sections.push_back(std::move(section));
        }
    };
    add(times_section(view));
    add(timeline_section(view));
    add({"faults",
         "Faults",
         "Faults and their evidence",
         "A fault counts only when it was seen on the host, and is over only when the former state was verified.",
         {fault_section(view)}});
    if (!view.statistics.empty()) {
        add({"spread", "Spread", "Distribution of iteration times", "", {figure_element(distribution(view))}});
    }
    add(traffic_section(view));
    add({"schedules", "Schedules", "Who sends what when",
         "The schedules that ran, simulated on the bandwidths that were measured.", schedules(view)});
    add({"checks",
         "Checks",
         "Expectations and checks",
         "",
         {panel(expectation_table(view)), panel(verdict_table(view))}});
    add({"events", "Events", "Events", "", {event_table(view)}});
    add({"environment",
         "Environment",
         "Cluster and environment",
         "",
         {panel(environment_list(view)), cluster_table(view)}});
    add({"again", "Reproduce", "Do it again", "", {reproduction(view)}});
    return sections;
}

} // namespace

} // namespace html

std::string run_html(const record::RunData& data) {
    const html::View view = html::view_of(data);
    html::Page page;
    page.title = fmt::format("{} \u2013 railbreak {}", data.run.scenario_name, data.run.run_id);
    page.kicker = fmt::format("{} {}", view.simulated ? "Simulated run" : "Run", data.run.run_id);
    page.heading = data.run.scenario_name;
    page.facts = html::facts_of(view);
    page.head.push_back(html::verdict_banner(view));
    page.head.push_back(html::element("section", {{"aria-label", "Summary"}},
                                      html::element("h2", {{"class", "sr"}}, "Summary"), html::promises(view),
                                      html::key_figures(view)));
    page.sections = html::sections_of(view);
    page.footer = fmt::format("Made by railbreak {} from the run's database alone.", data.run.version);
    return html::page_html(std::move(page));
}

} // namespace railbreak::reports
