#include "tests/unit/record/plain_sql.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace railbreak::record {

std::string sql(const std::filesystem::path& path, const std::string& statements) {
    sqlite3* database = nullptr;
    std::string text;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    const auto append = [](void* out, int n, char** values, char**) {
        for (int i = 0; i < n; ++i) {
            *static_cast<std::string*>(out) += std::string(i == 0 ? "" : "|") + (values[i] != nullptr ? values[i] : "");
        }
        *static_cast<std::string*>(out) += "\n";
        return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), append, &text, &error), SQLITE_OK)
        << statements << ": " << (error != nullptr ? error : "");
    sqlite3_free(error);
    sqlite3_close(database);
    return text;
}

} // namespace railbreak::record
