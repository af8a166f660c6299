#include "scenarios/diagnostic.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::size_t kMaxQuoted = 60;

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

} // namespace

std::string one_line(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '\n') {
            escaped += "\\n";
        } else if (c == '\t') {
            escaped += "\\t";
        } else if (is_control(c)) {
            escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            escaped += c;
        }
    }
    return escaped;
}

std::string Diagnostic::to_line() const {
    std::string line = fmt::format("{}:{}:{}: {}", one_line(source), at.line, at.column, message);
    if (!allowed.empty()) {
        line += "; " + allowed;
    }
    return line;
}

Error to_error(const Diagnostics& diagnostics) {
    RB_CHECK(!diagnostics.empty(), "an error needs at least one diagnostic");
    std::string message = diagnostics.front().to_line();
    if (diagnostics.size() > 1) {
        message += fmt::format(" (and {} more)", diagnostics.size() - 1);
    }
    return Error(ErrorKind::kInput, std::move(message));
}

std::string quote(std::string_view text) {
    std::size_t length = std::min(text.size(), kMaxQuoted);
    while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
        --length; // do not cut a UTF-8 character in two
    }
    return fmt::format("\"{}{}\"", one_line(text.substr(0, length)), length < text.size() ? "..." : "");
}

void DiagnosticSink::add(Position at, std::string message, std::string allowed) {
    if (!full()) {
        diagnostics_.push_back({source_, at, std::move(message), std::move(allowed)});
    }
}

Diagnostics DiagnosticSink::take() && {
    std::ranges::stable_sort(diagnostics_, {}, &Diagnostic::at);
    return std::move(diagnostics_);
}

} // namespace railbreak::scenarios
