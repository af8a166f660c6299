// The house rules over the whole repository. A finding that has a reason stands in exceptions.txt ("rule path" per
// line); an entry that is no longer needed is itself a failure, so the list can only shrink.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tidy/rules.hpp"

namespace railbreak::tidy {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = RAILBREAK_SOURCE_DIR;

std::string read(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    EXPECT_TRUE(stream) << path;
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// Text files of the fixed layout. What lies elsewhere (build folders, a user's own scripts) is not ours to judge.
std::vector<SourceFile> repository() {
    std::vector<fs::path> paths;
    for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md", "dev",
                             "packages.txt", ".clang-format", ".clang-tidy", ".gitignore", ".ci/run"}) {
        paths.push_back(kRoot / name);
    }
    for (const char* folder :
         {"base", "kernels", "collective", "injectors", "scenarios", "harness", "reports", "tests", "cmake", "docs"}) {
        if (!fs::exists(kRoot / folder)) {
            continue;
        }
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder)) {
            if (entry.is_regular_file()) {
                paths.push_back(entry.path());
            }
        }
    }
    std::vector<SourceFile> files;
    for (const fs::path& path : paths) {
        files.push_back(make_source(fs::relative(path, kRoot).generic_string(), read(path)));
    }
    return files;
}

std::set<std::string> exceptions() {
    std::istringstream text(read(kRoot / "tests/tidy/exceptions.txt"));
    std::set<std::string> entries;
    for (std::string line; std::getline(text, line);) {
        if (!line.empty() && line.front() != '#') {
            entries.insert(line);
        }
    }
    return entries;
}

TEST(Tidy, TheRepositoryKeepsTheHouseRules) {
    const std::vector<SourceFile> files = repository();
    ASSERT_GT(files.size(), 50U) << "the walk found too little: is " << kRoot << " the source folder?";
    const std::set<std::string> allowed = exceptions();
    std::set<std::string> needed;
    for (const Finding& finding : check_all(files)) {
        const std::string entry = finding.rule + " " + finding.path;
        if (allowed.contains(entry)) {
            needed.insert(entry);
        } else {
            ADD_FAILURE() << finding.path << ":" << finding.line << ": [" << finding.rule << "] " << finding.what;
        }
    }
    EXPECT_EQ(needed, allowed) << "exceptions.txt holds what is no longer needed; remove it";
}

} // namespace
} // namespace railbreak::tidy
