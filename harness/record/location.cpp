#include "harness/record/location.hpp"

#include <cstdlib>

#include <fmt/format.h>

namespace railbreak::record {

namespace {

constexpr std::size_t kMaxSlug = 48;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

// Lower-case letters and digits, single dashes between, at most kMaxSlug characters.
std::string slug(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool upper = c >= 'A' && c <= 'Z';
        if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out += upper ? static_cast<char>(c - 'A' + 'a') : c;
        } else if (!out.empty() && out.back() != '-') {
            out += '-';
        }
        if (out.size() == kMaxSlug) {
            break;
        }
    }
    while (!out.empty() && out.back() == '-') {
        out.pop_back();
    }
    return out.empty() ? "run" : out;
}

} // namespace

Result<std::filesystem::path> default_database_path() {
    namespace fs = std::filesystem;
    if (const std::string given = environment("RAILBREAK_DB"); !given.empty()) {
        return fs::path(given);
    }
    if (const fs::path state = environment("XDG_STATE_HOME"); state.is_absolute()) {
        return state / "railbreak" / "railbreak.db";
    }
    if (const fs::path home = environment("HOME"); home.is_absolute()) {
        return home / ".local" / "state" / "railbreak" / "railbreak.db";
    }
    return fail(Error(ErrorKind::kUsage, "no place for the database: HOME is not set")
                    .advise("give --db FILE or set RAILBREAK_DB"));
}

std::string make_run_id(Nanoseconds started_realtime, std::string_view scenario_name, std::uint64_t salt) {
    // "2026-01-31T12:34:56.123456789Z" without its separators and fraction.
    std::string stamp;
    for (const char c : to_iso8601(started_realtime)) {
        if (c == '.') {
            break;
        }
        if (c != '-' && c != ':') {
            stamp += c;
        }
    }
    // All bits of the salt take part, so that counters, times and pids serve as well as random numbers.
    salt ^= salt >> 32;
    salt ^= salt >> 16;
    return fmt::format("{}Z-{}-{:04x}", stamp, slug(scenario_name), salt & 0xFFFF);
}

} // namespace railbreak::record
