// Where a run comes from: cluster, environment, scenario, plan, and the command that does it again.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/html/charts.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/sections.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value, int indent = -1) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// The bytes in base64, for a data: address.
std::string base64(std::string_view bytes) {
    constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        const std::size_t there = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t j = 0; j < 3; ++j) {
            group = group << 8U | (j < there ? static_cast<unsigned char>(bytes[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            out += j <= there ? kLetters[group >> (18 - 6 * j) & 63U] : '=';
        }
    }
    return out;
}

constexpr std::string_view kGanttPrefix = "gantt/";
constexpr std::size_t kLargestPicture = 400 * 1024;

} // namespace

std::vector<Element> schedules(const View& view) {
    std::vector<Element> pictures;
    for (const record::ArtefactRow& row : view.data.artefacts) {
        if (!row.name.starts_with(kGanttPrefix) || row.media_type != "image/svg+xml") {
            continue;
        }
        std::string name = row.name.substr(kGanttPrefix.size());
        name = name.ends_with(".svg") ? name.substr(0, name.size() - 4) : name;
        Element figure("figure", {{"class", "gantt"}});
        figure.add(element("figcaption", {}, element("h3", {}, fmt::format("Schedule of {}", name))));
        if (row.content.size() > kLargestPicture) {
            figure.add(element("p", {},
                               fmt::format("The picture is too large to be shown here ({}).",
                                           size(static_cast<std::int64_t>(row.content.size())))));
        } else {
            figure.add(scroll_box(
                fmt::format("Schedule of {}", name),
                Element("img", {{"src", "data:image/svg+xml;base64," + base64(row.content)},
                                {"alt", fmt::format("Who sends what when in the schedule of {}, as simulated. Each "
                                                    "rank has a row for what it sends and one for what it receives.",
                                                    name)}})));
        }
        pictures.push_back(std::move(figure));
    }
    return pictures;
}

Element cluster_table(const View& view) {
    Table table("Hosts and NICs", {{"host"},
                                   {"NIC"},
                                   {"address"},
                                   {"MAC"},
                                   {"line rate", true},
                                   {"healthy send", true},
                                   {"healthy receive", true},
                                   {"clock offset", true},
                                   {"clock error", true},
                                   {"network namespace"}});
    for (const record::NicRow& nic : view.data.nics) {
        const auto host = std::find_if(view.data.hosts.begin(), view.data.hosts.end(),
                                       [&](const auto& row) { return row.host == nic.host; });
        const bool known = host != view.data.hosts.end();
        const auto bits = [](std::int64_t value) {
            return Cell(rate(value), grouped(value) + " bit/s", static_cast<double>(value));
        };
        const auto clock = [&](std::int64_t value) {
            return known ? Cell(duration(static_cast<double>(value)), exact_duration(value), static_cast<double>(value))
                         : Cell(kNone);
        };
        table.add({host_name(view.data, nic.host), nic_name(view.data, nic.host, nic.nic), nic.address, nic.mac,
                   bits(nic.line_rate_bits_per_s), bits(nic.send_goodput_bits_per_s),
                   bits(nic.receive_goodput_bits_per_s), clock(known ? host->clock_offset_ns : 0),
                   clock(known ? host->clock_error_ns : 0), known ? host->netns : ""});
    }
    return table.empty() ? element("p", {}, "No NIC was recorded.")
                         : table.folded(counted(static_cast<std::int64_t>(view.data.nics.size()), "NIC"));
}

Element environment_list(const View& view) {
    const record::RunRow& run = view.data.run;
    std::vector<std::pair<std::string, Element>> entries;
    const auto add = [&](std::string_view term, std::string_view text) {
        entries.emplace_back(term, Element::text(text));
    };
    add("railbreak", run.version);
    const Json parsed = Json::parse(run.environment_json, nullptr, false);
    if (parsed.is_object()) {
        for (const auto& [key, value] : parsed.items()) {
            if (!value.is_object() || !value.empty()) {
                add(key, text_of(value));
            }
        }
    } else if (!run.environment_json.empty()) {
        add("environment", run.environment_json);
    }
    return definition_list(entries);
}

namespace {

/// A word of a shell's command line, quoted where it has to be.
std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) {
        return text;
    }
    std::string quoted = "'";
    for (const char c : text) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

std::string_view command_of(const View& view) {
    return view.simulated ? "simulate" : "run";
}

} // namespace

Element reproduction(const View& view) {
    const record::RunRow& run = view.data.run;
    Element section;
    const std::string file = shell_word(run.scenario_name + ".yaml");
    section.add(element("p", {}, "The same experiment again, from the scenario below saved as a file:"));
    section.add(element("div", {{"class", "command"}},
                        code_block("Command to reproduce",
                                   fmt::format("railbreak {} {} --seed {}", command_of(view), file, run.seed))));
    section.add(element("p", {}, "As it was called then; of a suite, the call of this item alone:"));
    section.add(element("div", {{"class", "command"}}, code_block("Command line of this run", run.command_line)));
    std::vector<std::pair<std::string, Element>> entries;
    entries.emplace_back("seed", Element::text(std::to_string(run.seed)));
    entries.emplace_back("plan hash", Element::text(run.plan_hash));
    entries.emplace_back("run", Element::text(run.run_id));
    section.add(definition_list(entries));
    section.add(details("Scenario as it was read",
                        element("div", {{"class", "command"}}, code_block("Scenario", run.scenario_text))));
    const Json plan = Json::parse(run.plan_json, nullptr, false);
    section.add(details("Plan: the scenario with everything filled in",
                        code_block("Plan", plan.is_discarded() ? run.plan_json : text_of(plan, 2))));
    return section;
}

} // namespace railbreak::reports::html
