// Suites: reading them, what becomes of their parameters, and what is said of mistakes.
#include "scenarios/suite_reader.hpp"

#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/plan.hpp"
#include "scenarios/schema.hpp"
#include "scenarios/suite_expand.hpp"
#include "scenarios/suite_summary.hpp"
#include "scenarios/yaml_write.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using ::testing::ElementsAre;
using testing::errors_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::source_dir;
using ::testing::StartsWith;

/// Those that the shipped suites name as well.
const KnownAlgorithms& algorithms() {
    static const KnownAlgorithms known = [] {
        KnownAlgorithms all = testing::algorithms();
        for (const char* name : {"iccl", "r2ccl", "r2ccl-balance"}) {
            all.list.push_back({name});
        }
        return all;
    }();
    return known;
}

std::filesystem::path suites() {
    return source_dir() / "scenarios" / "catalog" / "suites";
}

/// A suite that lies beside the shipped ones.
Checked<SuitePlan> expanded(const std::string& text, const SuiteChoices& choices = {}) {
    return load_suite(text, (suites() / "test.yaml").string()).and_then([&](const Suite& suite) {
        return expand_suite(suite, algorithms(), choices);
    });
}

SuitePlan plan_of(const std::string& entries, const SuiteChoices& choices = {}) {
    auto plan = expanded("railbreak: 1\nsuite: test\n" + entries, choices);
    if (!plan) {
        ADD_FAILURE() << plan.error().front().to_line();
        return {};
    }
    return std::move(*plan);
}

std::vector<std::string> names_of(const SuitePlan& plan) {
    std::vector<std::string> names;
    for (const SuiteItem& item : plan.items) {
        names.push_back(item.name);
    }
    return names;
}

std::string golden(const std::string& name, const std::string& text) {
    const auto path = source_dir() / "tests" / "golden" / "scenarios" / name;
    if (std::getenv("RAILBREAK_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path, std::ios::binary) << text;
    }
    return read_file(path);
}

/// A node without its positions.
nlohmann::json bare(const YamlNode& node) {
    nlohmann::json items = nlohmann::json::array();
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        items.push_back({node.keys.empty() ? "" : node.keys[i].text, bare(node.items[i])});
    }
    return {static_cast<int>(node.kind), node.text, items};
}

TEST(YamlWriting, IsReadBackAsTheSameTree) {
    std::vector<std::string> texts{
        std::string(testing::kFull),
        "a: 'null'\nb: ~\nc: \"- x\"\nd: \"a: b # c\"\ne: [-1, 1/2, '010', \"tab\\there\"]\n"
        "f: {}\ng: []\n\"odd key: [\": '%x'\nh: \"\\e[31m \\\" \\\\ é\"\ni: |\n  two\n  lines\n"
        "j: '...'\nk: '---'\nl: '-'\nm: ' x '\nn: ''\n",
        "[[a, [b, {c: d}]], {e: [{f: g}, {h: [i]}]}]", "word"};
    for (const auto& path : testing::catalog()) {
        texts.push_back(read_file(path));
    }
    for (const std::string& text : texts) {
        const auto tree = parse_yaml(text, "first");
        ASSERT_TRUE(tree) << tree.error().to_line();
        const std::string written = write_yaml(*tree);
        const auto again = parse_yaml(written, "second");
        ASSERT_TRUE(again) << again.error().to_line() << "\n" << written;
        EXPECT_EQ(bare(*again), bare(*tree)) << written;
    }
}

TEST(Suite, ShippedOnesExpandToTheGoldenLists) {
    for (const std::string name : {"smoke", "nightly", "burn-in"}) {
        const auto plan = expanded(read_file(suites() / (name + ".yaml")));
        ASSERT_TRUE(plan) << plan.error().front().to_line();
        EXPECT_EQ(plan->name, name);
        EXPECT_FALSE(plan->description.empty());
        std::string list;
        for (const SuiteItem& item : plan->items) {
            list +=
                item.name + " seed " + std::to_string(item.seed) + " " + std::string(to_string(item.on_failure)) + "\n";
        }
        EXPECT_EQ(list, golden("suite-" + name + ".txt", list));
    }
}

TEST(Suite, PartsOfShippedOnesAreScenariosByThemselves) {
    for (const auto& path : testing::catalog("suites/parts")) {
        const auto scenario = load_scenario_file(path.string(), algorithms());
        ASSERT_TRUE(scenario) << errors_of(scenario);
        EXPECT_EQ(scenario->name, path.stem().string());
    }
}

TEST(Suite, SmokeTakesAboutTwoMinutes) {
    const auto plan = expanded(read_file(suites() / "smoke.yaml"));
    ASSERT_TRUE(plan);
    constexpr std::chrono::seconds kAround{5}; // of each item: building the cluster, measuring its ports
    EXPECT_LT(estimate_run_time(*plan) + plan->items.size() * kAround, std::chrono::minutes(2));
}

TEST(Suite, EveryItemIsACompleteScenario) {
    const SuitePlan plan = plan_of(R"(
scenarios:
  - file: ../smoke.yaml
    set: {workload.iterations.steady: 1, lease: 6s, description: ~, cluster.mtu: 9000B}
    matrix: {ell: [8/7, 2], host: each, bytes: [1MiB]}
)");
    ASSERT_EQ(plan.items.size(), 8U);
    for (const SuiteItem& item : plan.items) {
        const auto alone = load_scenario(item.scenario.source_text, "alone.yaml", algorithms());
        ASSERT_TRUE(alone) << errors_of(alone);
        EXPECT_EQ(expand(*alone, item.seed)->hash, item.plan_hash);
        EXPECT_EQ(alone->workload.iterations.steady, 1);
        EXPECT_EQ(alone->lease, std::chrono::seconds(6));
        EXPECT_EQ(alone->cluster.mtu_bytes, 9000);
        EXPECT_TRUE(alone->description.empty());
    }
    EXPECT_EQ(plan.items[0].scenario.faults[0].fraction, Rational(7, 8));
    EXPECT_EQ(plan.items[4].scenario.faults[0].fraction, Rational(1, 2));
    EXPECT_EQ(plan.items[7].scenario.faults[0].target.host, 3);
    EXPECT_EQ(plan.items[7].name, "smoke[ell=2,bytes=1MiB,host=3]");
    EXPECT_EQ(params_json(plan.items[7].params), R"({"bytes":"1MiB","ell":"2","host":"3"})");
}

TEST(Suite, WalksWhatTheScenarioHasByThen) {
    EXPECT_THAT(names_of(plan_of("scenarios: [{file: ../smoke.yaml, matrix: {host: each, hosts: [3, 4]}}]\n")),
                ElementsAre("smoke[hosts=3,host=0]", "smoke[hosts=3,host=1]", "smoke[hosts=3,host=2]",
                            "smoke[hosts=4,host=0]", "smoke[hosts=4,host=1]", "smoke[hosts=4,host=2]",
                            "smoke[hosts=4,host=3]"));
    EXPECT_EQ(plan_of("scenarios: [{file: parts/slow-nic.yaml, matrix: {host: each, nic: each}}]\n").items.size(), 8U);
    EXPECT_EQ(plan_of("scenarios: [{file: ../pause-rank.yaml, matrix: {rank: each}}]\n").items.size(), 4U);
    const SuitePlan pairs = plan_of("scenarios:\n  - file: parts/cut-pair.yaml\n"
                                    "    matrix: {pair: {pairs: [host, 'faults.cut.peers[0]']}}\n");
    EXPECT_THAT(names_of(pairs), ElementsAre("cut-pair[pair=0+1]", "cut-pair[pair=0+2]", "cut-pair[pair=0+3]",
                                             "cut-pair[pair=1+2]", "cut-pair[pair=1+3]", "cut-pair[pair=2+3]"));
    EXPECT_EQ(pairs.items[4].scenario.faults[0].target.host, 1);
    EXPECT_THAT(pairs.items[4].scenario.faults[0].strength.peers, ElementsAre(3));
}

TEST(Suite, SetsSeveralPlacesAtOnceAndAllElementsOfAList) {
    const SuitePlan plan = plan_of(R"(
scenarios:
  - file: ../two-ranks-per-host.yaml
    matrix:
      faults.*.fraction: [1/4]
      what:
        two: {algorithms: [ring, optcc]}
        one: {algorithms: ring, expect: ~}
)");
    EXPECT_THAT(names_of(plan),
                ElementsAre("two-ranks-per-host[fraction=1/4,what=two]", "two-ranks-per-host[fraction=1/4,what=one]"));
    EXPECT_EQ(plan.items[0].scenario.faults[1].fraction, Rational(1, 4));
    EXPECT_EQ(plan.items[1].scenario.workload.labels(), std::vector<std::string>{"ring"});
    EXPECT_TRUE(plan.items[1].scenario.expectations.empty());
}

TEST(Suite, RepeatsAWholeScenarioAndLeavesOutWhatIsExcluded) {
    const std::string entries = R"(
on_failure: stop
scenarios:
  - file: ../smoke.yaml
    name: mine
    repeats: 2
    matrix: {fraction: [1/2, 3/4], bytes: [1MiB, 2MiB]}
    exclude:
      - {fraction: 3/4, bytes: [1MiB]}
  - {file: ../flap.yaml, on_failure: skip_scenario}
)";
    const SuitePlan plan = plan_of(entries);
    EXPECT_THAT(names_of(plan),
                ElementsAre("mine[fraction=1/2,bytes=1MiB]#1", "mine[fraction=1/2,bytes=2MiB]#1",
                            "mine[fraction=3/4,bytes=2MiB]#1", "mine[fraction=1/2,bytes=1MiB]#2",
                            "mine[fraction=1/2,bytes=2MiB]#2", "mine[fraction=3/4,bytes=2MiB]#2", "flap"));
    EXPECT_EQ(plan.items[5].on_failure, OnFailure::kStop);
    EXPECT_EQ(plan.items[6].on_failure, OnFailure::kSkipScenario);
    EXPECT_EQ(plan.items[0].plan_hash, plan.items[3].plan_hash);
    EXPECT_THAT(names_of(plan_of(entries, {.only = "*2MiB*#2"})),
                ElementsAre("mine[fraction=1/2,bytes=2MiB]#2", "mine[fraction=3/4,bytes=2MiB]#2"));
}

TEST(Suite, EveryItemCanBeChosenAlone) {
    const std::string entries = R"(
order: shuffled
scenarios:
  - file: ../smoke.yaml
    repeats: 2
    matrix:
      what:
        "*": {fraction: 1/2}
        "[a-z]?": {fraction: 1/4}
        "b\\n'\"</b> \\\\": {fraction: 3/4}
      seed: [1, 2]
)";
    const SuitePlan plan = plan_of(entries);
    ASSERT_EQ(plan.items.size(), 12U);
    for (const SuiteItem& item : plan.items) {
        const SuitePlan alone = plan_of(entries, {.only = pattern_of(item.name)});
        EXPECT_THAT(names_of(alone), ElementsAre(item.name));
        EXPECT_EQ(alone.items.front().plan_hash, item.plan_hash);
        EXPECT_EQ(alone.items.front().seed, item.seed);
    }
}

TEST(Suite, ShufflesByTheSeedAlone) {
    const std::string entries = "order: shuffled\nseed: 3\nscenarios:\n  - file: parts/storm.yaml\n"
                                "    matrix: {seed: {from: 1, to: 20}}\n";
    const SuitePlan plan = plan_of(entries);
    EXPECT_EQ(names_of(plan), names_of(plan_of(entries)));
    EXPECT_NE(names_of(plan), names_of(plan_of(entries, {.seed = 4})));
    std::set<std::uint64_t> seeds;
    for (const SuiteItem& item : plan.items) {
        seeds.insert(item.seed);
    }
    EXPECT_EQ(seeds.size(), 20U);
    EXPECT_EQ(*seeds.rbegin(), 20U);
    EXPECT_FALSE(std::ranges::is_sorted(plan.items, {}, &SuiteItem::seed));
}

TEST(Suite, TellsWhatMakesTwoPlansDiffer) {
    const std::string entries = "scenarios: [{file: ../smoke.yaml, matrix: {fraction: [1/2, 1/3]}}]\n";
    const SuitePlan plan = plan_of(entries);
    EXPECT_EQ(plan.hash, plan_of(entries).hash);
    const auto difference = [&](const SuitePlan& other) {
        EXPECT_NE(plan.hash, other.hash);
        return difference_of_suite_plans(plan.canonical_json, other.canonical_json);
    };
    EXPECT_EQ(difference_of_suite_plans(plan.canonical_json, plan.canonical_json), "");
    EXPECT_EQ(difference(plan_of("order: shuffled\n" + entries)), R"("order" was "listed" and is now "shuffled")");
    EXPECT_EQ(difference(plan_of(entries, {.only = "*1/2*"})), "it had 2 items and has now 1");
    EXPECT_THAT(difference(plan_of("scenarios: [{file: ../smoke.yaml, set: {lease: 6s}, matrix: {fraction: [1/2, "
                                   "1/3]}}]\n")),
                StartsWith("item 1 (smoke[fraction=1/2]): \"plan_hash\" was \""));
    EXPECT_EQ(difference_of_suite_plans("[", plan.canonical_json), "the recorded plan is not readable");
}

TEST(Suite, DocumentedOneIsValid) {
    const std::string text = read_file(source_dir() / "docs" / "suite-format.md");
    constexpr std::string_view kFence = "```yaml\n";
    const std::size_t start = text.find(kFence) + kFence.size();
    const auto plan = expanded(text.substr(start, text.find("```", start) - start));
    ASSERT_TRUE(plan) << plan.error().front().to_line();
    EXPECT_EQ(plan->items.size(), 2U * 6 + 20);
}

TEST(Suite, IsToldFromAScenarioByItsKey) {
    EXPECT_TRUE(is_suite("suite: x"));
    EXPECT_TRUE(is_suite("\xef\xbb\xbfsuite: x"));
    EXPECT_FALSE(is_suite(testing::kFull));
    EXPECT_FALSE(is_suite("name: suite"));
    EXPECT_FALSE(is_suite("suite: ["));
    EXPECT_FALSE(is_suite(""));
}

/// Bad suites: a text in the place of another.
struct BadSuite {
    std::string_view name;
    std::string_view from;
    std::string_view to;
};

constexpr std::string_view kGood = R"(railbreak: 1
suite: good
seed: 3
repeats: 1
order: listed
scenarios:
  - file: ../smoke.yaml
    name: half
    set: {lease: 6s}
    matrix:
      fraction: [1/2, 3/4]
      host: each
  - file: parts/slow-pair.yaml
    matrix:
      pair: {pairs: [faults.first.target.host, faults.second.target.host]}
)";

constexpr BadSuite kBadSuites[] = {
    {"unknown key", "order:", "ordre:"},
    {"unknown key of an entry", "    set:", "    sets:"},
    {"no scenarios", "scenarios:\n", "scenarios: []\nmore:\n"},
    {"another version", "railbreak: 1", "railbreak: 2"},
    {"a name with a blank", "suite: good", "suite: very good"},
    {"an unknown order", "order: listed", "order: random"},
    {"an unknown rule for failures", "seed: 3", "on_failure: ignore"},
    {"no repeats", "repeats: 1", "repeats: 0"},
    {"a seed with a sign", "seed: 3", "seed: -3"},
    {"a file that is not there", "../smoke.yaml", "../smoek.yaml"},
    {"a folder", "../smoke.yaml", ".."},
    {"a suite in a suite", "../smoke.yaml", "smoke.yaml"},
    {"a file of another kind", "../smoke.yaml", "../../CMakeLists.txt"},
    {"a parameter that the scenario does not know", "fraction: [1/2, 3/4]", "faults.half-rate.fractoin: [1/2]"},
    {"a fault that is not there", "fraction: [1/2, 3/4]", "faults.half.fraction: [1/2]"},
    {"an element that is not there", "fraction: [1/2, 3/4]", "'faults[1].fraction': [1/2]"},
    {"a path through a value", "fraction: [1/2, 3/4]", "name.x: [1/2]"},
    {"a path that is none", "fraction: [1/2, 3/4]", "faults..x: [1/2]"},
    {"a short form where there are two faults", "pair: {pairs: [faults.first.target.host, faults.second.target.host]}",
     "host: each"},
    {"a value that the scenario refuses", "[1/2, 3/4]", "[1/2, 3/4, 5/4]"},
    {"a setting that the scenario refuses", "lease: 6s", "lease: 6"},
    {"a value twice", "[1/2, 3/4]", "[1/2, 3/4, 1/2]"},
    {"a parameter twice", "host: each", "fraction: [1/3]"},
    {"no values", "[1/2, 3/4]", "[]"},
    {"a value without a list", "[1/2, 3/4]", "1/2"},
    {"each of what cannot be walked", "[1/2, 3/4]", "each"},
    {"a slowdown below one", "fraction: [1/2, 3/4]", "ell: [1/2]"},
    {"a seed that is none", "fraction: [1/2, 3/4]", "seed: [one]"},
    {"a seed as a setting", "lease: 6s", "seed: 6"},
    {"a range without an end", "fraction: [1/2, 3/4]", "seed: {from: 1}"},
    {"a range that runs backwards", "fraction: [1/2, 3/4]", "seed: {from: 2, to: 1}"},
    {"one place for a pair", "[faults.first.target.host, faults.second.target.host]", "[faults.first.target.host]"},
    {"an exclusion of another parameter", "host: each\n", "host: each\n    exclude: [{ell: 3/4}]\n"},
    {"an exclusion of nothing", "host: each\n", "host: each\n    exclude: [{fraction: 3/4, host: 7}]\n"},
    {"an exclusion of everything", "host: each\n", "host: each\n    exclude: [{fraction: [1/2, 3/4]}]\n"},
    {"two items of one name",
     "    matrix:\n      pair: {pairs: [faults.first.target.host, faults.second.target.host]}\n",
     "    name: half\n  - file: ../flap.yaml\n    name: half\n"},
    {"too many items", "[1/2, 3/4]",
     "[1/2]\n      seed: {from: 1, to: 1000}\n      faults.half-rate.target.nic: {from: 0, to: 9}"},
};

TEST(SuiteMessages, AreThoseOfTheGoldenFile) {
    ASSERT_TRUE(expanded(std::string(kGood)));
    std::string text;
    for (const BadSuite& bad : kBadSuites) {
        const auto plan = expanded(testing::with(kGood, bad.from, bad.to));
        EXPECT_FALSE(plan) << bad.name << " was accepted";
        text += "# " + std::string(bad.name) + "\n";
        for (const Diagnostic& diagnostic : plan ? Diagnostics() : plan.error()) {
            std::string line = diagnostic.to_line();
            EXPECT_EQ(line.find('\n'), std::string::npos) << line;
            const std::string folder = source_dir().string();
            for (std::size_t at = line.find(folder); at != std::string::npos; at = line.find(folder)) {
                line.replace(at, folder.size(), "SOURCE");
            }
            text += line + "\n";
        }
        text += "\n";
    }
    EXPECT_EQ(text, golden("suite-messages.txt", text));
}

TEST(SuiteMessages, AreNoNewsWhereNothingMatchesOnly) {
    const auto plan = expanded(std::string(kGood), {.only = "nothing*"});
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error().front().to_line(), HasSubstr("no item is named like \"nothing*\""));
}

TEST(SuiteSchema, HasTheKeysOfTheReader) {
    using nlohmann::json;
    const json root = json::parse(suite_schema_json());
    for (const Section& section : suite_sections()) {
        const json& object = section.path.empty() ? root : root.at("$defs").at("entry");
        std::set<std::string> required;
        std::set<std::string> keys;
        for (const KeySpec& key : section.keys) {
            keys.insert(std::string(key.name));
            if (key.required) {
                required.insert(std::string(key.name));
            }
        }
        std::set<std::string> known;
        for (const auto& [name, property] : object.at("properties").items()) {
            known.insert(name);
        }
        EXPECT_EQ(known, keys) << section.path;
        EXPECT_EQ(object.at("required").get<std::set<std::string>>(), required) << section.path;
    }
    const json& defs = root.at("$defs");
    json orders = json::array();
    for (const SuiteOrder order : kSuiteOrders) {
        orders.push_back(to_string(order));
    }
    EXPECT_EQ(root.at("properties").at("order").at("enum"), orders);
    json rules = json::array();
    for (const OnFailure rule : kOnFailures) {
        rules.push_back(to_string(rule));
    }
    EXPECT_EQ(defs.at("on_failure").at("enum"), rules);
}

} // namespace
} // namespace railbreak::scenarios
