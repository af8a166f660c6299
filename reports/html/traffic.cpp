// Who carried the bytes. Two heat maps as tables: the number stands in each cell, and the shade only repeats it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "reports/html/charts.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

using record::CounterRow;
using record::IterationRow;

namespace {

constexpr int kShades = 7;
constexpr std::size_t kMostPorts = 128;

/// Sent and received, or neither known.
struct Bytes {
    std::int64_t sent = 0;
    std::int64_t received = 0;
};

/// One column of a heat map: an algorithm's phase.
struct Conditions {
    std::string algorithm;
    std::string phase;
};

/// A heat map before it is drawn.
struct HeatMap {
    std::string caption;
    std::string row_head;
    std::vector<Conditions> columns;
    std::vector<std::string> rows;
    std::vector<std::vector<std::optional<Bytes>>> cells; ///< by row, then column
};

std::vector<Conditions> columns_of(const View& view) {
    std::vector<Conditions> columns;
    for (const record::PhaseStatistics& entry : view.statistics) {
        if (is_measured(entry.phase)) {
            columns.push_back({entry.algorithm, entry.phase});
        }
    }
    return columns;
}

std::size_t column_of(const std::vector<Conditions>& columns, const IterationRow& row) {
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const Conditions& column) {
        return column.algorithm == row.algorithm && column.phase == row.phase;
    });
    return static_cast<std::size_t>(found - columns.begin());
}

std::int64_t middle(std::vector<std::int64_t> values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    return *half;
}

HeatMap rank_map(const View& view) {
    HeatMap map{"Payload of each rank in one iteration (median of the phase)", "rank", columns_of(view), {}, {}};
    std::map<std::int64_t, std::size_t> column_of_iteration;
    for (const IterationRow& row : view.data.iterations) {
        if (const std::size_t column = column_of(map.columns, row); row.error.empty() && column < map.columns.size()) {
            column_of_iteration[row.id] = column;
        }
    }
    std::map<std::int32_t, std::vector<std::vector<Bytes>>> found; // by rank, then column
    for (const record::RankIterationRow& row : view.data.rank_iterations) {
        if (const auto column = column_of_iteration.find(row.iteration); column != column_of_iteration.end()) {
            auto& columns = found[row.rank];
            columns.resize(map.columns.size());
            columns[column->second].push_back({row.bytes_sent, row.bytes_received});
        }
    }
    for (const auto& [rank, columns] : found) {
        const auto host = std::find_if(view.data.ranks.begin(), view.data.ranks.end(),
                                       [&](const auto& row) { return row.rank == rank; });
        map.rows.push_back(host != view.data.ranks.end()
                               ? fmt::format("{} on {}", rank, host_name(view.data, host->host))
                               : std::to_string(rank));
        std::vector<std::optional<Bytes>>& cells = map.cells.emplace_back();
        for (const std::vector<Bytes>& all : columns) {
            std::vector<std::int64_t> sent;
            std::vector<std::int64_t> received;
            for (const Bytes& one : all) {
                sent.push_back(one.sent);
                received.push_back(one.received);
            }
            cells.push_back(all.empty() ? std::nullopt : std::optional(Bytes{middle(sent), middle(received)}));
        }
    }
    return map;
}

/// Readings of one counter of one NIC, by time.
using Readings = std::map<std::int64_t, std::int64_t>;

/// What a counter grew by over a span, from the last reading before it to the first after it. Nothing where one of
/// them is missing or the counter began anew.
std::optional<std::int64_t> growth(const Readings& readings, std::int64_t from, std::int64_t to) {
    const auto after_start = readings.upper_bound(from);
    const auto end = readings.lower_bound(to);
    if (after_start == readings.begin() || end == readings.end()) {
        return std::nullopt;
    }
    const std::int64_t grown = end->second - std::prev(after_start)->second;
    return grown >= 0 ? std::optional(grown) : std::nullopt;
}

HeatMap nic_map(const View& view) {
    HeatMap map{"What each NIC carried in one iteration (its counters over the phase, with headers and repeats)",
                "NIC",
                columns_of(view),
                {},
                {}};
    std::map<std::pair<std::int32_t, std::int32_t>, std::pair<Readings, Readings>> nics; // sent, received
    for (const CounterRow& row : view.data.counters) {
        if (row.source == "rtnl_link_stats64" && (row.name == "tx_bytes" || row.name == "rx_bytes")) {
            auto& [sent, received] = nics[{row.host, row.nic}];
            (row.name == "tx_bytes" ? sent : received)[row.at] = row.value;
        }
    }
    struct Span {
        std::int64_t from = 0;
        std::int64_t to = 0;
        std::int64_t iterations = 0;
    };
    std::vector<Span> spans(map.columns.size());
    for (const IterationRow& row : view.data.iterations) {
        if (const std::size_t column = column_of(map.columns, row); column < map.columns.size()) {
            Span& span = spans[column];
            span.from = span.iterations == 0 ? row.started_at : std::min(span.from, row.started_at);
            span.to = std::max(span.to, row.started_at + row.duration_ns);
            ++span.iterations;
        }
    }
    for (const auto& [place, readings] : nics) {
        std::vector<std::optional<Bytes>> cells;
        for (const Span& span : spans) {
            const auto sent = growth(readings.first, span.from, span.to);
            const auto received = growth(readings.second, span.from, span.to);
            cells.push_back(sent && received
                                ? std::optional(Bytes{*sent / span.iterations, *received / span.iterations})
                                : std::nullopt);
        }
        if (std::any_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.has_value(); })) {
            map.rows.push_back(fmt::format("{} {}", host_name(view.data, place.first),
                                           nic_name(view.data, place.first, place.second)));
            map.cells.push_back(std::move(cells));
        }
    }
    return map;
}

Cell heat_cell(std::int64_t value, std::int64_t most) {
    Cell cell(size(value), grouped(value) + " bytes", static_cast<double>(value));
    const int shade = most > 0 ? static_cast<int>(kShades * static_cast<double>(value) / static_cast<double>(most)) : 0;
    cell.css = fmt::format("heat h{}", std::clamp(shade, 0, kShades - 1));
    return cell;
}

/// One table for what was sent and one for what was received.
Element map_table(const HeatMap& map, bool sent) {
    const auto value = [&](const Bytes& bytes) { return sent ? bytes.sent : bytes.received; };
    std::int64_t most = 0;
    for (const auto& row : map.cells) {
        for (const auto& cell : row) {
            most = cell ? std::max(most, value(*cell)) : most;
        }
    }
    std::vector<Column> columns{{map.row_head}};
    for (const Conditions& column : map.columns) {
        columns.push_back({fmt::format("{} {}", column.algorithm, column.phase), true});
    }
    Table table(fmt::format("{}: {}{}", map.caption, sent ? "sent" : "received",
                            map.rows.size() > kMostPorts
                                ? fmt::format("; the first {} of {}", kMostPorts, map.rows.size())
                                : ""),
                std::move(columns));
    for (std::size_t i = 0; i < std::min(map.rows.size(), kMostPorts); ++i) {
        std::vector<Cell> row{map.rows[i]};
        for (const std::optional<Bytes>& cell : map.cells[i]) {
            row.push_back(cell ? heat_cell(value(*cell), most) : Cell(kNone));
        }
        table.add(std::move(row));
    }
    return table.element("heatmap");
}

} // namespace

std::vector<Element> traffic(const View& view) {
    std::vector<Element> tables;
    for (const HeatMap& map : {rank_map(view), nic_map(view)}) {
        if (!map.rows.empty()) {
            tables.push_back(element("div", {{"class", map.columns.size() > 5 ? "pair wide" : "pair"}},
                                     map_table(map, true), map_table(map, false)));
        }
    }
    return tables;
}

} // namespace railbreak::reports::html
