#include "tests/tidy/rules.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace railbreak::tidy {

namespace {

bool is_word(char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_';
}

/// Position of `word` in `line` as a whole word, from `from` on; npos when there is none.
std::size_t find_word(std::string_view line, std::string_view word, std::size_t from = 0) {
    for (std::size_t at = line.find(word, from); at != std::string_view::npos; at = line.find(word, at + 1)) {
        const bool starts = at == 0 || !is_word(line[at - 1]);
        const bool ends = at + word.size() >= line.size() || !is_word(line[at + word.size()]);
        if (starts && ends) {
            return at;
        }
    }
    return std::string_view::npos;
}

bool has_call(std::string_view line, std::string_view name) {
    for (std::size_t at = find_word(line, name); at != std::string_view::npos; at = find_word(line, name, at + 1)) {
        const std::size_t next = line.find_first_not_of(' ', at + name.size());
        if (next != std::string_view::npos && line[next] == '(') {
            return true;
        }
    }
    return false;
}

bool has_limits(const SourceFile& file) {
    return file.is_cpp() || file.path.ends_with("CMakeLists.txt") || file.path.ends_with(".cmake") ||
           file.path.ends_with(".sh") || file.path == "dev" || file.path == ".ci/run";
}

std::size_t columns_of(std::string_view line) {
    return static_cast<std::size_t>(
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

int line_number(std::size_t index) {
    return static_cast<int>(index) + 1;
}

} // namespace

void check_file_length(const SourceFile& file, Findings& out) {
    const int count = static_cast<int>(file.lines.size());
    if (has_limits(file) && count > kMaxFileLines) {
        out.push_back({"file-length", file.path, 0, fmt::format("{} lines, at most {}", count, kMaxFileLines)});
    }
}

void check_line_length(const SourceFile& file, Findings& out) {
    for (std::size_t i = 0; has_limits(file) && i < file.lines.size(); ++i) {
        if (const std::size_t columns = columns_of(file.lines[i]); columns > kMaxColumns) {
            out.push_back({"line-length", file.path, line_number(i), fmt::format("{} columns", columns)});
        }
    }
}

void check_banned(const SourceFile& file, Findings& out) {
    static constexpr std::array<std::string_view, 15> kCalls{
        "system", "popen",  "sleep_for", "sleep_until", "usleep", "sleep",    "nanosleep", "rand",
        "srand",  "strcpy", "strcat",    "sprintf",     "gets",   "vsprintf", "tmpnam"};
    for (std::size_t i = 0; i < file.code.size(); ++i) {
        for (const std::string_view name : kCalls) {
            if (has_call(file.code[i], name)) {
                out.push_back({"banned", file.path, line_number(i), fmt::format("call of {}", name)});
            }
        }
        if (find_word(file.code[i], "random_device") != std::string_view::npos) {
            out.push_back({"banned", file.path, line_number(i), "randomness that no seed repeats"});
        }
    }
    if (!file.is_product()) {
        return; // a test may compare with what the usual programs show
    }
    static constexpr std::array<std::string_view, 7> kPrograms{"/sbin/ip",  "/sbin/tc", "/bin/ip",  "/bin/tc",
                                                               "tc qdisc ", "ip link ", "ip netns "};
    for (const Literal& literal : file.literals) {
        const std::string& code = file.code[static_cast<std::size_t>(literal.line) - 1];
        const bool is_argument = code.find("exec") != std::string::npos || code.find("spawn") != std::string::npos;
        bool names_program = is_argument && (literal.text == "ip" || literal.text == "tc");
        for (const std::string_view program : kPrograms) {
            names_program = names_program || literal.text.find(program) != std::string::npos;
        }
        if (names_program) {
            out.push_back({"banned", file.path, literal.line, fmt::format("the program in \"{}\"", literal.text)});
        }
    }
}

void check_default(const SourceFile& file, Findings& out) {
    for (std::size_t i = 0; file.is_product() && i < file.code.size(); ++i) {
        const std::size_t at = find_word(file.code[i], "default");
        if (at == std::string::npos || file.code[i].find_first_not_of(' ', at + 7) == std::string::npos ||
            file.code[i][file.code[i].find_first_not_of(' ', at + 7)] != ':') {
            continue;
        }
        const std::string& raw = file.lines[i];
        if (raw.find("// foreign enum") == std::string::npos && raw.find("// not an enum") == std::string::npos) {
            out.push_back({"default", file.path, line_number(i),
                           "list every value of an enum of ours; otherwise add // foreign enum or // not an enum"});
        }
    }
}

void check_header(const SourceFile& file, Findings& out) {
    if (!file.is_header()) {
        return;
    }
    if (file.lines.empty() || !file.lines.front().starts_with("//")) {
        out.push_back({"header", file.path, 1, "a header opens with a comment that says what it is for"});
    }
    if (std::ranges::find(file.lines, "#pragma once") == file.lines.end()) {
        out.push_back({"header", file.path, 1, "no #pragma once"});
    }
}

void check_words(const SourceFile& file, Findings& out) {
    // In two halves each, or this file would be its own first finding.
    static const std::array<std::string, 6> kWords{std::string("/wo") + "rk/",  std::string("shared/des") + "ign",
                                                   std::string("iss") + "ue #", std::string("sub") + "agent",
                                                   std::string("/tm") + "p/rb", std::string("/bash_") + "jobs"};
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        std::string lower = file.lines[i];
        std::ranges::transform(lower, lower.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? char(c + 32) : c; });
        for (const std::string& word : kWords) {
            if (lower.find(word) != std::string::npos) {
                out.push_back({"words", file.path, line_number(i), fmt::format("\"{}\"", word)});
            }
        }
    }
}

void check_dead_files(const std::vector<SourceFile>& files, Findings& out) {
    std::set<std::string> used;
    for (const SourceFile& file : files) {
        const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
        for (std::string line : file.lines) {
            if (file.is_cpp()) {
                const std::string included = quoted_include(line);
                if (included != file.path) {
                    used.insert(included);
                }
            } else if (file.path.ends_with("CMakeLists.txt")) {
                std::ranges::replace_if(
                    line, [](char c) { return c == '(' || c == ')' || c == '"'; }, ' ');
                std::istringstream words(line.substr(0, line.find('#')));
                for (std::string word; words >> word;) {
                    used.insert((folder / word).lexically_normal().generic_string());
                }
            }
        }
    }
    for (const SourceFile& file : files) {
        if (file.is_cpp() && !used.contains(file.path)) {
            out.push_back({"dead-file", file.path, 0, "neither in a CMakeLists.txt nor included by another file"});
        }
    }
}

void check_packages(const std::vector<SourceFile>& files, Findings& out) {
    std::set<std::string> listed;
    for (const SourceFile& file : files) {
        for (std::size_t i = 0; file.path == "packages.txt" && i < file.lines.size(); ++i) {
            listed.insert(file.lines[i].substr(file.lines[i].find(' ') + 1));
        }
    }
    for (const SourceFile& file : files) {
        for (std::size_t i = 0; file.path == "cmake/Dependencies.cmake" && i < file.lines.size(); ++i) {
            // railbreak_need(CONDITION PACKAGES "what is missing")
            std::string line = file.lines[i];
            std::ranges::replace_if(
                line, [](char c) { return c == '"' || c == ';' || c == '(' || c == ')'; }, ' ');
            std::istringstream words(line);
            for (std::string word; words >> word;) {
                if (word.ends_with("-dev") && !listed.contains(word)) {
                    out.push_back({"packages", file.path, line_number(i), fmt::format("{} is not listed", word)});
                }
            }
        }
    }
}

Findings check_all(const std::vector<SourceFile>& files) {
    Findings out;
    for (const SourceFile& file : files) {
        check_file_length(file, out);
        check_line_length(file, out);
        check_function_length(file, out);
        check_layers(file, out);
        check_banned(file, out);
        check_default(file, out);
        check_header(file, out);
        check_words(file, out);
    }
    check_dead_files(files, out);
    check_packages(files, out);
    return out;
}

} // namespace railbreak::tidy
