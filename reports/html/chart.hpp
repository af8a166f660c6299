// What all charts of a page are made of: scales, axes, marks, legends. A chart is complete as it is written; the page's
// script only moves, hides and explains what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/html/element.hpp"

namespace railbreak::reports::html {

/// Width of a figure as wide as the page.
inline constexpr double kFigureWidth = 1040;
/// Width that a letter of a label takes at most.
inline constexpr double kLetterWidth = 7.2;

/// From values to pixels, linearly.
struct Scale {
    double low = 0;  ///< value at `from`
    double high = 1; ///< value at `to`; above low
    double from = 0;
    double to = 1;
    [[nodiscard]] double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

/// Round values in a range, about as many as asked for: 1, 2 or 5 times a power of ten apart.
[[nodiscard]] std::vector<double> ticks(double low, double high, int about);

/// The unit in which times up to `longest` read well: "s", "ms" or "µs", and its nanoseconds.
struct TimeUnit {
    std::string_view name;
    double nanoseconds = 1;
};
[[nodiscard]] TimeUnit time_unit(double longest_ns);

/// Different shapes and colours for up to eight series; beyond that they repeat.
[[nodiscard]] std::string series_class(std::size_t series);

/// The drawing area of a chart and what is drawn in it. Coordinates are pixels of a picture of `width` by `height`.
class Plot {
public:
    /// Free room around the plotted area.
    struct Margins {
        double left = 64;
        double right = 18;
        double top = 14;
        double bottom = 40;
    };
    /// `id` is unique in the page and safe in an attribute; `title` and `description` are for who does not see it.
    Plot(std::string id, double width, double height, Margins margins);

    [[nodiscard]] double left() const { return margins_.left; }
    [[nodiscard]] double right() const { return width_ - margins_.right; }
    [[nodiscard]] double top() const { return margins_.top; }
    [[nodiscard]] double bottom() const { return height_ - margins_.bottom; }

    /// A horizontal axis below the area with grid lines; `unit` divides values into what is written. Where the script
    /// may zoom it, it needs to know the scale: see the data- attributes.
    void x_axis(const Scale& scale, double unit, std::string_view label, bool zooms = false);
    /// A vertical axis at the left with grid lines.
    void y_axis(const Scale& scale, double unit, std::string_view label);

    /// Elements of the moving layer are clipped to the area and move with the zoom; others stay.
    enum class Layer : unsigned char { kBehind, kMoving, kFront };
    void rectangle(Layer layer, double x, double y, double width, double height, std::string_view css,
                   std::string_view title = {}, std::string_view series = {});
    void line(Layer layer, double x1, double y1, double x2, double y2, std::string_view css,
              std::string_view title = {}, std::string_view series = {});
    void text(Layer layer, double x, double y, std::string_view css, std::string_view content,
              std::string_view series = {});
    /// The mark of a series: its own shape around a point.
    void mark(Layer layer, std::size_t shape, double x, double y, std::string_view css, std::string_view title,
              std::string_view series = {});

    /// The picture.
    [[nodiscard]] Element element(std::string_view title, std::string_view description) const;

private:
    Element& layer(Layer which);
    std::string id_;
    double width_;
    double height_;
    Margins margins_;
    Element axes_{"g", {{"class", "axes"}}};
    Element behind_{"g"};
    Element moving_{"g"};
    Element front_{"g"};
    std::vector<Attribute> zoom_;
};

/// The outline of a series' mark, about 9 pixels wide, around the origin.
[[nodiscard]] std::string_view mark_path(std::size_t shape);
/// Shapes beyond those of series.
inline constexpr std::size_t kFailedShape = 8; ///< a cross
inline constexpr std::size_t kWrongShape = 9;  ///< a struck ring

/// One entry of a legend.
struct LegendEntry {
    /// How its swatch looks.
    enum class Swatch : unsigned char { kMark, kLine, kArea };
    std::string text;
    Swatch swatch = Swatch::kMark;
    std::string css{};     ///< of the swatch
    std::size_t shape = 0; ///< of a mark
    std::string series{};  ///< what it shows and hides; empty: it only explains
};

/// A chart with everything around it: heading, how to read it, legend, the picture in a box of its own, the data.
struct Figure {
    std::string id;
    std::string kind; ///< "timeline", ...: for the script
    std::string title;
    std::string how_to_read;
    std::vector<LegendEntry> legend;
    Element picture;
    Element data; ///< table or nothing
};
[[nodiscard]] Element figure_element(Figure figure);

} // namespace railbreak::reports::html
