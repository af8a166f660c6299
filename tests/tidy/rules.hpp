// The house rules that a machine can check. Each takes files and gives findings; none touches the disk, so that each
// can be shown to fire on a bad sample.
#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_file.hpp"

namespace railbreak::tidy {

inline constexpr int kMaxFileLines = 500;
inline constexpr int kMaxFunctionLines = 70;
inline constexpr std::size_t kMaxColumns = 120;

/// A broken rule and where.
struct Finding {
    std::string rule; ///< the name that the list of exceptions uses
    std::string path;
    int line = 0; ///< from 1; 0 means the whole file
    std::string what;
};
using Findings = std::vector<Finding>;

/// "file-length": C++, CMake and shell files have at most kMaxFileLines lines.
void check_file_length(const SourceFile& file, Findings& out);
/// "line-length": and none of their lines is wider than kMaxColumns.
void check_line_length(const SourceFile& file, Findings& out);
/// "function-length": no function body, free or in a class, spans more than kMaxFunctionLines, braces included.
void check_function_length(const SourceFile& file, Findings& out);
/// "layers": a module includes only the modules below it, by path from the root, and only the owner of a library
/// (SQLite, YAML, command line) includes that library.
void check_layers(const SourceFile& file, Findings& out);
/// "banned": no shell, no sleeping, no hidden randomness, no unbounded string function, no `ip` or `tc` program.
void check_banned(const SourceFile& file, Findings& out);
/// "default": in product code a `default:` says in a comment that it is over something that is not ours to list.
void check_default(const SourceFile& file, Findings& out);
/// "header": a header opens with a comment and has #pragma once.
void check_header(const SourceFile& file, Findings& out);
/// "words": nothing that is committed speaks of how or where it was made.
void check_words(const SourceFile& file, Findings& out);
/// "dead-file": every .cpp and .hpp is listed in a CMakeLists.txt or included by another file.
void check_dead_files(const std::vector<SourceFile>& files, Findings& out);

/// "packages": every Debian package that cmake/Dependencies.cmake asks for stands in packages.txt.
void check_packages(const std::vector<SourceFile>& files, Findings& out);

/// All of the above.
[[nodiscard]] Findings check_all(const std::vector<SourceFile>& files);

} // namespace railbreak::tidy
