// Strict converters from YAML nodes to typed values. Every one reports what is wrong and returns nothing then.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/rational.hpp"
#include "base/units.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/fault_model.hpp"
#include "scenarios/format.hpp"
#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

/// Where a value came from, and how it was written (empty for maps and lists).
struct Origin {
    Position at;
    std::string text;
};

/// Origins by path: "cluster.rate", "faults[0].target.host". The checks that compare values find their places here.
using Origins = std::map<std::string, Origin, std::less<>>;

/// One node with its path, as it travels through the reader.
struct Field {
    const YamlNode* node = nullptr; ///< never null
    std::string path;               ///< "" for the whole file

    /// "faults[0].name", or "name" at the top.
    [[nodiscard]] std::string child(std::string_view key) const;
};

/// A fraction in (0, 1], rounded down to millionths.
[[nodiscard]] Millionths to_millionths(const Rational& fraction);
/// A fraction in (0, 1] of a duration, rounded down to nanoseconds.
[[nodiscard]] Nanoseconds part_of(Nanoseconds whole, const Rational& fraction);

/// Reads fields; collects diagnostics and origins.
class FieldReader {
public:
    FieldReader(DiagnosticSink& sink, Origins& origins) : sink_(sink), origins_(origins) {}

    /// Checks that the node is a map with the keys of the section, none unknown, none twice, none missing.
    /// Gives false when it is no map at all.
    bool check_map(const Field& field, const Section& section);
    /// The value of a key, if it is there (the first, should it be there twice).
    [[nodiscard]] std::optional<Field> find(const Field& map, std::string_view key) const;
    /// The elements of a list with between `least` and `most` elements; empty after a complaint.
    std::vector<Field> list(const Field& field, std::size_t least, std::size_t most);

    std::optional<std::string> text(const Field& field);
    std::optional<std::int64_t> integer(const Field& field, std::int64_t min, std::int64_t max);
    std::optional<BitRate> rate(const Field& field, BitRate min, BitRate max);
    std::optional<ByteCount> byte_count(const Field& field, ByteCount min, ByteCount max);
    std::optional<Nanoseconds> duration(const Field& field, Nanoseconds min, Nanoseconds max);
    /// In (0, 1], as "1/2" or 0.5.
    std::optional<Rational> fraction(const Field& field);
    /// In [0, 1], a whole number of millionths, as "1%", "1/1000" or 0.01.
    std::optional<Millionths> probability(const Field& field);
    /// A plain decimal in [0, kMaxLimit] with at most six decimals.
    std::optional<double> limit(const Field& field);
    /// The index of the word in `allowed`.
    std::optional<std::size_t> choice(const Field& field, std::span<const std::string_view> allowed);

    /// Reports "path: what; allowed" at the field.
    void complain(const Field& field, std::string_view what, std::string allowed);

private:
    /// The text of a scalar; `what` says in a complaint what was expected instead of a map, a list or nothing.
    std::optional<std::string_view> scalar(const Field& field, std::string_view what);
    /// The text of a scalar that was not put in quotes.
    std::optional<std::string_view> number_text(const Field& field, std::string_view what);
    template <class Quantity> std::optional<Quantity>
    quantity(const Field& field, Result<Quantity> (*parse)(std::string_view), Quantity min, Quantity max);

    DiagnosticSink& sink_;
    Origins& origins_;
};

} // namespace railbreak::scenarios
