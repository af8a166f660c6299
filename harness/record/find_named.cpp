#include "harness/record/find_named.hpp"

#include <fmt/format.h>

#include "harness/record/columns.hpp"
#include "harness/record/reader.hpp"

namespace railbreak::record {

namespace {

constexpr int kNamesInErrors = 5;

struct Named {
    std::int64_t id;
    std::string name;
};

// The rows whose name begins with `prefix` (all when empty), latest first, at most kNamesInErrors + 1. The bounds let
// SQLite walk over the index of names instead of the table.
std::vector<Named> beginning_with(SQLite::Database& database, const NamedTable& in, const std::string& prefix) {
    SQLite::Statement statement(
        database,
        prefix.empty()
            ? fmt::format("SELECT id, {} FROM {} WHERE ?1 = '' ORDER BY id DESC LIMIT ?2", in.column, in.table)
            : fmt::format("SELECT id, {0} FROM {1} WHERE {0} >= ?1 AND {0} < ?1 || char(1114111) AND "
                          "substr({0}, 1, length(?1)) = ?1 ORDER BY id DESC LIMIT ?2",
                          in.column, in.table));
    bind_all(statement, prefix, kNamesInErrors + 1);
    return all_rows<Named>(statement, [](Columns& c) { return Named{c.int64(), c.text()}; });
}

std::string names(const std::vector<Named>& rows) {
    std::string list;
    for (std::size_t i = 0; i < rows.size() && i < kNamesInErrors; ++i) {
        list += fmt::format("{}{}", i == 0 ? "" : ", ", rows[i].name);
    }
    return list + (rows.size() > kNamesInErrors ? ", ..." : "");
}

} // namespace

Result<std::int64_t> find_named(SQLite::Database& database, const std::filesystem::path& path, const NamedTable& in,
                                std::string_view which) {
    const auto all = beginning_with(database, in, "");
    if (all.empty()) {
        return fail(ErrorKind::kInput, fmt::format("database {}: there is no {} in it yet", path.string(), in.noun));
    }
    if (which == "latest") {
        return all.front().id;
    }
    SQLite::Statement exact(database, fmt::format("SELECT id FROM {} WHERE {} = ?", in.table, in.column));
    bind_all(exact, std::string(which));
    if (exact.executeStep()) {
        return exact.getColumn(0).getInt64();
    }
    const auto found = which.empty() ? decltype(all){} : beginning_with(database, in, std::string(which));
    if (found.empty()) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("database {}: there is no {} \"{}\"", path.string(), in.noun, which))
                .advise(fmt::format("give latest or one of: {}", names(all))));
    }
    if (found.size() > 1) {
        return fail(Error(ErrorKind::kInput, fmt::format("database {}: \"{}\" begins more than one {}'s name",
                                                         path.string(), which, in.noun))
                        .with(kAmbiguous, found.size() > kNamesInErrors ? fmt::format("more than {}", kNamesInErrors)
                                                                        : std::to_string(found.size()))
                        .advise(fmt::format("give more of one of: {}", names(found))));
    }
    return found.front().id;
}

} // namespace railbreak::record
