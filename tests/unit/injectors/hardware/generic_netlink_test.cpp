// Generic netlink families: exact question, a recorded answer, and the running kernel.
#include "injectors/hardware/generic_netlink.hpp"

#include <cerrno>

#include <linux/genetlink.h>

#include "tests/unit/injectors/hardware/replay_kernel.hpp"

namespace railbreak::injectors::hardware {
namespace {

/// Recorded from Linux 6.18 for "ethtool", the lists of operations and groups left out.
constexpr std::string_view kEthtool = "40000000 10000000 01000000 61340000 01020000 0c000200 65746874 6f6f6c00 "
                                      "06000100 15000000 08000300 01000000 08000400 00000000 08000500 00000000";

TEST(GenericFamily, TheQuestionIsExactlyThis) {
    EXPECT_EQ(to_hex(bytes_of(family_request("ethtool"))),
              "20000000 10000000 00000000 00000000 03010000 0c000200 65746874 6f6f6c00");
}

TEST(GenericFamily, TheAnswerIsRead) {
    const auto record = recorded(kEthtool);
    const auto family = parse_family(*record.header());
    ASSERT_TRUE(done(family));
    EXPECT_EQ(*family, (GenericFamily{"ethtool", 0x15, 1}));
    const auto other = recorded("14000000 10000000 00000000 00000000 01020000");
    EXPECT_FALSE(parse_family(*other.header()));
}

TEST(GenericFamily, AFamilyThatIsNotThereIsARefusal) {
    ReplayKernel kernel({{bytes_of(family_request("devlink")), {}, ENOENT}});
    const auto family = find_family(kernel.channel(), "devlink");
    ASSERT_FALSE(family);
    EXPECT_EQ(family.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(kernel_errno(family.error()), ENOENT);
}

TEST_F(VethNamespace, TheControllerFindsItself) {
    const auto family = find_family(*generic_, "nlctrl");
    ASSERT_TRUE(done(family));
    EXPECT_EQ(family->id, GENL_ID_CTRL);
    const auto none = find_family(*generic_, "railbreak-none");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::kRefused);
}

} // namespace
} // namespace railbreak::injectors::hardware
