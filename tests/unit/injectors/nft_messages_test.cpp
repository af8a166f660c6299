// The messages of nf_tables, byte by byte; and that what is read back is what was sent.
#include "injectors/nft_messages.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "injectors/drop_rules.hpp"

namespace railbreak::injectors {
namespace {

/// Bytes in hexadecimal, a blank between groups of four.
std::string hex(const std::string& bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        out += fmt::format("{}{:02x}", i > 0 && i % 4 == 0 ? " " : "", static_cast<unsigned char>(bytes[i]));
    }
    return out;
}

const NftTable kTable{kNftNetdev, "t"};

TEST(NftMessages, FramesATransaction) {
    // Length, type 0x10, no flags, no sequence, no port; unspecified family, version 0, subsystem 10 big-endian.
    EXPECT_EQ(hex(nft_begin()), "14000000 10000000 00000000 00000000 0000000a");
    EXPECT_EQ(hex(nft_begin(0x01020304)), "1c000000 10000000 00000000 00000000 0000000a 08000100 01020304");
    EXPECT_EQ(hex(nft_end()), "14000000 11000000 00000000 00000000 0000000a");
    EXPECT_TRUE(is_nft_begin(nft_begin(7)));
    EXPECT_FALSE(is_nft_begin(nft_end()));
    EXPECT_FALSE(is_nft_begin(nft_delete_table(kTable)));
}

TEST(NftMessages, MakesAndDeletesATable) {
    // NLM_F_CREATE; family 5; name; user data with a comment.
    EXPECT_EQ(hex(nft_new_table(kTable, "ab")),
              "28000000 000a0004 00000000 00000000 05000000 06000100 74000000 09000600 00036162 00000000");
    EXPECT_EQ(hex(nft_delete_table(kTable)), "1c000000 020a0000 00000000 00000000 05000000 06000100 74000000");
}

TEST(NftMessages, MakesAChainOnADevice) {
    EXPECT_EQ(hex(nft_new_chain(kTable, {"in", kNftEgressHook, -500, "nic0"})),
              "58000000 030a0004 00000000 00000000 05000000 06000100 74000000 07000300 696e0000 "
              // hook 1, priority -500, device
              "20000480 08000100 00000001 08000200 fffffe0c 09000300 6e696330 00000000 "
              // policy accept, type
              "08000500 00000001 0b000700 66696c74 65720000");
    EXPECT_EQ(hex(nft_delete_chain(kTable, "in")),
              "24000000 050a0000 00000000 00000000 05000000 06000100 74000000 07000300 696e0000");
}

TEST(NftMessages, MakesASetWhoseElementsEnd) {
    EXPECT_EQ(hex(nft_new_set(kTable, {"s", kNftIpv4Key, 4}, 3)),
              "44000000 090a0004 00000000 00000000 05000000 06000100 74000000 06000200 73000000 "
              // NFT_SET_TIMEOUT, key type and length, number within the transaction
              "08000300 00000010 08000400 00000007 08000500 00000004 08000a00 00000003");
    const std::array<std::string, 2> keys{std::string("\x0a\x09\x00\x02", 4), std::string("\x0a\x09\x00\x03", 4)};
    EXPECT_EQ(hex(nft_add_elements(kTable, "s", keys, std::chrono::seconds(1) + Nanoseconds(999'999))),
              "60000000 0c0a0004 00000000 00000000 05000000 06000100 74000000 06000200 73000000 3c000380 "
              "1c000180 0c000180 08000100 0a090002 0c000400 00000000 000003e8 "
              "1c000180 0c000180 08000100 0a090003 0c000400 00000000 000003e8");
    EXPECT_EQ(hex(nft_flush_set(kTable, "s")),
              "24000000 0e0a0000 00000000 00000000 05000000 06000100 74000000 06000200 73000000");
}

TEST(NftMessages, MakesARule) {
    NftExpressions rule;
    rule.load_meta(4).compare(0, "\x01").look_up("s", 2).count().verdict(0);
    EXPECT_EQ(hex(nft_new_rule(kTable, "in", rule, "c")),
              "f0000000 060a000c 00000000 00000000 05000000 "
              "06000100 74000000 07000200 696e0000 c4000480 "
              // meta: key 4 into register 1
              "24000180 09000100 6d657461 00000000 14000280 08000200 00000004 08000100 00000001 "
              // cmp: register 1 equals one byte
              "2c000180 08000100 636d7000 20000280 08000100 00000001 08000200 00000000 0c000300 "
              "05000100 01000000 "
              // lookup: set by name and number
              "2c000180 0b000100 6c6f6f6b 75700000 1c000280 06000100 73000000 08000200 00000001 "
              "08000400 00000002 "
              // counter
              "14000180 0c000100 636f756e 74657200 04000280 "
              // immediate: drop
              "30000180 0e000100 696d6d65 64696174 65000000 1c000280 08000100 00000000 10000200 "
              "0c000200 08000100 00000000 "
              // comment
              "08000700 00026300");
}

TEST(NftMessages, SwallowsByForwardingToNoInterface) {
    NftExpressions rule;
    rule.swallow();
    EXPECT_EQ(hex(nft_new_rule(kTable, "in", rule, "")),
              "74000000 060a000c 00000000 00000000 05000000 06000100 74000000 07000200 696e0000 48000480 "
              // immediate: zero into register 1
              "2c000180 0e000100 696d6d65 64696174 65000000 18000280 08000100 00000001 0c000200 08000100 00000000 "
              // fwd: to the interface of register 1
              "18000180 08000100 66776400 0c000280 08000100 00000001 "
              "07000700 00010000");
}

TEST(NftMessages, CommentsSurvive) {
    for (const std::string_view comment : {"", "x", "made by railbreak"}) {
        EXPECT_EQ(nft_comment_of(nft_comment_bytes(comment)), comment);
    }
    EXPECT_EQ(nft_comment_of(std::string("\x05\x01z", 3) + nft_comment_bytes("second")), "second");
    for (const std::string& damaged : {std::string("\0", 1),
                                       std::string("\0\x09"
                                                   "a",
                                                   3),
                                       std::string("\0\0", 2)}) {
        EXPECT_EQ(nft_comment_of(damaged), "");
    }
}

TEST(NftMessages, KnowTheirNames) {
    EXPECT_EQ(nft_message_name(nft_begin()), "BATCH_BEGIN");
    EXPECT_EQ(nft_message_name(nft_delete_table(kTable)), "DELTABLE");
    EXPECT_EQ(nft_message_name(nft_new_chain(kTable, {"in", 0, 0, "x"})), "NEWCHAIN");
    EXPECT_EQ(nft_message_name("short"), "?");
}

TEST(DropRules, ReadPeers) {
    EXPECT_EQ(hex(parse_peer("10.9.0.2").value()), "0a090002");
    EXPECT_EQ(parse_peer("::ffff:10.9.0.2").value(), parse_peer("10.9.0.2").value());
    EXPECT_EQ(hex(parse_peer("fd09::2").value()), "fd090000 00000000 00000000 00000002");
    for (const char* wrong : {"", "10.9.0", "10.9.0.2/24", "nic0", "0.0.0.0", "255.255.255.255", "224.0.0.1",
                              "::", "ff02::1", "fe80::1%nic0"}) {
        const auto peer = parse_peer(wrong);
        ASSERT_FALSE(peer.has_value()) << wrong;
        EXPECT_EQ(peer.error().kind(), ErrorKind::kInput);
    }
}

TEST(DropRules, ElementsAreWhatTheFaultsWant) {
    WantedState wanted;
    wanted.send_drops.all = true;
    wanted.receive_drops.peers = {"fd09::2", "10.9.0.2", "::ffff:10.9.0.2", "10.9.0.1"};
    const auto places = drop_places(7, "nic0", Egress::kDrop);
    ASSERT_EQ(places.size(), 3U);
    for (const DropPlace& place : places) {
        const auto keys = drop_keys(place, wanted);
        ASSERT_TRUE(keys.has_value());
        ASSERT_EQ(keys->size(), drop_sets(place).size());
        EXPECT_EQ((*keys)[0].size(), place.send ? 1U : 0U);
        EXPECT_EQ((*keys)[1].size(), place.send ? 0U : 2U);
        EXPECT_EQ((*keys)[2].size(), place.send ? 0U : 1U);
        EXPECT_TRUE(std::is_sorted((*keys)[1].begin(), (*keys)[1].end()));
    }
    EXPECT_EQ(drop_places(7, "nic0", Egress::kNone).size(), 2U);
    EXPECT_FALSE(places.back().silent);
    EXPECT_TRUE(drop_places(7, "nic0", Egress::kSwallow).back().silent);
}

TEST(DropRules, TellAWholePlaceFromAPart) {
    const DropPlace place = drop_places(7, "nic0", Egress::kDrop).front();
    NftTableRecord table;
    table.present = true;
    EXPECT_FALSE(has_any(table, place));
    table.chains = {place.chain};
    table.sets = drop_sets(place);
    for (const char* comment : {"blackhole", "partition, IPv4", "neighbour discovery passes", "partition, IPv6"}) {
        EXPECT_FALSE(is_whole(table, place));
        table.rules.push_back({place.chain.name, comment, 0, 0});
    }
    EXPECT_TRUE(is_whole(table, place));
    EXPECT_TRUE(has_any(table, place));
    NftTableRecord renamed = table;
    renamed.chains.front().device = "nic1";
    EXPECT_FALSE(is_whole(renamed, place));
    std::vector<std::string> messages;
    delete_place(messages, renamed, place);
    EXPECT_EQ(messages.size(), 4U);
    table.sets.pop_back();
    EXPECT_FALSE(is_whole(table, place));
}

} // namespace
} // namespace railbreak::injectors
