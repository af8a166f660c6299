// What the binary says about its own build.
#include "base/version.hpp"

#include <gtest/gtest.h>

namespace railbreak {
namespace {

TEST(BuildInfo, IsFilledInByTheBuild) {
    const BuildInfo info = build_info();
    EXPECT_EQ(info.version, RAILBREAK_TEST_VERSION);
    EXPECT_FALSE(info.commit.empty());
    EXPECT_FALSE(info.compiler.empty());
    EXPECT_FALSE(info.build_type.empty());
    for (const std::string_view value : {info.version, info.commit, info.compiler, info.build_type}) {
        EXPECT_EQ(value.find('@'), std::string_view::npos) << value << " was not replaced in the template";
    }
}

} // namespace
} // namespace railbreak
