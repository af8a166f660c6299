// Plain SQL over SQLite's C interface, so that tests see a database as another program does.
#pragma once

#include <filesystem>
#include <string>

namespace railbreak::record {

/// Runs statements; every row of their results as a line, columns with bars between. A failure fails the test.
std::string sql(const std::filesystem::path& path, const std::string& statements);

} // namespace railbreak::record
