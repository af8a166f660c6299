#include "tests/tidy/source_file.hpp"

#include <cctype>
#include <utility>

namespace railbreak::tidy {

namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::vector<std::string> split_lines(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

/// Walks once over the text and copies it, with everything that is not code blanked. Line ends stay where they are.
class Blanker {
public:
    explicit Blanker(std::string_view text) : text_(text) {}

    void run(SourceFile& file) {
        while (at_ < text_.size()) {
            if (looking_at("//")) {
                blank_until("\n", false);
            } else if (looking_at("/*")) {
                blank_until("*/", true);
            } else if (text_[at_] == '"' && at_ > 0 && text_[at_ - 1] == 'R') {
                raw_string(file);
            } else if (text_[at_] == '"') {
                quoted('"', &file);
            } else if (text_[at_] == '\'' && !digit_separator()) {
                quoted('\'', nullptr);
            } else {
                keep();
            }
        }
        file.code = split_lines(out_);
    }

private:
    [[nodiscard]] bool looking_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
    /// The quote in 1'000 is none; the one in u'x' is.
    [[nodiscard]] bool digit_separator() const {
        return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0 && at_ + 1 < text_.size() &&
               is_word(text_[at_ + 1]) && (at_ + 2 >= text_.size() || text_[at_ + 2] != '\'');
    }

    void keep() {
        line_ += text_[at_] == '\n' ? 1 : 0;
        out_ += text_[at_++];
    }
    void blank() {
        line_ += text_[at_] == '\n' ? 1 : 0;
        out_ += text_[at_] == '\n' ? '\n' : ' ';
        ++at_;
    }
    void blank_until(std::string_view end, bool including) {
        while (at_ < text_.size() && !looking_at(end)) {
            blank();
        }
        for (std::size_t i = 0; including && i < end.size() && at_ < text_.size(); ++i) {
            blank();
        }
    }
    void quoted(char quote, SourceFile* literals_of) {
        const int line = line_;
        const std::size_t begin = at_ + 1;
        keep();
        while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
            const bool escaped = text_[at_] == '\\' && at_ + 1 < text_.size();
            blank();
            if (escaped) {
                blank();
            }
        }
        if (literals_of != nullptr) {
            literals_of->literals.push_back({line, std::string(text_.substr(begin, at_ - begin))});
        }
        if (at_ < text_.size()) {
            keep();
        }
    }
    void raw_string(SourceFile& file) {
        const int line = line_;
        keep();
        const std::size_t open = text_.find('(', at_);
        const std::string end = ")" + std::string(text_.substr(at_, open - at_)) + "\"";
        const std::size_t begin = open == std::string_view::npos ? text_.size() : open + 1;
        blank_until(end, false);
        if (begin <= at_) {
            file.literals.push_back({line, std::string(text_.substr(begin, at_ - begin))});
        }
        blank_until("\"", false);
        if (at_ < text_.size()) {
            keep();
        }
    }

    std::string_view text_;
    std::string out_;
    std::size_t at_ = 0;
    int line_ = 1;
};

std::string include_between(const std::string& line, char open, char close) {
    const std::size_t hash = line.find_first_not_of(' ');
    if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) {
        return {};
    }
    const std::size_t begin = line.find_first_not_of(' ', hash + 8);
    if (begin == std::string::npos || line[begin] != open) {
        return {};
    }
    const std::size_t end = line.find(close, begin + 1);
    return end == std::string::npos ? std::string() : line.substr(begin + 1, end - begin - 1);
}

} // namespace

SourceFile make_source(std::string path, std::string_view text) {
    SourceFile file;
    file.path = std::move(path);
    file.lines = split_lines(text);
    if (file.is_cpp()) {
        Blanker(text).run(file);
    }
    return file;
}

std::string quoted_include(const std::string& line) {
    return include_between(line, '"', '"');
}

std::string angled_include(const std::string& line) {
    return include_between(line, '<', '>');
}

} // namespace railbreak::tidy
