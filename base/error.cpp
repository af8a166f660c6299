#include "base/error.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace railbreak {

void Error::add_fact(std::string_view name, std::string value) {
    facts_.emplace_back(std::string(name), std::move(value));
}

Error&& Error::with(std::string_view name, std::string value) && {
    add_fact(name, std::move(value));
    return std::move(*this);
}

Error&& Error::advise(std::string advice) && {
    advice_ = std::move(advice);
    return std::move(*this);
}

Error&& Error::during(std::string_view context) && {
    message_ = fmt::format("{}: {}", context, message_);
    return std::move(*this);
}

std::string Error::to_line() const {
    std::string line = message_;
    if (!facts_.empty()) {
        line += " [";
        for (std::size_t i = 0; i < facts_.size(); ++i) {
            line += fmt::format("{}{}={}", i == 0 ? "" : ", ", facts_[i].first, facts_[i].second);
        }
        line += "]";
    }
    if (!advice_.empty()) {
        line += "; " + advice_;
    }
    // Messages of libraries and of peers may hold line breaks or terminal escapes.
    std::ranges::replace_if(
        line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return line;
}

tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
    return tl::unexpected<Error>(Error(kind, std::move(message)));
}

tl::unexpected<Error> fail(Error&& error) {
    return tl::unexpected<Error>(std::move(error));
}

tl::unexpected<Error> fail_errno(ErrorKind kind, std::string_view what, int errno_value) {
    // Both are null for a number that the C library does not know.
    const char* name = ::strerrorname_np(errno_value);
    const char* text = ::strerrordesc_np(errno_value);
    return fail(Error(kind, fmt::format("cannot {}: {}", what, text != nullptr ? text : "unknown error"))
                    .with("errno", name != nullptr ? name : std::to_string(errno_value)));
}

std::string_view to_string(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::kUsage: return "usage";
    case ErrorKind::kInput: return "input";
    case ErrorKind::kRefused: return "refused";
    case ErrorKind::kOutcome: return "outcome";
    case ErrorKind::kHarness: return "harness";
    case ErrorKind::kTeardown: return "teardown";
    case ErrorKind::kInternal: return "internal";
    }
    return "internal";
}

} // namespace railbreak
