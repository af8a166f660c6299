// A suite: scenarios with parameters, in an order, with a rule for failures. The file as typed values, and its
// expansion into items, each of which is one ordinary run of one complete scenario.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/model.hpp"
#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

/// In which order the items of a suite run.
enum class SuiteOrder : std::uint8_t {
    kListed,   ///< as in the file
    kShuffled, ///< mixed by the suite's seed, so that what drifts with time is not taken for an effect of a parameter
};
/// Every SuiteOrder.
inline constexpr std::array kSuiteOrders{SuiteOrder::kListed, SuiteOrder::kShuffled};
/// "listed", "shuffled".
[[nodiscard]] std::string_view to_string(SuiteOrder order);

/// What follows when an item does not pass.
enum class OnFailure : std::uint8_t {
    kContinue,
    kStop,         ///< the items that are left are skipped
    kSkipScenario, ///< the items that are left of the same entry are skipped
};
/// Every OnFailure.
inline constexpr std::array kOnFailures{OnFailure::kContinue, OnFailure::kStop, OnFailure::kSkipScenario};
/// "continue", "stop", "skip_scenario".
[[nodiscard]] std::string_view to_string(OnFailure what);

/// A value put at a place of the scenario's YAML tree. A value of kind kNull takes the key away.
struct SuiteSetting {
    std::string path; ///< "faults.half-rate.fraction"; a short form is written out by then
    YamlNode value;
    Position at; ///< in the suite file
};

/// One value of a parameter.
struct MatrixValue {
    std::string label; ///< what stands in the item's name: "1/2", "ring+optcc"
    std::vector<SuiteSetting> settings;
    std::optional<std::uint64_t> seed{}; ///< of the parameter "seed"
    Position at;
};

/// A parameter with its values, or with the rule that makes them from the scenario.
struct MatrixAxis {
    enum class Kind : std::uint8_t {
        kListed, ///< the values are given
        kEach,   ///< every host, NIC or rank of the scenario's cluster
        kPairs,  ///< every pair of hosts, the first below the second
    };
    std::string name; ///< as written
    Position at;
    Kind kind = Kind::kListed;
    std::vector<MatrixValue> values; ///< kListed
    std::vector<std::string> paths;  ///< kEach: one; kPairs: two
};

/// Combinations that are left out: those where every named parameter has one of its labels.
struct MatrixExclusion {
    std::vector<std::pair<std::string, std::vector<std::string>>> when;
    Position at;
};

/// One scenario of a suite, with all that is varied in it.
struct SuiteEntry {
    std::string file; ///< as written: relative to the suite's file
    Position at;      ///< of the file's name
    std::string name; ///< empty: the scenario's
    std::vector<SuiteSetting> settings;
    std::vector<MatrixAxis> matrix;
    std::vector<MatrixExclusion> exclusions;
    std::int32_t repeats = 1;
    OnFailure on_failure = OnFailure::kContinue;
};

/// A whole suite file.
struct Suite {
    std::string name;
    std::string description;
    std::uint64_t seed = 1;
    SuiteOrder order = SuiteOrder::kListed;
    std::int32_t parallel = 1; ///< how many items may run at a time
    std::vector<SuiteEntry> entries;
    std::string source_text; ///< the file as read
    std::string source_name; ///< path or "-" as given
};

/// One run of a suite.
struct SuiteItem {
    std::string name;                                        ///< unique: "half-rate[host=3,fraction=1/2]#2"
    std::int32_t entry = 0;                                  ///< index in Suite::entries
    std::vector<std::pair<std::string, std::string>> params; ///< parameter and label, in the order of the file
    std::int32_t repeat = 1;                                 ///< 1-based
    std::uint64_t seed = 0;                                  ///< of the scenario's random choices
    OnFailure on_failure = OnFailure::kContinue;
    Scenario scenario;     ///< its source_text is the scenario with the parameters put in, complete by itself
    std::string plan_hash; ///< of the scenario expanded with the seed
};

/// What a suite will do.
struct SuitePlan {
    std::string name;
    std::string description;
    std::uint64_t seed = 0;
    SuiteOrder order = SuiteOrder::kListed;
    std::int32_t parallel = 1;
    bool faults = true;           ///< false: every item only measures
    std::vector<SuiteItem> items; ///< in the order in which they run; never empty
    std::string source_text;
    std::string source_name;
    std::string canonical_json; ///< keys sorted, no spaces; same plan, same bytes
    std::string hash;           ///< hex digest (XXH3-128) of canonical_json
};

} // namespace railbreak::scenarios
