// The closure of protected interfaces on made-up hosts, and the readers of the kernel's tables.
#include "injectors/protection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

namespace railbreak::injectors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kUsable = IFF_UP | IFF_RUNNING;

LinkRecord link(std::int32_t ifindex, const std::string& name, const std::string& kind = "", std::int32_t master = 0,
                std::int32_t lower = 0, std::uint32_t flags = kUsable) {
    LinkRecord record;
    record.ifindex = ifindex;
    record.name = name;
    record.kind = kind;
    record.master = master;
    record.lower = lower;
    record.flags = flags;
    return record;
}

LinkRecord loopback() {
    return link(1, "lo", "", 0, 0, kUsable | IFF_LOOPBACK);
}

/// Names of the protected ones.
std::vector<std::string> protected_of(const Protection& protection, const std::vector<LinkRecord>& links) {
    std::vector<std::string> names;
    for (const LinkRecord& each : links) {
        if (!protection.check(each)) {
            names.push_back(each.name);
        }
    }
    return names;
}

TEST(Protection, TakesTheBondItsVlanHangsOnAndItsLastMemberOnly) {
    std::vector<LinkRecord> links{loopback(),
                                  link(2, "eth0", "", 4),
                                  link(3, "eth1", "", 4),
                                  link(4, "bond0", "bond"),
                                  link(5, "bond0.7", "vlan", 0, 4),
                                  link(6, "rail0")};
    const std::vector<Protection::Seed> seeds{{5, "carries the default route"}};
    const Protection both(links, seeds, {}, {}, false);
    EXPECT_THAT(protected_of(both, links), ElementsAre("lo", "bond0", "bond0.7"));
    EXPECT_EQ(both.why(4), "is below bond0.7, which carries the default route");

    const std::vector<std::int32_t> under_fault{2};
    const Protection one_at_fault(links, seeds, {}, under_fault, false);
    EXPECT_THAT(protected_of(one_at_fault, links), ElementsAre("lo", "eth1", "bond0", "bond0.7"));
    EXPECT_THAT(one_at_fault.check(links[2]).error().message(), HasSubstr("last usable member of bond0"));

    links[2].flags = IFF_UP; // no carrier
    const Protection one_unplugged(links, seeds, {}, {}, false);
    EXPECT_THAT(protected_of(one_unplugged, links), ElementsAre("lo", "eth0", "bond0", "bond0.7"));
}

TEST(Protection, TakesEveryPortOfABridgeButNoStrangersInAVrf) {
    const std::vector<LinkRecord> links{link(2, "port0", "", 4),  link(3, "port1", "veth", 4), link(4, "br0", "bridge"),
                                        link(5, "in_vrf", "", 7), link(6, "rail0", "", 7),     link(7, "blue", "vrf")};
    const Protection protection(links, {{4, "carries the default route"}, {5, "carries a connection of sshd"}}, {}, {},
                                false);
    EXPECT_THAT(protected_of(protection, links), ElementsAre("port0", "port1", "br0", "in_vrf", "blue"));
}

TEST(Protection, OfAMemberTakesTheBondButNotTheOtherMembers) {
    const std::vector<LinkRecord> links{link(2, "port0", "", 4), link(3, "port1", "", 4), link(4, "br0", "bridge")};
    const Protection protection(links, {{2, "carries the control connection"}}, {}, {}, false);
    EXPECT_THAT(protected_of(protection, links), ElementsAre("port0", "br0"));
    const Protection both(links, {{2, "carries the control connection"}, {4, "carries the default route"}}, {}, {},
                          false);
    EXPECT_THAT(protected_of(both, links), ElementsAre("port0", "port1", "br0"));
}

TEST(Protection, TakesPhysicalFunctionAndSiblings) {
    const std::vector<LinkRecord> links{link(2, "pf0"), link(3, "vf0"), link(4, "second_port"), link(5, "other")};
    const std::map<std::int32_t, PciFacts> pci{
        {2, {"0000:03:00", {}}}, {3, {"0000:03:02", {"pf0"}}}, {4, {"0000:03:00", {}}}, {5, {"0000:04:00", {}}}};
    const Protection protection(links, {{3, "carries the control connection"}}, pci, {}, false);
    EXPECT_THAT(protected_of(protection, links), ElementsAre("pf0", "vf0", "second_port"));
    EXPECT_THAT(protection.why(4), HasSubstr("same PCI device as pf0"));
}

TEST(Protection, RefusesTheLastInterfaceOnlyWhereControlNeedsOne) {
    const std::vector<LinkRecord> links{loopback(), link(2, "rail0"), link(3, "rail1"), link(4, "spare", "", 0, 0, 0)};
    EXPECT_THAT(protected_of(Protection(links, {}, {}, {}, true), links), ElementsAre("lo"));
    const std::vector<std::int32_t> under_fault{3};
    const Protection last(links, {}, {}, under_fault, true);
    EXPECT_THAT(protected_of(last, links), ElementsAre("lo", "rail0"));
    EXPECT_THAT(last.check(links[1]).error().message(), HasSubstr("last interface that is up"));
    EXPECT_THAT(protected_of(Protection(links, {}, {}, under_fault, false), links), ElementsAre("lo"));
}

TEST(ControlConnection, IsReadFromTheVariableOfSsh) {
    const auto four = parse_ssh_connection("192.0.2.7 51234 198.51.100.3 22");
    ASSERT_TRUE(four);
    EXPECT_EQ(four->local, "198.51.100.3");
    EXPECT_EQ(four->peer, "192.0.2.7");
    EXPECT_EQ(parse_ssh_connection("fe80::1%eth0 1 2001:db8:0::5 22")->local, "2001:db8::5");
    EXPECT_EQ(parse_ssh_connection("::ffff:192.0.2.7 1 ::ffff:198.51.100.3 22")->local, "198.51.100.3");
    for (const char* none : {"", "127.0.0.1 1 127.0.0.1 22", "::1 1 ::1 22", "192.0.2.7 1 198.51.100.3", "a b c d"}) {
        EXPECT_FALSE(parse_ssh_connection(none)) << none;
    }
}

TEST(ServiceConnections, AreEstablishedOnesOfKnownPorts) {
    constexpr const char* kTable =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "   0: 036433C6:0016 070200C0:C822 01 00000000:00000000 02:000A 00000000     0 0 1\n" // sshd
        "   1: 036433C6:0016 070200C0:C823 01 00000000:00000000 02:000A 00000000     0 0 1\n" // the same once more
        "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:0000 00000000     0 0 1\n" // only listens
        "   3: 036433C6:9999 070200C0:0801 01 00000000:00000000 02:000A 00000000     0 0 1\n" // to NFS
        "   4: 0100007F:0016 0100007F:C824 01 00000000:00000000 02:000A 00000000     0 0 1\n" // within the host
        "   5: 036433C6:9998 070200C0:9997 01 00000000:00000000 02:000A 00000000     0 0 1\n" // somebody's
        "   6: rubbish\n";
    const std::vector<Connection> found = service_connections(kTable);
    EXPECT_THAT(found, ElementsAre(Connection{"198.51.100.3", "192.0.2.7", "a connection of sshd"},
                                   Connection{"198.51.100.3", "192.0.2.7", "a connection to an NFS server"}));
    const std::vector<Connection> six = service_connections(
        "   0: B80D0120000000000000000005000000:0016 B80D0120000000000000000007000000:C822 01 0 0\n");
    EXPECT_THAT(six, ElementsAre(Connection{"2001:db8::5", "2001:db8::7", "a connection of sshd"}));
}

TEST(FileServers, AreReadFromTheTableOfMounts) {
    const std::vector<Connection> found =
        file_servers("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                     "30 22 0:40 / /home rw,relatime shared:1 - nfs4 server:/home rw,vers=4.2,addr=192.0.2.9\n"
                     "31 22 0:41 / /scratch rw - lustre 192.0.2.10@tcp:192.0.2.11@tcp:/fs rw\n"
                     "32 22 0:42 / /win rw - cifs //[2001:db8::1]/share rw\n"
                     "33 22 0:43 / /named rw - nfs server:/by/name rw\n"
                     "34 22 0:44 / /x rw - nfs\n");
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].peer, "192.0.2.9");
    EXPECT_EQ(found[1].peer, "192.0.2.10");
    EXPECT_EQ(found[2].peer, "2001:db8::1");
    EXPECT_THAT(file_servers(""), IsEmpty());
}

TEST(Management, IsToldByWholeWordsOnly) {
    for (const char* name : {"mgmt0", "eth0-mgmt", "Dell iDRAC", "bmc", "idrac0", "oob1", "ILO (rear)"}) {
        EXPECT_TRUE(sounds_like_management(name)) << name;
    }
    for (const char* name : {"", "eth0", "pilot", "rail0", "silo1", "boob", "mgmtx"}) {
        EXPECT_FALSE(sounds_like_management(name)) << name;
    }
}

} // namespace
} // namespace railbreak::injectors
