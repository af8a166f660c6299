// Expected failures are values. Every function that can fail for a reason other than a programmer's error
// returns Result<T>; the Error carries the class of the failure (which decides the exit code), one clear
// sentence, and facts (rank, host, NIC, step, file, line, value ...) for machines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace railbreak {

/// The class of a failure. It decides the process's exit code and nothing else may.
enum class ErrorKind : std::uint8_t {
    kUsage,    ///< wrong command line: exit 64
    kInput,    ///< wrong scenario, inventory or database content: exit 64
    kRefused,  ///< the action is unsafe or not permitted (policy, privilege, foreign state): exit 3
    kOutcome,  ///< the system under test failed (a rank died, a transfer stalled): exit 1
    kHarness,  ///< railbreak's own machinery failed (agent lost, socket error): exit 4 after revert
    kTeardown, ///< something could not be verified as restored: exit 5
    kInternal, ///< a bug: exit 70
};

/// A failure as a value: what happened, what to do about it, and the facts that place it.
class [[nodiscard]] Error {
public:
    Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

    /// Adds one fact to an Error that has a name already.
    void add_fact(std::string_view name, std::string value);
    /// Adds one fact, for example with("rank", "3").with("nic", "eth0"); returns itself so that calls chain.
    Error&& with(std::string_view name, std::string value) &&;
    /// Adds one sentence that tells the user what to do.
    Error&& advise(std::string advice) &&;
    /// Prefixes the message: "while connecting rank 3: <message>".
    Error&& during(std::string_view context) &&;

    [[nodiscard]] ErrorKind kind() const { return kind_; }
    [[nodiscard]] const std::string& message() const { return message_; }
    [[nodiscard]] const std::string& advice() const { return advice_; }
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& facts() const { return facts_; }

    /// One line for people: message, facts in brackets, advice. Control characters become spaces.
    [[nodiscard]] std::string to_line() const;

private:
    ErrorKind kind_;
    std::string message_;
    std::string advice_;
    std::vector<std::pair<std::string, std::string>> facts_;
};

/// A value or the Error that explains its absence.
template <class T> using Result = tl::expected<T, Error>;

/// The failure side of a Result, built in one expression: return fail(ErrorKind::kInput, "...");
[[nodiscard]] tl::unexpected<Error> fail(ErrorKind kind, std::string message);
[[nodiscard]] tl::unexpected<Error> fail(Error&& error);
/// A failed system call: "cannot <what>: <strerror(errno_value)>", with the fact errno=<NAME>.
[[nodiscard]] tl::unexpected<Error> fail_errno(ErrorKind kind, std::string_view what, int errno_value);

/// Short lower-case word for a kind ("usage", "input", ...), as written to the database and to JSON.
[[nodiscard]] std::string_view to_string(ErrorKind kind);

} // namespace railbreak
