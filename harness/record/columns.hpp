// Rows out of statements, for the readers. Internal to harness/record.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/database.hpp"

namespace railbreak::record {

/// Walks over the columns of a statement's present row, so that a row is read in the order of its SELECT.
class Columns {
public:
    explicit Columns(SQLite::Statement& statement) : statement_(statement) {}

    std::int64_t int64() { return statement_.getColumn(next_++).getInt64(); }
    std::int32_t int32() { return statement_.getColumn(next_++).getInt(); }
    double real() { return statement_.getColumn(next_++).getDouble(); }
    bool boolean() { return int32() != 0; }
    std::string text() { return statement_.getColumn(next_++).getString(); }
    /// A number that is stored as text, because SQLite has no unsigned 64-bit ones.
    std::uint64_t unsigned_text() {
        const std::string digits = text();
        std::uint64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    }
    std::optional<double> optional_real() {
        const SQLite::Column column = statement_.getColumn(next_++);
        return column.isNull() ? std::nullopt : std::optional(column.getDouble());
    }

private:
    SQLite::Statement& statement_;
    int next_ = 0;
};

/// All rows of a statement whose values are bound, each made by `make(Columns&)`.
template <class Row, class Make> std::vector<Row> all_rows(SQLite::Statement& statement, Make make) {
    std::vector<Row> rows;
    while (statement.executeStep()) {
        Columns columns(statement);
        rows.push_back(make(columns));
    }
    return rows;
}

/// All rows of `sql`, whose only parameter is an id.
template <class Row, class Make>
std::vector<Row> rows_of(SQLite::Database& database, const char* sql, std::int64_t id, Make make) {
    SQLite::Statement statement(database, sql);
    bind_all(statement, id);
    return all_rows<Row>(statement, make);
}

} // namespace railbreak::record
