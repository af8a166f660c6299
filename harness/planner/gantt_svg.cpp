#include "harness/planner/gantt_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "base/units.hpp"
#include "harness/planner/gantt_layout.hpp"

namespace railbreak::planner {

namespace {

using collective::Stage;

// Pixels.
constexpr double kNames = 190;     // left of the time axis: ranks and sides
constexpr double kLongNames = 250; // with lanes and servers
constexpr double kRight = 40;
constexpr double kRowHeight = 20;
constexpr double kRankGap = 8;
constexpr double kLetter = 6.2; // width of a letter of a box label
constexpr double kLegendLine = 20;
constexpr double kTickSpacing = 90;

struct Paint {
    std::string_view fill;
    std::string_view text;
};

Paint paint_of(Stage stage) {
    switch (stage) {
    case Stage::kReduceScatter: return {"#4e79a7", "#ffffff"};
    case Stage::kUpload: return {"#f28e2b", "#000000"};
    case Stage::kDownload: return {"#e15759", "#000000"};
    case Stage::kAllGather: return {"#59a14f", "#000000"};
    case Stage::kStarUp: return {"#d9d9d9", "#000000"};
    case Stage::kStarDown: return {"#8c8c8c", "#000000"};
    case Stage::kStarExchange: return {"#bab0ac", "#000000"};
    case Stage::kLocalReduce: return {"#a0cbe8", "#000000"};
    case Stage::kLocalGather: return {"#8cd17d", "#000000"};
    case Stage::kReduce: return {"#b07aa1", "#000000"};
    case Stage::kBroadcast: return {"#d4a6c8", "#000000"};
    case Stage::kExchange: return {"#edc948", "#000000"};
    case Stage::kProbe: return {"#9c755f", "#ffffff"};
    }
    return {};
}

constexpr Paint kMixedPaint{"#333333", "#ffffff"};
constexpr std::string_view kMixedName = "several";

std::string number(double value) {
    return fmt::format("{:.2f}", value);
}

/// Letters, not bytes, of an UTF-8 text.
std::size_t letters(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Writes the document piece by piece into a tree.
class Drawing {
public:
    Drawing(const GanttInput& input, const GanttLayout& layout, bool tooltips)
        : input_(input), layout_(layout), tooltips_(tooltips) {
        for (const GanttBox& box : layout_.boxes) {
            (box.mixed ? mixed_ : stages_[box.stage]) = true;
        }
        left_ = input_.schedule.lanes() > 1 || input_.simulation.topology.ranks_per_server > 1 ? kLongNames : kNames;
        notes_ = notes();
        top_ = 122 + kLegendLine * static_cast<double>(legend_lines() + notes_.size());
        place_rows();
    }

    void draw() {
        start_document();
        draw_header();
        draw_legend();
        draw_ranks();
        draw_axis();
        draw_boxes();
        if (input_.bound) {
            draw_line(input_.bound->time, "bound", top_ - 22,
                      fmt::format("lower bound {}", to_string(input_.bound->time)));
        }
        draw_line(input_.makespan, "end", top_ - 8, fmt::format("makespan {}", to_string(input_.makespan)));
    }

    void save(std::ostream& out) const { document_.save(out, "", pugi::format_indent, pugi::encoding_utf8); }

private:
    [[nodiscard]] double x_of(Nanoseconds time) const {
        return left_ + layout_.width * static_cast<double>(time.count()) / static_cast<double>(layout_.horizon.count());
    }
    [[nodiscard]] double full_width() const { return left_ + layout_.width + kRight; }

    // --- small shapes ---

    pugi::xml_node element(pugi::xml_node parent, const char* name, std::string_view css_class) {
        pugi::xml_node node = parent.append_child(name);
        if (!css_class.empty()) {
            node.append_attribute("class") = std::string(css_class).c_str();
        }
        return node;
    }
    void text(double x, double y, std::string_view css_class, std::string_view content) {
        pugi::xml_node node = element(svg_, "text", css_class);
        node.append_attribute("x") = number(x).c_str();
        node.append_attribute("y") = number(y).c_str();
        node.append_child(pugi::node_pcdata).set_value(std::string(content).c_str());
    }
    pugi::xml_node rectangle(pugi::xml_node parent, double x, double y, double width, double height,
                             std::string_view css_class) {
        pugi::xml_node node = element(parent, "rect", css_class);
        node.append_attribute("x") = number(x).c_str();
        node.append_attribute("y") = number(y).c_str();
        node.append_attribute("width") = number(width).c_str();
        node.append_attribute("height") = number(height).c_str();
        return node;
    }
    void line(double x1, double y1, double x2, double y2, std::string_view css_class) {
        pugi::xml_node node = element(svg_, "line", css_class);
        node.append_attribute("x1") = number(x1).c_str();
        node.append_attribute("y1") = number(y1).c_str();
        node.append_attribute("x2") = number(x2).c_str();
        node.append_attribute("y2") = number(y2).c_str();
    }

    // --- parts of the picture ---

    [[nodiscard]] std::vector<std::string> notes() const {
        std::vector<std::string> lines;
        if (layout_.ranks.size() < static_cast<std::size_t>(input_.schedule.ranks())) {
            lines.push_back(fmt::format("Only {} of {} ranks are shown, those of slow servers first; both ends are "
                                        "shown of {} of {} flows.",
                                        layout_.ranks.size(), input_.schedule.ranks(), layout_.whole_flows,
                                        input_.all_flows));
        }
        std::int64_t merged = 0;
        for (const GanttBox& box : layout_.boxes) {
            merged += box.flows > 1 ? box.flows : 0;
        }
        if (merged > 0) {
            lines.push_back(fmt::format("Flows too short to be drawn apart share a box ({} of them do).", merged));
        }
        if (layout_.boxes.empty()) {
            lines.emplace_back("No flow carries data.");
        }
        return lines;
    }

    void place_rows() {
        double y = top_;
        for (std::size_t i = 0; i < layout_.rows.size(); ++i) {
            if (i > 0 && layout_.rows[i].rank != layout_.rows[i - 1].rank) {
                y += kRankGap;
            }
            row_y_.push_back(y);
            y += kRowHeight;
        }
        bottom_ = y + 4;
    }

    void start_document() {
        svg_ = document_.append_child("svg");
        svg_.append_attribute("xmlns") = "http://www.w3.org/2000/svg";
        const std::string width = number(full_width());
        const std::string height = number(bottom_ + 50);
        svg_.append_attribute("width") = width.c_str();
        svg_.append_attribute("height") = height.c_str();
        svg_.append_attribute("viewBox") = fmt::format("0 0 {} {}", width, height).c_str();
        std::string style = "text{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:11px;fill:#222}"
                            ".name{font-size:17px;font-weight:bold}"
                            ".fact{font-size:12px}"
                            ".note{font-size:12px;fill:#a00000;font-weight:bold}"
                            ".rank{font-weight:bold}"
                            ".slow{fill:#c00000;font-size:10px}"
                            ".side{font-size:10px;fill:#555}"
                            ".tick{text-anchor:middle}"
                            ".label{font-size:10px;text-anchor:middle;pointer-events:none}"
                            ".band{fill:#f4f4f4}.slowband{fill:#fdeaea}"
                            ".grid{stroke:#cccccc;stroke-width:1}.axis{stroke:#222;stroke-width:1}"
                            ".box{stroke:#ffffff;stroke-width:0.6}"
                            ".bound{stroke:#007030;stroke-width:2;stroke-dasharray:6 3}"
                            ".boundtext{fill:#007030;font-weight:bold}"
                            ".end{stroke:#c00000;stroke-width:2}.endtext{fill:#c00000;font-weight:bold}"
                            ".left{text-anchor:end}";
        for (const auto& [stage, used] : stages_) {
            style += paint_rules(collective::to_string(stage), paint_of(stage));
        }
        if (mixed_) {
            style += paint_rules(kMixedName, kMixedPaint);
        }
        svg_.append_child("style").append_child(pugi::node_pcdata).set_value(style.c_str());
        svg_.append_child("title").append_child(pugi::node_pcdata).set_value(input_.schedule.name().c_str());
        rectangle(svg_, 0, 0, full_width(), bottom_ + 50, "").append_attribute("fill") = "#ffffff";
    }

    static std::string paint_rules(std::string_view name, const Paint& paint) {
        return fmt::format(".{0}{{fill:{1}}}.on-{0}{{fill:{2}}}", name, paint.fill, paint.text);
    }

    void draw_header() {
        text(12, 26, "name", input_.schedule.name());
        text(12, 46, "fact", cluster_text(input_.simulation));
        text(12, 63, "fact", message_text(input_.schedule, input_.simulation));
        text(12, 80, "fact", times_text());
    }

    [[nodiscard]] std::string times_text() const {
        std::string times = fmt::format("makespan {}", to_string(input_.makespan));
        if (input_.bound && input_.bound->time > Nanoseconds(0)) {
            times += fmt::format(" = {:.4f} x lower bound {} ({})",
                                 static_cast<double>(input_.makespan.count()) /
                                     static_cast<double>(input_.bound->time.count()),
                                 to_string(input_.bound->time), input_.bound->name);
        }
        return times + fmt::format("; {} flows", input_.all_flows);
    }

    [[nodiscard]] std::string how_to_read() const {
        return fmt::format("a box in a send row: slice number \u2192 receiver; in a receive row: slice number \u2190 "
                           "sender{}",
                           tooltips_ ? " (point at it for elements and times)" : "");
    }

    /// Entries of the legend as {name, text}.
    [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> legend() const {
        std::vector<std::pair<std::string_view, std::string_view>> entries;
        for (const auto& [stage, used] : stages_) {
            entries.emplace_back(collective::to_string(stage), collective::to_string(stage));
        }
        if (mixed_) {
            entries.emplace_back(kMixedName, "several stages");
        }
        return entries;
    }
    [[nodiscard]] static double legend_width(std::string_view name) {
        return 34 + 7 * static_cast<double>(name.size());
    }
    [[nodiscard]] std::size_t legend_lines() const {
        double x = 0;
        std::size_t lines = 1; // how to read a box
        lines += stages_.empty() && !mixed_ ? 0 : 1;
        for (const auto& [css_class, name] : legend()) {
            if (x + legend_width(name) > kLegendSpan) {
                x = 0;
                ++lines;
            }
            x += legend_width(name);
        }
        return lines;
    }

    void draw_legend() {
        double x = 0;
        double y = 88;
        const auto entries = legend();
        for (const auto& [css_class, name] : entries) {
            if (x + legend_width(name) > kLegendSpan) {
                x = 0;
                y += kLegendLine;
            }
            rectangle(svg_, 12 + x, y, 16, 12, css_class);
            text(12 + x + 21, y + 10, "", name);
            x += legend_width(name);
        }
        if (!entries.empty()) {
            y += kLegendLine;
        }
        text(12, y + 10, "", how_to_read());
        for (const std::string& note : notes_) {
            y += kLegendLine;
            text(12, y + 10, "note", note);
        }
    }

    void draw_ranks() {
        const collective::Topology& topology = input_.simulation.topology;
        for (std::size_t first = 0; first < layout_.rows.size();) {
            const collective::Rank rank = layout_.rows[first].rank;
            std::size_t end = first;
            while (end < layout_.rows.size() && layout_.rows[end].rank == rank) {
                ++end;
            }
            const std::string slow = short_slowdown_text(topology, topology.server_of(rank));
            rectangle(svg_, 4, row_y_[first] - 2, left_ - 4 + layout_.width,
                      kRowHeight * static_cast<double>(end - first) + 4, slow.empty() ? "band" : "slowband");
            text(12, row_y_[first] + 14, "rank",
                 topology.ranks_per_server > 1 ? fmt::format("rank {}, server {}", rank, topology.server_of(rank))
                                               : fmt::format("rank {}", rank));
            text(12, row_y_[first] + 14 + kRowHeight * 0.85, "slow", slow);
            for (; first < end; ++first) {
                text(left_ - 8, row_y_[first] + 14, "side left", row_text(layout_.rows[first]));
            }
        }
    }

    [[nodiscard]] std::string row_text(const GanttRow& row) const {
        std::string lane;
        if (input_.schedule.lanes() > 1) {
            lane = fmt::format(" lane {}", row.lane);
        }
        return fmt::format("{}{} {}", port_text(row.port), lane, row.sending ? "send" : "receive");
    }

    void draw_axis() {
        const double per_ns = layout_.width / static_cast<double>(layout_.horizon.count());
        double step = std::pow(10, std::floor(std::log10(kTickSpacing / per_ns)));
        for (const double factor : {2.0, 2.5, 2.0}) { // 1, 2, 5, 10
            if (step * per_ns < kTickSpacing) {
                step *= factor;
            }
        }
        step = std::max(1.0, std::round(step));
        line(left_, bottom_, left_ + layout_.width, bottom_, "axis");
        const auto ticks = static_cast<std::int64_t>(static_cast<double>(layout_.horizon.count()) / step);
        for (std::int64_t i = 0; i <= ticks; ++i) {
            const Nanoseconds at(i * static_cast<std::int64_t>(step));
            line(x_of(at), top_ - 2, x_of(at), bottom_ + 4, "grid");
            text(x_of(at), bottom_ + 18, "tick", i == 0 ? "0" : to_string(at));
        }
        text(left_ + layout_.width / 2, bottom_ + 36, "tick", "time since the start");
    }

    void draw_boxes() {
        for (const GanttBox& box : layout_.boxes) {
            const std::string name(box.mixed ? kMixedName : collective::to_string(box.stage));
            const double x = x_of(box.start);
            const double width = std::max(0.4, x_of(box.end) - x);
            pugi::xml_node shape =
                rectangle(svg_, x, row_y_[box.row] + 1, width, kRowHeight - 2, width > 3 ? "box " + name : name);
            if (tooltips_) {
                shape.append_child("title").append_child(pugi::node_pcdata).set_value(box.title.c_str());
            }
            if (!box.label.empty() && kLetter * static_cast<double>(letters(box.label)) + 4 <= width) {
                text(x + width / 2, row_y_[box.row] + 14, "label on-" + name, box.label);
            }
        }
    }

    void draw_line(Nanoseconds at, std::string_view css_class, double text_y, std::string_view label) {
        line(x_of(at), text_y - 10, x_of(at), bottom_ + 4, css_class);
        const bool right = x_of(at) + 180 < full_width(); // of the line there is room for the words
        text(x_of(at) + (right ? 5 : -5), text_y, fmt::format("{}text{}", css_class, right ? "" : " left"), label);
    }

    static constexpr double kLegendSpan = 1000;

    const GanttInput& input_;
    const GanttLayout& layout_;
    bool tooltips_;
    pugi::xml_document document_;
    pugi::xml_node svg_;
    std::map<Stage, bool> stages_;
    bool mixed_ = false;
    std::vector<std::string> notes_;
    std::vector<double> row_y_;
    double left_ = 0;
    double top_ = 0;
    double bottom_ = 0;
};

} // namespace

std::vector<collective::Rank> gantt_ranks(const collective::Topology& topology, const GanttLimits& limits) {
    return choose_ranks(topology, limits.ranks);
}

Result<void> write_gantt_svg(const GanttInput& input, std::ostream& out, const GanttLimits& limits) {
    if (input.simulation.topology.ranks() != input.schedule.ranks()) {
        return fail(ErrorKind::kInput, fmt::format("the topology has {} ranks, the schedule {}",
                                                   input.simulation.topology.ranks(), input.schedule.ranks()));
    }
    const Nanoseconds least = input.bound ? std::max(input.makespan, input.bound->time) : input.makespan;
    const GanttLayout layout =
        lay_out(input.simulation.topology, input.flows, least,
                {.ranks = limits.ranks, .boxes = limits.boxes, .width = limits.width, .narrow = limits.narrow});
    Drawing drawing(input, layout, limits.tooltips);
    drawing.draw();
    drawing.save(out);
    if (!out) {
        return fail(ErrorKind::kInput, "the picture could not be written");
    }
    return {};
}

} // namespace railbreak::planner
