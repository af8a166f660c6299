// The documentation's example is a scenario that works.
#include <gtest/gtest.h>

#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

TEST(Documentation, ExamplesAreValid) {
    const std::string text = testing::read_file(testing::source_dir() / "docs" / "scenario-format.md");
    constexpr std::string_view kFence = "```yaml\n";
    int examples = 0;
    for (std::size_t at = text.find(kFence); at != std::string::npos; at = text.find(kFence, at + 1)) {
        const std::size_t start = at + kFence.size();
        const std::string example = text.substr(start, text.find("```", start) - start);
        const auto scenario = testing::load(example);
        EXPECT_TRUE(scenario) << testing::errors_of(scenario);
        ++examples;
    }
    EXPECT_GE(examples, 1);
}

} // namespace
} // namespace railbreak::scenarios
