#include <gtest/gtest.h>

#include "collective/split.hpp"

namespace railbreak::collective {
namespace {

TEST(EvenSplit, PartsAdjoinAndDifferByOneAtMost) {
    for (std::int64_t total = 0; total <= 40; ++total) {
        for (std::int64_t parts = 1; parts <= 12; ++parts) {
            const EvenSplit split(total, parts);
            std::int64_t next = 0;
            for (std::int64_t i = 0; i < parts; ++i) {
                const Slice part = split.part(i);
                EXPECT_EQ(part.offset, next) << total << " in " << parts << ", part " << i;
                EXPECT_GE(part.count, total / parts);
                EXPECT_LE(part.count, (total + parts - 1) / parts);
                next = part.end();
            }
            EXPECT_EQ(next, total) << total << " in " << parts;
            EXPECT_EQ(split.largest(), split.part(0).count);
            EXPECT_EQ(split.smallest(), split.part(parts - 1).count);
        }
    }
}

TEST(EvenSplit, APartLiesWithinTwoPartsOfTheNextFinerCut) {
    for (std::int64_t total = 0; total <= 60; ++total) {
        for (std::int64_t parts = 1; parts <= 20; ++parts) {
            const EvenSplit coarse(total, parts);
            const EvenSplit fine(total, parts + 1);
            for (std::int64_t i = 0; i < parts; ++i) {
                EXPECT_GE(coarse.part(i).offset, fine.part(i).offset) << total << " in " << parts << ", part " << i;
                EXPECT_LE(coarse.part(i).end(), fine.part(i + 1).end()) << total << " in " << parts << ", part " << i;
            }
        }
    }
}

TEST(EvenSplit, HoldsNumbersBeyond32Bits) {
    const EvenSplit split(1'000'000'000'001, 3);
    EXPECT_EQ(split.part(0), (Slice{0, 333'333'333'334}));
    EXPECT_EQ(split.part(1), (Slice{333'333'333'334, 333'333'333'334}));
    EXPECT_EQ(split.part(2), (Slice{666'666'666'668, 333'333'333'333}));
}

} // namespace
} // namespace railbreak::collective
