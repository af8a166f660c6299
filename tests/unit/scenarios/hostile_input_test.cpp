// Whatever the bytes, reading ends, without a crash, in a scenario or in one-line errors.
#include <gtest/gtest.h>

#include "scenarios/limits.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/random.hpp"
#include "scenarios/summary.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using testing::load;

void expect_clean(const std::string& text) {
    const auto result = load(text);
    if (result) {
        const auto plan = expand(*result, 7);
        ASSERT_TRUE(plan) << plan.error().to_line();
        ASSERT_TRUE(plan_from_json(plan->canonical_json)) << plan->canonical_json;
        ASSERT_FALSE(to_text(summarise(*result)).empty());
        return;
    }
    ASSERT_FALSE(result.error().empty());
    ASSERT_LE(result.error().size(), DiagnosticSink::kLimit);
    for (const Diagnostic& diagnostic : result.error()) {
        const std::string line = diagnostic.to_line();
        ASSERT_EQ(line.find_first_of("\n\r"), std::string::npos) << text;
        ASSERT_TRUE(line.starts_with("test.yaml:")) << line;
        ASSERT_GE(diagnostic.at.line, 1);
        ASSERT_GE(diagnostic.at.column, 1);
        ASSERT_FALSE(diagnostic.message.empty());
        ASSERT_FALSE(diagnostic.allowed.empty()) << line;
    }
}

std::string repeated(std::string_view piece, std::size_t bytes) {
    std::string text;
    while (text.size() + piece.size() <= bytes) {
        text += piece;
    }
    return text;
}

TEST(HostileInput, DeepNestingIsRefusedBeforeTheStackRunsOut) {
    for (const std::string_view piece : {"[", "{a: ", "- ", "? ", "a: [", "-\n "}) {
        expect_clean(repeated(piece, kMaxFileBytes));
    }
    std::string staircase;
    for (int depth = 0; depth < 500; ++depth) {
        staircase += std::string(static_cast<std::size_t>(depth), ' ') + "a:\n";
    }
    expect_clean(staircase);
}

TEST(HostileInput, LongRunsOfOnePieceOfSyntaxNeverCrash) {
    for (const std::string_view piece :
         {"[",     "{",          "[{", "[[,", "{{a", "[ ",  "&a [", "!x [",   "'",     "\"",
          "|\n",   "#",          ": ", ",",   "]",   "}",   "a",    "a: b\n", "- a\n", "---\n",
          "...\n", "%TAG ! x\n", "\t", " ",   "\n",  "*a ", "<<: ", "a:\n"}) {
        expect_clean(repeated(piece, 50'000));
        expect_clean("faults: " + repeated(piece, 50'000));
    }
    expect_clean(std::string(kMaxFileBytes + 1, 'a'));
}

/// One of the edits that people and disks make to a text.
std::string mutated(std::string text, SplitMix64& random) {
    static constexpr std::string_view kBytes = "\n\r\t :,-[]{}#&*!|>'\"%@`~?0189aZ./\\\xc3\xff\x01";
    static constexpr std::string_view kWords[] = {
        "null", "~",  "no",    "0x10",  "-1",       "1e9",  "99999999999999999999",
        "",     "{}", "[]",    "'",     "*a",       "&a 1", "!!str x",
        "<<",   "1B", "---\n", "...\n", "\xc3\xa9", "1/0",  "random"};
    const auto position = [&](std::size_t size) { return static_cast<std::size_t>(random.below(size + 1)); };
    switch (random.below(6)) {
    case 0: // one byte replaced
        if (!text.empty()) {
            text[position(text.size() - 1)] = kBytes[random.below(kBytes.size())];
        }
        break;
    case 1: // one byte inserted
        text.insert(position(text.size()), 1, kBytes[random.below(kBytes.size())]);
        break;
    case 2: { // a piece lost
        const std::size_t at = position(text.size());
        text.erase(at, random.below(12));
        break;
    }
    case 3: { // a piece doubled
        const std::size_t at = position(text.size());
        text.insert(position(text.size()), text.substr(at, random.below(40)));
        break;
    }
    case 4: { // the value after a colon replaced
        const std::size_t colon = text.find(": ", position(text.size()));
        if (colon != std::string::npos) {
            const std::size_t end = text.find_first_of(",}]\n", colon);
            text.replace(colon + 2, end == std::string::npos ? end : end - colon - 2,
                         kWords[random.below(std::size(kWords))]);
        }
        break;
    }
    default: // cut off
        text.resize(position(text.size()));
        break;
    }
    return text;
}

TEST(HostileInput, MutationsOfGoodScenariosNeverCrash) {
    std::vector<std::string> seeds{std::string(testing::kFull)};
    for (const auto& path : testing::catalog()) {
        seeds.push_back(testing::read_file(path));
    }
    SplitMix64 random(20260101);
    for (int round = 0; round < 6000; ++round) {
        std::string text = seeds[random.below(seeds.size())];
        const std::uint64_t edits = 1 + random.below(4);
        for (std::uint64_t i = 0; i < edits; ++i) {
            text = mutated(std::move(text), random);
        }
        expect_clean(text);
        if (::testing::Test::HasFatalFailure()) {
            FAIL() << "round " << round << ", the text was:\n" << text;
        }
    }
}

} // namespace
} // namespace railbreak::scenarios
