#include "reports/html/chart.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "reports/html/figures.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

namespace {

constexpr std::size_t kSeries = 8;
constexpr std::array<std::string_view, 10> kShapes{
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",                               // circle
    "M-4-4H4V4H-4Z",                                                              // square
    "M0-5.4 5 3.6H-5Z",                                                           // triangle
    "M0-5.6 5.6 0 0 5.6-5.6 0Z",                                                  // diamond
    "M0 5.4 5-3.6H-5Z",                                                           // triangle on its point
    "M-1.6-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5V-1.6H-1.6Z",                        // plus
    "M-5-2.5 0-5.4 5-2.5V2.5L0 5.4-5 2.5Z",                                       // hexagon
    "M-5-3H5V3H-5Z",                                                              // bar
    "M-5-3.6-3.6-5 0-1.4 3.6-5 5-3.6 1.4 0 5 3.6 3.6 5 0 1.4-3.6 5-5 3.6-1.4 0Z", // cross
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0ZM-7 7 7-7",                              // struck ring
};

/// Decimals that tell ticks apart.
int decimals_for(double step) {
    return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
}

/// The number of a tick; never "-0".
std::string tick_text(double value, int decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    return text.find_first_not_of("-0.") == std::string::npos && text.front() == '-' ? text.substr(1) : text;
}

} // namespace

std::vector<double> ticks(double low, double high, int about) {
    const double rough = (high - low) / std::max(about, 1);
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    const double digits = rough / power;
    // As D3 chooses: the script that zooms must agree.
    const double step = power * (digits >= std::sqrt(50)   ? 10
                                 : digits >= std::sqrt(10) ? 5
                                 : digits >= std::sqrt(2)  ? 2
                                                           : 1);
    std::vector<double> found;
    for (double index = std::ceil(low / step - 1e-9); index * step <= high + step * 1e-9; ++index) {
        found.push_back(index * step);
    }
    return found;
}

TimeUnit time_unit(double longest_ns) {
    return longest_ns >= 1e9 ? TimeUnit{"s", 1e9} : longest_ns >= 1e6 ? TimeUnit{"ms", 1e6} : TimeUnit{"\u00B5s", 1e3};
}

std::string series_class(std::size_t series) {
    return fmt::format("s{}", series % kSeries);
}

std::string_view mark_path(std::size_t shape) {
    return kShapes.at(shape < kSeries || shape >= kShapes.size() ? shape % kSeries : shape);
}

Plot::Plot(std::string id, double width, double height, Margins margins)
    : id_(std::move(id)), width_(width), height_(height), margins_(margins) {}

Element& Plot::layer(Layer which) {
    switch (which) {
    case Layer::kBehind: return behind_;
    case Layer::kMoving: return moving_;
    case Layer::kFront: return front_;
    }
    return front_;
}

void Plot::x_axis(const Scale& scale, double unit, std::string_view label, bool zooms) {
    const std::vector<double> values = ticks(scale.low / unit, scale.high / unit, 8);
    const int decimals = values.size() > 1 ? decimals_for(values[1] - values[0]) : 0;
    Element group("g", {{"class", "x"}});
    for (const double value : values) {
        const std::string x = plain(scale(value * unit));
        group.add(html::element("g", {{"class", "tick"}, {"transform", fmt::format("translate({},0)", x)}},
                                Element("line", {{"y1", plain(top())}, {"y2", plain(bottom())}}),
                                html::element("text", {{"y", plain(bottom() + 16)}}, tick_text(value, decimals))));
    }
    axes_.add(std::move(group));
    axes_.add(Element("line", {{"class", "base"},
                               {"x1", plain(left())},
                               {"x2", plain(right())},
                               {"y1", plain(bottom())},
                               {"y2", plain(bottom())}}));
    axes_.add(html::element(
        "text", {{"class", "label"}, {"x", plain((left() + right()) / 2)}, {"y", plain(bottom() + 33)}}, label));
    if (zooms) {
        zoom_ = {{"data-zoom", "x"},
                 {"data-low", fmt::format("{}", scale.low / unit)},
                 {"data-high", fmt::format("{}", scale.high / unit)},
                 {"data-from", plain(scale.from)},
                 {"data-to", plain(scale.to)}};
    }
}

void Plot::y_axis(const Scale& scale, double unit, std::string_view label) {
    const std::vector<double> values = ticks(scale.low / unit, scale.high / unit, 5);
    const int decimals = values.size() > 1 ? decimals_for(values[1] - values[0]) : 0;
    Element group("g", {{"class", "y"}});
    for (const double value : values) {
        group.add(html::element(
            "g", {{"class", "tick"}, {"transform", fmt::format("translate(0,{})", plain(scale(value * unit)))}},
            Element("line", {{"x1", plain(left())}, {"x2", plain(right())}}),
            html::element("text", {{"x", plain(left() - 8)}, {"dy", "4"}}, tick_text(value, decimals))));
    }
    axes_.add(std::move(group));
    axes_.add(html::element(
        "text",
        {{"class", "label"}, {"transform", fmt::format("translate(14,{}) rotate(-90)", plain((top() + bottom()) / 2))}},
        label));
}

namespace {

/// Sets what most shapes have in common.
Element finished(Element shape, std::string_view css, std::string_view title, std::string_view series) {
    if (!css.empty()) {
        shape.set("class", std::string(css));
    }
    if (!series.empty()) {
        shape.set("data-s", std::string(series));
    }
    if (!title.empty()) {
        shape.add(html::element("title", {}, title));
    }
    return shape;
}

} // namespace

void Plot::rectangle(Layer which, double x, double y, double width, double height, std::string_view css,
                     std::string_view title, std::string_view series) {
    layer(which).add(finished(Element("rect", {{"x", plain(x)},
                                               {"y", plain(y)},
                                               {"width", plain(std::max(width, 0.0))},
                                               {"height", plain(std::max(height, 0.0))}}),
                              css, title, series));
}

void Plot::line(Layer which, double x1, double y1, double x2, double y2, std::string_view css, std::string_view title,
                std::string_view series) {
    layer(which).add(
        finished(Element("line", {{"x1", plain(x1)}, {"y1", plain(y1)}, {"x2", plain(x2)}, {"y2", plain(y2)}}), css,
                 title, series));
}

void Plot::text(Layer which, double x, double y, std::string_view css, std::string_view content,
                std::string_view series) {
    Element made = finished(Element("text", {{"x", plain(x)}, {"y", plain(y)}}), css, {}, series);
    layer(which).add(std::move(made.add(content)));
}

void Plot::mark(Layer which, std::size_t shape, double x, double y, std::string_view css, std::string_view title,
                std::string_view series) {
    layer(which).add(finished(Element("path", {{"d", std::string(mark_path(shape))},
                                               {"transform", fmt::format("translate({},{})", plain(x), plain(y))}}),
                              fmt::format("m {}", css), title, series));
}

Element Plot::element(std::string_view title, std::string_view description) const {
    Element svg("svg", {{"viewBox", fmt::format("0 0 {} {}", plain(width_), plain(height_))},
                        {"role", "img"},
                        {"aria-labelledby", fmt::format("{}-title {}-desc", id_, id_)}});
    for (const Attribute& attribute : zoom_) {
        svg.set(attribute.first, attribute.second);
    }
    svg.add(html::element("title", {{"id", id_ + "-title"}}, title));
    svg.add(html::element("desc", {{"id", id_ + "-desc"}}, description));
    Element clip("clipPath", {{"id", id_ + "-clip"}});
    clip.add(Element(
        "rect",
        {{"x", plain(left())}, {"y", "0"}, {"width", plain(right() - left())}, {"height", plain(bottom() + 1)}}));
    svg.add(html::element("defs", {}, std::move(clip)));
    svg.add(behind_).add(axes_);
    svg.add(html::element("g", {{"clip-path", fmt::format("url(#{}-clip)", id_)}},
                          html::element("g", {{"class", "moving"}}, moving_)));
    svg.add(front_);
    return svg;
}

namespace {

Element swatch(const LegendEntry& entry) {
    Element icon("svg", {{"class", "swatch"}, {"viewBox", "-11 -8 22 16"}, {"aria-hidden", "true"}});
    switch (entry.swatch) {
    case LegendEntry::Swatch::kMark:
        icon.add(Element("path", {{"class", "m " + entry.css}, {"d", std::string(mark_path(entry.shape))}}));
        break;
    case LegendEntry::Swatch::kLine:
        icon.add(Element("line", {{"class", entry.css}, {"x1", "-11"}, {"x2", "11"}, {"y1", "0"}, {"y2", "0"}}));
        break;
    case LegendEntry::Swatch::kArea:
        icon.add(Element("rect", {{"class", entry.css}, {"x", "-10"}, {"y", "-6"}, {"width", "20"}, {"height", "12"}}));
        break;
    }
    return icon;
}

} // namespace

Element figure_element(Figure figure) {
    Element made("figure", {{"id", figure.id}, {"data-chart", figure.kind}});
    made.add(element("figcaption", {}, element("h3", {}, figure.title),
                     element("p", {{"class", "how"}}, figure.how_to_read)));
    if (!figure.legend.empty()) {
        Element list("ul", {{"class", "legend"}});
        for (const LegendEntry& entry : figure.legend) {
            Element item("li");
            if (!entry.series.empty()) {
                item.set("data-s", entry.series);
            }
            list.add(item.add(swatch(entry)).add(entry.text));
        }
        made.add(std::move(list));
    }
    made.add(scroll_box(figure.title, element("div", {{"class", "picture"}}, std::move(figure.picture))));
    if (!figure.data.empty()) {
        made.add(std::move(figure.data));
    }
    return made;
}

} // namespace railbreak::reports::html
