// The netlink channel against the real kernel, in a network namespace of the test's own.
#include "injectors/netlink.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railbreak::injectors {
namespace {

/// A fresh network namespace, held by a descriptor; invalid where the test may not make one.
UniqueFd make_namespace() {
    UniqueFd fd;
    std::thread([&fd] {
        if (::unshare(CLONE_NEWNET) == 0) {
            fd.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        }
    }).join();
    return fd;
}

std::uint64_t inode_of(const char* path) {
    struct stat facts {};
    return ::stat(path, &facts) == 0 ? facts.st_ino : 0;
}

NetlinkMessage new_link(const std::string& name, const char* kind = "bridge") {
    NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, name);
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, kind);
    message.end_nest(info);
    return message;
}

/// Whether the request succeeded; a failure is printed.
testing::AssertionResult done(const Result<void>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

class NetlinkInNamespace : public testing::Test {
protected:
    static void SetUpTestSuite() {
        // A normal user gets the capabilities by a user namespace, where those are allowed.
        if (::geteuid() != 0) {
            static_cast<void>(::unshare(CLONE_NEWUSER));
        }
    }
    void SetUp() override {
        namespace_ = make_namespace();
        if (!namespace_.valid()) {
            GTEST_SKIP() << "network namespaces need CAP_SYS_ADMIN here";
        }
        auto opened = NetlinkChannel::open_in(namespace_.get());
        if (!opened && opened.error().kind() == ErrorKind::kRefused) {
            GTEST_SKIP() << opened.error().to_line();
        }
        ASSERT_TRUE(opened) << opened.error().to_line();
        channel_.emplace(std::move(*opened));
    }
    UniqueFd namespace_;
    std::optional<NetlinkChannel> channel_;
};

TEST_F(NetlinkInNamespace, OpeningLeavesTheCallerWhereItWas) {
    const auto before = inode_of("/proc/thread-self/ns/net");
    ASSERT_TRUE(NetlinkChannel::open_in(namespace_.get()));
    EXPECT_EQ(inode_of("/proc/thread-self/ns/net"), before);
}

TEST_F(NetlinkInNamespace, DumpSeesOnlyThatNamespaceAndWhatWasMade) {
    auto made = new_link("rbtest0");
    ASSERT_TRUE(done(channel_->request(made, "make rbtest0")));
    std::set<std::string> names;
    NetlinkMessage get(RTM_GETLINK, 0);
    get.append_header(ifinfomsg{});
    const auto dumped = channel_->dump(
        get, "list links",
        [&names](const nlmsghdr& record) {
            nlattr* attributes[IFLA_MAX + 1];
            ASSERT_EQ(nlmsg_parse(const_cast<nlmsghdr*>(&record), sizeof(ifinfomsg), attributes, IFLA_MAX, nullptr), 0);
            names.insert(nla_get_string(attributes[IFLA_IFNAME]));
        },
        [&names] { names.clear(); });
    ASSERT_TRUE(dumped) << dumped.error().to_line();
    EXPECT_TRUE(names.contains("rbtest0"));
    EXPECT_TRUE(names.contains("lo"));
    EXPECT_EQ(::if_nametoindex("rbtest0"), 0U);
}

TEST_F(NetlinkInNamespace, QueryGivesTheRecordOfOneLink) {
    auto made = new_link("rbtest0");
    ASSERT_TRUE(done(channel_->request(made, "make rbtest0")));
    const auto index = interface_index(*channel_, "rbtest0");
    ASSERT_TRUE(index) << index.error().to_line();
    NetlinkMessage get(RTM_GETLINK, 0);
    get.append_header(ifinfomsg{});
    get.put_string(IFLA_IFNAME, "rbtest0");
    int answers = 0;
    int answered_index = 0;
    const auto asked = channel_->query(get, "read rbtest0", [&](const nlmsghdr& record) {
        ++answers;
        answered_index = static_cast<const ifinfomsg*>(NLMSG_DATA(&record))->ifi_index;
    });
    ASSERT_TRUE(asked) << asked.error().to_line();
    EXPECT_EQ(answers, 1);
    EXPECT_EQ(answered_index, *index);
}

TEST_F(NetlinkInNamespace, FailureCarriesErrnoAndTheSentence) {
    auto first = new_link("rbtest0");
    ASSERT_TRUE(done(channel_->request(first, "make rbtest0")));
    auto second = new_link("rbtest0");
    const auto twice = channel_->request(second, "make rbtest0 again");
    ASSERT_FALSE(twice);
    EXPECT_EQ(kernel_errno(twice.error()), EEXIST);
    EXPECT_EQ(twice.error().kind(), ErrorKind::kHarness);
    EXPECT_NE(twice.error().message().find("cannot make rbtest0 again"), std::string::npos);
}

TEST_F(NetlinkInNamespace, FailureCarriesTheKernelsOwnWords) {
    auto message = new_link("rbtest0", "no-such-kind");
    const auto made = channel_->request(message, "make a link of an unknown kind");
    ASSERT_FALSE(made);
    EXPECT_EQ(kernel_errno(made.error()), EOPNOTSUPP);
    EXPECT_NE(made.error().to_line().find("Unknown device type"), std::string::npos) << made.error().to_line();
}

TEST_F(NetlinkInNamespace, ChannelStillWorksAfterAFailure) {
    auto bad = new_link("rbtest0", "no-such-kind");
    ASSERT_FALSE(channel_->request(bad, "make a link of an unknown kind"));
    auto good = new_link("rbtest0");
    EXPECT_TRUE(done(channel_->request(good, "make rbtest0")));
}

TEST_F(NetlinkInNamespace, StrictCheckingRefusesAMalformedDump) {
    NetlinkMessage get(RTM_GETLINK, 0);
    ifinfomsg header{};
    header.ifi_flags = IFF_UP; // not a filter that the kernel knows
    get.append_header(header);
    const auto dumped = channel_->dump(
        get, "list links", [](const nlmsghdr&) {}, [] {});
    ASSERT_FALSE(dumped);
    EXPECT_EQ(kernel_errno(dumped.error()), EINVAL);
}

TEST_F(NetlinkInNamespace, AMissingInterfaceIsAnInputError) {
    const auto index = interface_index(*channel_, "rbnone");
    ASSERT_FALSE(index);
    EXPECT_EQ(index.error().kind(), ErrorKind::kInput);
    EXPECT_EQ(kernel_errno(index.error()), ENODEV);
    EXPECT_FALSE(interface_index(*channel_, "a-name-longer-than-any-interface"));
}

TEST(Netlink, ADescriptorThatIsNoNamespaceIsAnError) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto opened = NetlinkChannel::open_in(null.get());
    ASSERT_FALSE(opened);
    EXPECT_EQ(kernel_errno(opened.error()), EINVAL);
}

TEST(Netlink, ErrnoNamesMapBack) {
    EXPECT_EQ(kernel_errno(Error(ErrorKind::kHarness, "x").with("errno", "ENOENT")), ENOENT);
    EXPECT_EQ(kernel_errno(Error(ErrorKind::kHarness, "x").with("errno", "EOPNOTSUPP")), EOPNOTSUPP);
    EXPECT_EQ(kernel_errno(Error(ErrorKind::kHarness, "x").with("errno", "524")), 524);
    EXPECT_EQ(kernel_errno(Error(ErrorKind::kHarness, "x")), 0);
}

TEST(Netlink, AMessageIsRebuiltFromItsBytes) {
    NetlinkMessage original(RTM_NEWLINK, NLM_F_CREATE);
    original.append_header(ifinfomsg{});
    original.put_u32(IFLA_MTU, 9000);
    original.put_u64(IFLA_PAD, 7);
    const std::string raw(reinterpret_cast<const char*>(original.header()), original.header()->nlmsg_len);
    NetlinkMessage copy{std::string_view(raw)};
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(copy.header()), copy.header()->nlmsg_len), raw);
    copy.put_u8(IFLA_OPERSTATE, 1);
    EXPECT_EQ(copy.header()->nlmsg_len, raw.size() + 8);
}

TEST(Netlink, AnEmptyNestStaysInTheMessage) {
    NetlinkMessage message(RTM_NEWQDISC, 0);
    const auto before = message.header()->nlmsg_len;
    message.end_nest(message.begin_nest(IFLA_LINKINFO));
    EXPECT_EQ(message.header()->nlmsg_len, before + NLA_HDRLEN);
}

} // namespace
} // namespace railbreak::injectors
