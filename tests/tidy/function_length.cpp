// Finds function bodies by matching braces in formatted code.
//
// Every opening brace is classified by the text between it and the previous ';', '{' or '}': a namespace, a type, or -
// when all braces around it are namespaces and types, and the text has a parameter list - a function. Everything else
// (blocks, lambdas, initialisers) is part of what surrounds it. Preprocessor lines are skipped.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/tidy/rules.hpp"

namespace railbreak::tidy {

namespace {

enum class Scope { kNamespace, kType, kFunction, kOther };

bool starts_with_word(std::string_view text, std::string_view word) {
    return text.starts_with(word) && (text.size() == word.size() || text[word.size()] == ' ');
}

/// Drops leading spaces and "template <...>".
std::string_view without_template(std::string_view text) {
    for (;;) {
        const std::size_t first = text.find_first_not_of(' ');
        if (first == std::string_view::npos) {
            return {};
        }
        text.remove_prefix(first);
        if (!starts_with_word(text, "template")) {
            return text;
        }
        int depth = 0;
        std::size_t at = text.find('<');
        for (; at < text.size(); ++at) {
            depth += text[at] == '<' ? 1 : 0;
            depth -= text[at] == '>' ? 1 : 0;
            if (depth == 0) {
                break;
            }
        }
        text.remove_prefix(at < text.size() ? at + 1 : text.size());
    }
}

/// True when `text` assigns outside parentheses: an initialiser, not a function. "operator==" and the like do not.
bool assigns(std::string_view text) {
    int depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        depth += text[at] == '(' || text[at] == '<' ? 1 : 0;
        depth -= text[at] == ')' || text[at] == '>' ? 1 : 0;
        if (depth == 0 && text[at] == '=' && text.substr(0, at).find("operator") == std::string_view::npos) {
            return true;
        }
    }
    return false;
}

Scope classify(std::string_view before, Scope around) {
    const std::string_view text = without_template(before);
    if (around == Scope::kFunction || around == Scope::kOther) {
        return Scope::kOther;
    }
    if (text.find("namespace") != std::string_view::npos || starts_with_word(text, "extern")) {
        return Scope::kNamespace;
    }
    for (const std::string_view key : {"class", "struct", "union", "enum"}) {
        if (starts_with_word(text, key)) {
            return Scope::kType;
        }
    }
    const bool has_parameters = text.find('(') != std::string_view::npos;
    return has_parameters && !assigns(text) ? Scope::kFunction : Scope::kOther;
}

struct Open {
    Scope scope;
    int line;
};

/// Everything that the walk remembers.
class Walk {
public:
    Walk(const SourceFile& file, Findings& out) : file_(file), out_(out) {}

    void step(char c, int line) {
        if (c == '{') {
            open_.push_back({classify(before_, open_.empty() ? Scope::kNamespace : open_.back().scope), line});
            before_.clear();
        } else if (c == '}') {
            close(line);
            before_.clear();
        } else if (c == ';') {
            before_.clear();
        } else {
            before_ += c;
        }
    }

private:
    void close(int line) {
        if (open_.empty()) {
            return;
        }
        const Open last = open_.back();
        open_.pop_back();
        const int length = line - last.line + 1;
        if (last.scope == Scope::kFunction && length > kMaxFunctionLines) {
            out_.push_back({"function-length", file_.path, last.line,
                            fmt::format("a function of {} lines, at most {}", length, kMaxFunctionLines)});
        }
    }

    const SourceFile& file_;
    Findings& out_;
    std::vector<Open> open_;
    std::string before_;
};

} // namespace

void check_function_length(const SourceFile& file, Findings& out) {
    Walk walk(file, out);
    bool preprocessor = false;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
        const std::string& line = file.code[i];
        const std::size_t first = line.find_first_not_of(' ');
        preprocessor = preprocessor || (first != std::string::npos && line[first] == '#');
        if (preprocessor) {
            preprocessor = line.ends_with('\\');
            continue;
        }
        for (const char c : line) {
            walk.step(c, static_cast<int>(i) + 1);
        }
        walk.step(' ', static_cast<int>(i) + 1); // a line end separates words
    }
}

} // namespace railbreak::tidy
