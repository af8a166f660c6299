#include "harness/cli/scenario_input.hpp"

#include <charconv>
#include <iostream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "base/console.hpp"
#include "collective/algorithm.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/controller/damage.hpp"
#include "harness/record/location.hpp"
#include "scenarios/load.hpp"
#include "scenarios/suite_reader.hpp"

namespace railbreak::cli {

namespace {

/// Plans for the scenario's cluster while it is healthy, as the steady phase will.
Result<void> check_options(const scenarios::Scenario& scenario, const scenarios::AlgorithmSpec& algorithm) {
    const scenarios::ClusterSpec& cluster = scenario.cluster;
    const std::uint32_t element = size_of(scenario.workload.dtype);
    return collective::find_algorithm(algorithm.name)
        .and_then([&](const collective::Algorithm* found) {
            return found->plan(
                {.topology = controller::plan_topology(cluster, controller::no_damage(cluster), cluster.rate),
                 .elements = static_cast<std::int64_t>(scenario.workload.bytes.bytes() / element),
                 .element_bytes = element,
                 .healthy_goodput = cluster.rate,
                 .options = algorithm.options});
        })
        .map([](const collective::Plan&) {});
}

/// The text of a file, or of standard input for "-".
scenarios::Checked<std::string> read_input(const std::string& path, std::string_view what) {
    return path != "-" ? scenarios::read_text_file(path, what)
                       : std::string{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

/// What was read; or nothing, after telling what is wrong.
template <class T>
std::optional<T> told(const CommonOptions& common, const std::string& path, scenarios::Checked<T> read) {
    if (read) {
        return std::move(*read);
    }
    for (const scenarios::Diagnostic& diagnostic : read.error()) {
        tell_user(fmt::format("{}\n", diagnostic.to_line()));
    }
    if (common.json) {
        print_error_json(Error(ErrorKind::kInput,
                               fmt::format("{} is no valid {}", path,
                                           std::is_same_v<T, scenarios::Scenario> ? "scenario" : "scenario or suite"))
                             .advise("railbreak validate --json tells what is wrong where"));
    }
    return std::nullopt;
}

} // namespace

scenarios::KnownAlgorithms known_algorithms() {
    scenarios::KnownAlgorithms known{.check_options = check_options};
    for (const collective::Algorithm* algorithm : collective::algorithms()) {
        scenarios::KnownAlgorithm& one = known.list.emplace_back(std::string(algorithm->name()));
        for (const collective::OptionHelp& option : algorithm->options()) {
            one.options.push_back({std::string(option.name), std::string(option.values)});
        }
    }
    return known;
}

scenarios::Checked<scenarios::Scenario> load(const std::string& path) {
    return read_input(path, "a scenario file").and_then([&](const std::string& text) {
        return scenarios::load_scenario(text, path, known_algorithms());
    });
}

scenarios::Checked<ScenarioOrSuite> load_any(const std::string& path, const scenarios::SuiteChoices& choices) {
    const scenarios::KnownAlgorithms known = known_algorithms();
    return read_input(path, "a scenario or suite file")
        .and_then([&](const std::string& text) -> scenarios::Checked<ScenarioOrSuite> {
            if (!scenarios::is_suite(text)) {
                return scenarios::load_scenario(text, path, known);
            }
            return scenarios::load_suite(text, path).and_then([&](const scenarios::Suite& suite) {
                return scenarios::expand_suite(suite, known, choices);
            });
        });
}

std::optional<scenarios::Scenario> read_scenario(const CommonOptions& common, const std::string& path) {
    return told(common, path, load(path));
}

std::optional<ScenarioOrSuite> read_any(const CommonOptions& common, const std::string& path,
                                        const scenarios::SuiteChoices& choices) {
    return told(common, path, load_any(path, choices));
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
        (void)tell(common, path.error());
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
