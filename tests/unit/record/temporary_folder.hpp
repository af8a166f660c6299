// A folder for one test, removed with everything in it at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

namespace railbreak::record {

class TemporaryFolder {
public:
    TemporaryFolder() {
        // In memory where it can be: what is tested here is SQLite's order of writes, not the speed of a disk.
        const std::filesystem::path memory = "/dev/shm";
        const bool usable = ::access(memory.c_str(), W_OK | X_OK) == 0;
        std::string pattern =
            ((usable ? memory : std::filesystem::temp_directory_path()) / "railbreak-record-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            ADD_FAILURE() << "cannot make a folder like " << pattern;
        }
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

} // namespace railbreak::record
