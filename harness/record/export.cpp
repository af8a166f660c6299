#include "harness/record/export.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "base/output_file.hpp"
#include "harness/record/columns.hpp"
#include "harness/record/find_named.hpp"
#include "harness/record/reader_impl.hpp"

namespace railbreak::record {

namespace {

/// A table or view; how to pick what belongs to a run: the condition has one parameter, the run's id.
struct Exportable {
    std::string_view name;
    std::string_view of_run;
    std::string_view order; ///< of a table; a view has its own
    std::int32_t since_schema = 1;
};

constexpr std::string_view kByRun = "run = ?";
constexpr std::string_view kByName = "run_id = (SELECT run_id FROM runs WHERE id = ?)";

constexpr std::array<Exportable, 25> kExportable{{
    {"runs", "id = ?", "id"},
    {"hosts", kByRun, "run, host"},
    {"nics", kByRun, "run, host, nic"},
    {"ranks", kByRun, "run, rank"},
    {"injections", kByRun, "id"},
    {"events", kByRun, "id"},
    {"iterations", kByRun, "id"},
    {"rank_iterations", "iteration IN (SELECT id FROM iterations WHERE run = ?)", "iteration, rank"},
    {"counters", kByRun, "id"},
    {"bounds", kByRun, "run, algorithm, phase, model, name"},
    {"verdicts", kByRun, "id"},
    {"artefacts", kByRun, "run, name"},
    {"suites", "id IN (SELECT suite FROM suite_items WHERE run = ?)", "id", kSchemaOfManyRuns},
    {"suite_items", kByRun, "suite, item", kSchemaOfManyRuns},
    {"baselines", kByRun, "tag, run", kSchemaOfManyRuns},
    {"v_runs", kByName, ""},
    {"v_iterations", kByName, ""},
    {"v_rank_iterations", kByName, ""},
    {"v_injections", kByName, ""},
    {"v_events", kByName, ""},
    {"v_verdicts", kByName, ""},
    {"v_summary", kByName, ""},
    {"v_suites", "suite_id IN (SELECT s.suite_id FROM suites s JOIN suite_items i ON i.suite = s.id WHERE i.run = ?)",
     "", kSchemaOfManyRuns},
    {"v_suite_items", kByName, "", kSchemaOfManyRuns},
    {"v_baselines", kByName, "", kSchemaOfManyRuns},
}};

const Exportable* find_exportable(std::string_view name) {
    const auto found = std::ranges::find(kExportable, name, &Exportable::name);
    return found != kExportable.end() ? &*found : nullptr;
}

// Whether a spreadsheet would take the text for a formula: names and messages may have been written by anybody. A text
// that is a number means the same there.
bool looks_like_formula(const std::string& text) {
    if (text.empty() || std::string_view("=+-@\t\r").find(text.front()) == std::string_view::npos) {
        return false;
    }
    const char* const end = text.data() + text.size();
    const bool plain = text.find_first_not_of("0123456789.eE+-") == std::string::npos;
    double number = 0;
    const auto [rest, error] = std::from_chars(text.data() + (text.front() == '+' ? 1 : 0), end, number);
    return !plain || error != std::errc() || rest != end;
}

std::string csv_text(const std::string& text) {
    if (looks_like_formula(text)) {
        return csv_text("'" + text);
    }
    if (!text.empty() && text.find_first_of("\",\r\n") == std::string::npos) {
        return text;
    }
    std::string out = "\"";
    for (const char letter : text) {
        out += letter;
        if (letter == '"') {
            out += '"';
        }
    }
    return out + "\"";
}

std::string csv_value(const SQLite::Column& column) {
    if (column.isInteger()) {
        return std::to_string(column.getInt64());
    }
    if (column.isFloat()) {
        return fmt::format("{}", column.getDouble());
    }
    return column.isNull() ? "" : csv_text(column.getString());
}

std::string json_text(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_value(const SQLite::Column& column) {
    if (column.isInteger()) {
        return std::to_string(column.getInt64());
    }
    if (column.isFloat()) {
        const double value = column.getDouble();
        return std::isfinite(value) ? fmt::format("{}", value) : "null";
    }
    return column.isNull() ? "null" : json_text(column.getString());
}

void write_csv_names(SQLite::Statement& statement, std::ostream& out) {
    for (int i = 0; i < statement.getColumnCount(); ++i) {
        out << (i == 0 ? "" : ",") << csv_text(statement.getColumnName(i));
    }
    out << "\r\n";
}

void write_row(SQLite::Statement& statement, ExportFormat format, const std::vector<std::string>& keys,
               std::ostream& out) {
    switch (format) {
    case ExportFormat::kCsv:
        for (int i = 0; i < statement.getColumnCount(); ++i) {
            out << (i == 0 ? "" : ",") << csv_value(statement.getColumn(i));
        }
        out << "\r\n";
        return;
    case ExportFormat::kJsonLines:
        for (int i = 0; i < statement.getColumnCount(); ++i) {
            out << (i == 0 ? "{" : ",") << keys[static_cast<std::size_t>(i)] << ":"
                << json_value(statement.getColumn(i));
        }
        out << "}\n";
        return;
    }
}

std::string_view extension(ExportFormat format) {
    switch (format) {
    case ExportFormat::kCsv: return "csv";
    case ExportFormat::kJsonLines: return "jsonl";
    }
    return "";
}

// Writes one table; the statement's exceptions pass through write_file(), which leaves no part behind, so they are
// caught here.
Result<ExportedTable> export_one(SQLite::Database& database, const std::filesystem::path& path, const Exportable& table,
                                 std::optional<std::int64_t> run, const ExportOptions& options) {
    ExportedTable done{std::string(table.name),
                       options.folder / fmt::format("{}.{}", table.name, extension(options.format)), 0};
    const std::string sql =
        fmt::format("SELECT * FROM {}{}{}", table.name, run ? fmt::format(" WHERE {}", table.of_run) : std::string(),
                    table.order.empty() ? std::string() : fmt::format(" ORDER BY {}", table.order));
    Result<void> written = write_file(done.file, [&](std::ostream& out) {
        return guarded(path, fmt::format("export {}", table.name), [&] {
            SQLite::Statement statement(database, sql);
            if (run) {
                bind_all(statement, *run);
            }
            std::vector<std::string> keys;
            for (int i = 0; i < statement.getColumnCount(); ++i) {
                keys.push_back(json_text(statement.getColumnName(i)));
            }
            if (options.format == ExportFormat::kCsv) {
                write_csv_names(statement, out);
            }
            while (out.good() && statement.executeStep()) {
                write_row(statement, options.format, keys, out);
                ++done.rows;
            }
        });
    });
    if (!written) {
        return tl::unexpected(std::move(written).error());
    }
    return done;
}

Result<std::vector<const Exportable*>> choose_tables(const ExportOptions& options, std::int32_t schema) {
    std::vector<const Exportable*> chosen;
    for (const std::string& name : options.tables) {
        const Exportable* table = find_exportable(name);
        if (table == nullptr) {
            return fail(Error(ErrorKind::kInput, fmt::format("there is no table \"{}\"", name))
                            .advise(fmt::format("give one of: {}", fmt::join(exportable_tables(), ", "))));
        }
        if (table->since_schema > schema) {
            return fail(Error(ErrorKind::kInput, fmt::format("there is no table \"{}\" in schema {}", name, schema))
                            .advise("the next run that is recorded makes it"));
        }
        if (std::ranges::find(chosen, table) == chosen.end()) {
            chosen.push_back(table);
        }
    }
    if (options.tables.empty()) {
        for (const Exportable& table : kExportable) {
            if (!table.order.empty() && table.since_schema <= schema) {
                chosen.push_back(&table);
            }
        }
    }
    return chosen;
}

Result<void> make_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        return fail(ErrorKind::kInput, fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
    }
    return {};
}

} // namespace

Result<ExportFormat> parse_export_format(std::string_view name) {
    if (name == "csv") {
        return ExportFormat::kCsv;
    }
    if (name == "jsonl") {
        return ExportFormat::kJsonLines;
    }
    if (name == "parquet") {
        return fail(Error(ErrorKind::kInput, "Parquet cannot be written: Debian packages no library that does")
                        .advise("export csv or jsonl and convert it, for example with DuckDB: COPY (FROM "
                                "'rank_iterations.csv') TO 'rank_iterations.parquet'"));
    }
    return fail(
        Error(ErrorKind::kInput, fmt::format("there is no export format \"{}\"", name)).advise("give csv or jsonl"));
}

const std::vector<std::string_view>& exportable_tables() {
    static const std::vector<std::string_view> kNames = [] {
        std::vector<std::string_view> names;
        for (const Exportable& table : kExportable) {
            names.push_back(table.name);
        }
        return names;
    }();
    return kNames;
}

Result<std::vector<ExportedTable>> export_tables(const std::filesystem::path& path, const ExportOptions& options) {
    auto database = open_for_reading(path);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    using Tables = std::vector<ExportedTable>;
    return flatten(guarded(path, "export it", [&]() -> Result<Tables> {
        SQLite::Transaction transaction(**database); // all tables as of one moment
        std::optional<std::int64_t> run;
        if (!options.run.empty()) {
            Result<std::int64_t> found = find_named(**database, path, kRuns, options.run);
            if (!found) {
                return tl::unexpected(std::move(found).error());
            }
            run = *found;
        }
        const auto chosen = choose_tables(options, (*database)->execAndGet("PRAGMA user_version").getInt());
        if (!chosen) {
            return tl::unexpected(chosen.error());
        }
        if (const Result<void> made = make_folder(options.folder); !made) {
            return tl::unexpected(made.error());
        }
        Tables tables;
        for (const Exportable* table : *chosen) {
            Result<ExportedTable> one = export_one(**database, path, *table, run, options);
            if (!one) {
                return tl::unexpected(std::move(one).error());
            }
            tables.push_back(std::move(*one));
        }
        return tables;
    }));
}

} // namespace railbreak::record
