// What the readers of the format's sections share: look a key up, convert its value, keep it. Internal to scenarios.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "scenarios/fields.hpp"

namespace railbreak::scenarios {

/// Base of the readers. A key that is not there leaves what it would set as it was.
class MapReader {
protected:
    MapReader(DiagnosticSink& sink, FieldReader& fields) : sink_(sink), fields_(fields) {}

    /// Calls `use` with the value of the key, if it is there.
    template <class Use> void with(const Field& map, std::string_view key, Use use) {
        if (const std::optional<Field> field = fields_.find(map, key); field && !sink_.full()) {
            use(*field);
        }
    }

    template <class From, class To> static void store(const std::optional<From>& from, To& to) {
        if (from) {
            to = static_cast<To>(*from);
        }
    }

    /// One of the words of an enumeration.
    template <class Enum, std::size_t N>
    bool store_choice(const Field& field, const std::array<Enum, N>& values, Enum& to) {
        std::vector<std::string_view> words;
        for (const Enum value : values) {
            words.push_back(to_string(value));
        }
        const auto index = fields_.choice(field, words);
        if (index) {
            to = values[*index];
        }
        return index.has_value();
    }

    template <class Integer>
    void read_integer(const Field& map, std::string_view key, std::int64_t min, std::int64_t max, Integer& to) {
        with(map, key, [&](const Field& field) { store(fields_.integer(field, min, max), to); });
    }

    /// A name: of a scenario, of a fault.
    void read_name(const Field& map, std::string& to, std::string_view key = "name");
    /// "railbreak: 1". A file of another version is not read further: its errors would only mislead; false then.
    bool read_version(const Field& root);
    void read_description(const Field& root, std::string& to);

    DiagnosticSink& sink_;
    FieldReader& fields_;
};

} // namespace railbreak::scenarios
