// Errors of a scenario file: where, what is wrong with the value as written, and what is allowed; one line each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/error.hpp"

namespace railbreak::scenarios {

/// A place in a text; lines and columns count from 1, columns count characters.
struct Position {
    int line = 1;
    int column = 1;
    auto operator<=>(const Position&) const = default;
};

/// One thing wrong with a scenario file.
struct Diagnostic {
    std::string source; ///< the file's name as given
    Position at;
    std::string message; ///< what is wrong, with the value as written
    std::string allowed; ///< what would be right

    /// "FILE:LINE:COLUMN: message; allowed", never more than one line.
    [[nodiscard]] std::string to_line() const;
};

/// All that was found wrong (at most DiagnosticSink::kLimit), in the order of the file.
using Diagnostics = std::vector<Diagnostic>;

/// A value, or all the reasons why there is none (never empty).
template <class T> using Checked = tl::expected<T, Diagnostics>;

/// The diagnostics as one ErrorKind::kInput error: the first line, with the number of the others.
[[nodiscard]] Error to_error(const Diagnostics& diagnostics);

/// The text with control characters escaped, so that it stays on one line.
[[nodiscard]] std::string one_line(std::string_view text);

/// The text in double quotes, shortened, with control characters escaped: safe in a one-line message.
[[nodiscard]] std::string quote(std::string_view text);

/// Collects diagnostics about one file. Beyond kLimit they are dropped: nobody reads further.
class DiagnosticSink {
public:
    static constexpr std::size_t kLimit = 20;

    explicit DiagnosticSink(std::string source) : source_(std::move(source)) {}

    void add(Position at, std::string message, std::string allowed);
    [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
    [[nodiscard]] bool full() const { return diagnostics_.size() >= kLimit; }
    /// What was collected, in the order of the file.
    [[nodiscard]] Diagnostics take() &&;

private:
    std::string source_;
    Diagnostics diagnostics_;
};

} // namespace railbreak::scenarios
