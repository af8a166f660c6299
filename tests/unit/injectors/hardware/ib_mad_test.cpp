// Management packets as bytes, compared with libibmad's own fields and with an answer recorded from ibsim.
#include "injectors/hardware/ib_mad.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <infiniband/mad.h>

namespace railbreak::injectors::hardware {
namespace {

/// A value by libibmad's table of fields.
std::uint32_t field(SmpData data, MAD_FIELDS which) {
    return ::mad_get_field(data.data(), 0, which);
}
std::uint32_t field(SmpBytes packet, MAD_FIELDS which) {
    return ::mad_get_field(packet.data(), 0, which);
}

SmpData random_data(std::mt19937& random) {
    SmpData data{};
    for (auto& byte : data) {
        byte = static_cast<std::uint8_t>(random());
    }
    return data;
}

void expect_fields(const SmpData& data) {
    const auto info = decode_port_info(data);
    EXPECT_EQ(info.lid, field(data, IB_PORT_LID_F));
    EXPECT_EQ(info.sm_lid, field(data, IB_PORT_SMLID_F));
    EXPECT_EQ(static_cast<unsigned>(info.state), field(data, IB_PORT_STATE_F));
    EXPECT_EQ(static_cast<unsigned>(info.physical_state), field(data, IB_PORT_PHYS_STATE_F));
    EXPECT_EQ(info.width_enabled, field(data, IB_PORT_LINK_WIDTH_ENABLED_F));
    EXPECT_EQ(info.width_supported, field(data, IB_PORT_LINK_WIDTH_SUPPORTED_F));
    EXPECT_EQ(info.width_active, field(data, IB_PORT_LINK_WIDTH_ACTIVE_F));
    EXPECT_EQ(info.speed_enabled, field(data, IB_PORT_LINK_SPEED_ENABLED_F));
    EXPECT_EQ(info.speed_supported, field(data, IB_PORT_LINK_SPEED_SUPPORTED_F));
    EXPECT_EQ(info.speed_active, field(data, IB_PORT_LINK_SPEED_ACTIVE_F));
    EXPECT_EQ(info.extended_speed_enabled, field(data, IB_PORT_LINK_SPEED_EXT_ENABLED_F));
    EXPECT_EQ(info.extended_speed_supported, field(data, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F));
    EXPECT_EQ(info.extended_speed_active, field(data, IB_PORT_LINK_SPEED_EXT_ACTIVE_F));
}

TEST(PortInfo, EveryFieldIsWhereLibibmadSeesIt) {
    std::mt19937 random(1);
    for (int i = 0; i < 1000; ++i) {
        expect_fields(random_data(random));
    }
}

TEST(PortInfo, AChangeSaysNoChangeInEveryOtherActingField) {
    std::mt19937 random(2);
    for (int i = 0; i < 1000; ++i) {
        SmpData read = random_data(random);
        read[16] |= 1; // a LID
        read[18] |= 1; // an SM LID
        IbPortChange change;
        change.physical_state = IbPhysicalState::kDisabled;
        auto changed = encode_port_change(read, change);
        ASSERT_TRUE(changed);
        EXPECT_EQ(field(*changed, IB_PORT_PHYS_STATE_F), 3U);
        for (const auto acting : {IB_PORT_STATE_F, IB_PORT_LINK_SPEED_ENABLED_F, IB_PORT_LINK_SPEED_EXT_ENABLED_F,
                                  IB_PORT_LINK_WIDTH_ENABLED_F}) {
            EXPECT_EQ(field(*changed, acting), 0U);
            ::mad_set_field(changed->data(), 0, acting, field(read, acting));
        }
        // Nothing else differs.
        ::mad_set_field(changed->data(), 0, IB_PORT_PHYS_STATE_F, field(read, IB_PORT_PHYS_STATE_F));
        EXPECT_EQ(*changed, read);
    }
}

TEST(PortInfo, AChangeSetsWhatItNames) {
    std::mt19937 random(3);
    SmpData read = random_data(random);
    std::fill_n(read.begin() + 16, 4, std::uint8_t{0});
    IbPortChange change;
    change.state = IbPortState::kDown;
    change.width_enabled = kIbWidth1x;
    change.speed_enabled = kIbSpeedSdr;
    change.extended_speed_enabled = kIbExtendedSpeedsOff;
    EXPECT_FALSE(encode_port_change(read, change));
    change.lid_when_none = 0x1234;
    const auto changed = encode_port_change(read, change);
    ASSERT_TRUE(changed);
    EXPECT_EQ(field(*changed, IB_PORT_LID_F), 0x1234U);
    EXPECT_EQ(field(*changed, IB_PORT_SMLID_F), 0x1234U);
    EXPECT_EQ(field(*changed, IB_PORT_STATE_F), 1U);
    EXPECT_EQ(field(*changed, IB_PORT_PHYS_STATE_F), 0U);
    EXPECT_EQ(field(*changed, IB_PORT_LINK_WIDTH_ENABLED_F), 1U);
    EXPECT_EQ(field(*changed, IB_PORT_LINK_SPEED_ENABLED_F), 1U);
    EXPECT_EQ(field(*changed, IB_PORT_LINK_SPEED_EXT_ENABLED_F), 30U);
}

TEST(SmpPacket, IsADirectedRoutePacketToLibibmad) {
    SmpRequest request;
    request.set = true;
    request.attribute = kSmpPortInfo;
    request.modifier = 7;
    request.route = {1, 2, 3};
    request.transaction = 0x01020304;
    request.management_key = 0x1122334455667788;
    std::mt19937 random(4);
    request.data = random_data(random);
    const auto packet = encode_smp(request);
    ASSERT_TRUE(packet);
    EXPECT_EQ(field(*packet, IB_MAD_BASEVER_F), 1U);
    EXPECT_EQ(field(*packet, IB_MAD_MGMTCLASS_F), static_cast<unsigned>(IB_SMI_DIRECT_CLASS));
    EXPECT_EQ(field(*packet, IB_MAD_CLASSVER_F), 1U);
    EXPECT_EQ(field(*packet, IB_MAD_METHOD_F), static_cast<unsigned>(IB_MAD_METHOD_SET));
    EXPECT_EQ(field(*packet, IB_DRSMP_HOPCNT_F), 3U);
    EXPECT_EQ(field(*packet, IB_DRSMP_HOPPTR_F), 0U);
    EXPECT_EQ(field(*packet, IB_MAD_ATTRID_F), static_cast<unsigned>(IB_ATTR_PORT_INFO));
    EXPECT_EQ(field(*packet, IB_MAD_ATTRMOD_F), 7U);
    EXPECT_EQ(field(*packet, IB_DRSMP_DRDLID_F), 0xffffU);
    EXPECT_EQ(field(*packet, IB_DRSMP_DRSLID_F), 0xffffU);
    SmpBytes copy = *packet;
    EXPECT_EQ(::mad_get_field64(copy.data(), 0, IB_MAD_MKEY_F), request.management_key);
    EXPECT_EQ(::mad_get_field64(copy.data(), 0, IB_MAD_TRID_F), request.transaction);
    EXPECT_EQ(smp_transaction(*packet), request.transaction);
    EXPECT_TRUE(std::equal(request.data.begin(), request.data.end(), packet->begin() + IB_SMP_DATA_OFFS));
    const std::array<std::uint8_t, 5> path{0, 1, 2, 3, 0};
    EXPECT_TRUE(std::equal(path.begin(), path.end(), packet->begin() + IB_SMP_DATA_OFFS + IB_SMP_DATA_SIZE));
}

TEST(SmpPacket, ARouteHasAnEnd) {
    SmpRequest request;
    request.route.assign(kLongestIbRoute, 1);
    EXPECT_TRUE(encode_smp(request));
    request.route.push_back(1);
    EXPECT_FALSE(encode_smp(request));
}

TEST(SmpPacket, OnlyAGoodAnswerHasData) {
    SmpBytes packet{};
    packet[1] = 0x81;
    packet[3] = 0x81;
    packet[4] = 0x80; // the direction bit is no status
    packet[64] = 0x42;
    ASSERT_TRUE(decode_smp_answer(packet));
    EXPECT_EQ((*decode_smp_answer(packet))[0], 0x42);
    packet[5] = 0x1c;
    const auto refused = decode_smp_answer(packet);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().to_line().find("0x001c"), std::string::npos);
    packet[5] = 0;
    packet[3] = 0x01;
    EXPECT_FALSE(decode_smp_answer(packet));
}

TEST(SmpPacket, TheLocalPortIsWhereLibibmadSeesIt) {
    std::mt19937 random(5);
    const SmpData data = random_data(random);
    EXPECT_EQ(node_info_local_port(data), field(data, IB_NODE_LOCAL_PORT_F));
}

} // namespace
} // namespace railbreak::injectors::hardware
