#include "harness/cli/scenario_input.hpp"

#include <charconv>
#include <iostream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "base/console.hpp"
#include "collective/algorithm.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/record/location.hpp"
#include "scenarios/load.hpp"

namespace railbreak::cli {

std::vector<std::string> known_algorithms() {
    std::vector<std::string> names;
    for (const collective::Algorithm* algorithm : collective::algorithms()) {
        names.emplace_back(algorithm->name());
    }
    return names;
}

scenarios::Checked<scenarios::Scenario> load(const std::string& path) {
    if (path != "-") {
        return scenarios::load_scenario_file(path, known_algorithms());
    }
    const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    return scenarios::load_scenario(text, path, known_algorithms());
}

std::optional<scenarios::Scenario> read_scenario(const std::string& path) {
    scenarios::Checked<scenarios::Scenario> scenario = load(path);
    if (scenario) {
        return std::move(*scenario);
    }
    for (const scenarios::Diagnostic& diagnostic : scenario.error()) {
        tell_user(fmt::format("{}\n", diagnostic.to_line()));
    }
    return std::nullopt;
}

std::string what_is_wrong_with_seed(const std::string& text) {
    std::uint64_t seed = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, seed);
    return error == std::errc() && stopped == end
               ? ""
               : fmt::format("\"{}\" is no seed; allowed: a whole number from 0 to {}", text,
                             std::numeric_limits<std::uint64_t>::max());
}

bool choose_database(CommonOptions& common) {
    if (!common.database.empty()) {
        return true;
    }
    Result<std::filesystem::path> path = record::default_database_path();
    if (!path) {
        (void)tell(path.error());
        return false;
    }
    common.database = std::move(*path);
    return true;
}

int exit_code_of_bad_input() {
    return static_cast<int>(analyse::exit_code_of(ErrorKind::kInput));
}

int exit_code_of_bad_usage() {
    return static_cast<int>(analyse::exit_code_of(ErrorKind::kUsage));
}

} // namespace railbreak::cli
