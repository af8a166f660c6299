#include "collective/execute/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railbreak::collective {
namespace {

TEST(Wire, AHeaderMatchesItselfOnly) {
    const StepHeader header{1, 2, 3, 4, 1, Stage::kStarUp, Combine::kReduce};
    HeaderBytes bytes = pack(header);
    EXPECT_EQ(mismatch(header, bytes), "");
    for (std::byte& byte : bytes) {
        byte ^= std::byte{1};
        EXPECT_NE(mismatch(header, bytes), "");
        byte ^= std::byte{1};
    }
    bytes[0] = std::byte{0};
    EXPECT_THAT(mismatch(header, bytes), ::testing::HasSubstr("no step header"));
}

} // namespace
} // namespace railbreak::collective
