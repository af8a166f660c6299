// A source file as the tidy rules see it: the raw lines, and the same lines with comments and the contents of
// literals blanked, so that a rule about code never trips over prose.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace railbreak::tidy {

/// The content of one string literal and the line (from 1) on which it starts.
struct Literal {
    int line = 0;
    std::string text;
};

/// One text file of the repository.
struct SourceFile {
    std::string path;               ///< relative to the repository root, with '/'
    std::vector<std::string> lines; ///< as in the file, without line ends
    std::vector<std::string> code;  ///< C++ only: `lines` with comments and literal contents replaced by spaces
    std::vector<Literal> literals;  ///< C++ only: the string literals

    /// True for .cpp and .hpp.
    [[nodiscard]] bool is_cpp() const { return path.ends_with(".cpp") || is_header(); }
    [[nodiscard]] bool is_header() const { return path.ends_with(".hpp"); }
    /// C++ outside tests/.
    [[nodiscard]] bool is_product() const { return is_cpp() && !path.starts_with("tests/"); }
};

/// Splits `text` into lines and, for C++, separates code from comments and literals.
[[nodiscard]] SourceFile make_source(std::string path, std::string_view text);

/// The path named by a line of the form: #include "path". Empty for any other line.
[[nodiscard]] std::string quoted_include(const std::string& line);
/// The path named by a line of the form: #include <path>. Empty for any other line.
[[nodiscard]] std::string angled_include(const std::string& line);

} // namespace railbreak::tidy
