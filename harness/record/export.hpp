// Writes tables and views as files that other programs read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::record {

/// How a table is written. A number keeps all its digits in both.
enum class ExportFormat : std::uint8_t {
    kCsv,       ///< RFC 4180: a line of names, CRLF; nothing between two commas is NULL, "" is an empty text
    kJsonLines, ///< one object a line, keys in the order of the columns; bytes that are not UTF-8 become U+FFFD
};

/// Reads "csv" or "jsonl". kInput for others; for "parquet" it says why there is none, and what to do instead.
[[nodiscard]] Result<ExportFormat> parse_export_format(std::string_view name);

/// What to write where.
struct ExportOptions {
    ExportFormat format = ExportFormat::kCsv;
    std::vector<std::string> tables; ///< names of tables and views; empty: all tables
    std::string run;                 ///< only what belongs to this run (as RunReader::load_run()); empty: everything
    std::filesystem::path folder;    ///< made where it is missing; a file of the same name is replaced
};

/// A file that was written.
struct ExportedTable {
    std::string table;
    std::filesystem::path file; ///< FOLDER/TABLE.csv or FOLDER/TABLE.jsonl
    std::int64_t rows = 0;
};

/// Names of all tables, then of all views, that can be exported.
[[nodiscard]] const std::vector<std::string_view>& exportable_tables();

/// Writes every file as of one moment, each one whole or not at all. kInput for an unknown table, with those that
/// there are, for an unknown run and for a folder that cannot be written.
[[nodiscard]] Result<std::vector<ExportedTable>> export_tables(const std::filesystem::path& path,
                                                               const ExportOptions& options);

} // namespace railbreak::record
