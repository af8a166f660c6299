// Which means treat the packets of a NIC, and the arithmetic of the packet program's chances.
#include "injectors/packet_mechanism.hpp"

#include <gmock/gmock.h>

#include "injectors/programs/packet_program.h"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;

SideFormer with(PacketMechanism mechanism) {
    SideFormer former;
    former.mechanism = mechanism;
    former.no_netem = "no netem here";
    former.no_program = "no program here";
    return former;
}

const PacketTreatment kEverything{.delay = Nanoseconds(5), .loss = 1, .corrupt = 2, .duplicate = 3, .reorder = 4};

TEST(PacketMechanism, SaysWhatIsMissing) {
    const PacketTreatment late{.delay = Nanoseconds(5)};
    const PacketTreatment lossy{.loss = 1};
    const PacketTreatment damaged{.corrupt = 1};
    const auto why = [](PacketMechanism mechanism, TcDirection direction, const PacketTreatment& treatment) {
        const auto checked = check_treatment(with(mechanism), direction, treatment);
        return checked ? std::string("fine") : checked.error().message();
    };
    for (const TcDirection side : {TcDirection::kIngress, TcDirection::kEgress}) {
        EXPECT_EQ(why(PacketMechanism::kNone, side, PacketTreatment{}), "fine");
        EXPECT_THAT(why(PacketMechanism::kNone, side, lossy), HasSubstr("no netem here"));
        EXPECT_THAT(why(PacketMechanism::kNone, side, lossy), HasSubstr("no program here"));
        EXPECT_EQ(why(PacketMechanism::kProgram, side, lossy), "fine");
        EXPECT_EQ(why(PacketMechanism::kProgram, side, damaged), "fine");
        EXPECT_THAT(why(PacketMechanism::kProgram, side, late), HasSubstr("no netem here"));
        EXPECT_EQ(why(PacketMechanism::kNetemAndProgram, side, kEverything), "fine");
    }
    // The NIC has checked what arrives; netem would turn a bit behind that.
    EXPECT_THAT(why(PacketMechanism::kNetem, TcDirection::kIngress, damaged), HasSubstr("no program here"));
    EXPECT_EQ(why(PacketMechanism::kNetem, TcDirection::kEgress, damaged), "fine");
}

TEST(PacketMechanism, EveryPartOfATreatmentFallsToExactlyOne) {
    for (const TcDirection side : {TcDirection::kIngress, TcDirection::kEgress}) {
        for (const auto mechanism :
             {PacketMechanism::kProgram, PacketMechanism::kNetem, PacketMechanism::kNetemAndProgram}) {
            const PacketTreatment netem = netem_part(with(mechanism), side, kEverything).value_or(PacketTreatment{});
            const PacketTreatment program =
                program_part(with(mechanism), side, kEverything).value_or(PacketTreatment{});
            EXPECT_EQ(netem.loss + program.loss, kEverything.loss);
            EXPECT_EQ(netem.duplicate + program.duplicate, kEverything.duplicate);
            if (mechanism != PacketMechanism::kNetem || side == TcDirection::kEgress) {
                EXPECT_EQ(netem.corrupt + program.corrupt, kEverything.corrupt);
            }
            EXPECT_FALSE(netem_part(with(mechanism), side, PacketTreatment{}));
            EXPECT_FALSE(program_part(with(mechanism), side, PacketTreatment{}));
        }
    }
    const SideFormer both = with(PacketMechanism::kNetemAndProgram);
    EXPECT_EQ(program_part(both, TcDirection::kIngress, kEverything), (PacketTreatment{.corrupt = 2}));
    EXPECT_FALSE(program_part(both, TcDirection::kEgress, kEverything));
}

TEST(PacketMechanism, ANetemHoldsWhatIsOnItsWay) {
    // 8 Gbit/s for 3 ms are 3 MB: 2000 packets, and half as many again.
    const PacketTreatment late{.delay = std::chrono::milliseconds(2), .jitter = std::chrono::milliseconds(1)};
    EXPECT_EQ(netem_shape(late, BitRate::bits_per_s(8'000'000'000)).limit_packets, 4000U);
    EXPECT_EQ(netem_shape(PacketTreatment{.loss = 1}, std::nullopt).limit_packets, 1000U);
    EXPECT_EQ(netem_shape(PacketTreatment{.delay = std::chrono::minutes(1)}, std::nullopt).limit_packets, 1'000'000U);
}

TEST(PacketMechanism, IsToldToPeople) {
    EXPECT_EQ(describe_treatment({.delay = std::chrono::microseconds(1500),
                                  .jitter = std::chrono::milliseconds(1),
                                  .loss = 15'000,
                                  .reorder = 1}),
              "delay 1.5ms +- 1ms, 1.5% lost, 0.0001% sent at once");
    EXPECT_EQ(describe_treatment({.bursts = GilbertElliott{20'000, 200'000}, .corrupt = 1'000, .duplicate = kMillion}),
              "lost in bursts (good to bad 2%, back 20%; lost then 100%, else 0%), 0.1% corrupted, 100% duplicated");
    EXPECT_EQ(treatment_values("send", {.loss = 15'000, .reorder = 1}),
              (std::vector<std::pair<std::string, std::string>>{{"send_loss_millionths", "15000"},
                                                                {"send_reorder_millionths", "1"}}));
}

TEST(PacketMechanism, SurvivesTheJournal) {
    SideFormer former = with(PacketMechanism::kNetemAndProgram);
    former.seed = 0xfedcba98;
    former.foreign_clsact = true;
    const std::string bytes = encode_side(former);
    const auto back = decode_side(bytes);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(encode_side(*back), bytes);
    EXPECT_EQ(back->seed, former.seed);
    EXPECT_EQ(back->no_netem, former.no_netem);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(decode_side(std::string_view(bytes).substr(0, size)).has_value()) << size;
    }
    EXPECT_FALSE(decode_side("\x04" + bytes.substr(1)).has_value());
}

TEST(PacketChance, HasTheFrequencyThatIsAskedFor) {
    packet_settings settings{};
    settings.seed = 42;
    for (const std::uint32_t asked : {1'000U, 10'000U, 500'000U, 999'000U}) {
        for (const std::uint64_t question : {PACKET_IS_LOST, PACKET_IS_DUPLICATED, PACKET_IS_CORRUPTED}) {
            std::uint32_t hits = 0;
            for (std::uint64_t packet = 0; packet < 1'000'000; ++packet) {
                hits += packet_happens(&settings, packet, question, asked) != 0 ? 1 : 0;
            }
            const double part = asked / 1e6;
            EXPECT_NEAR(hits, asked, 5 * std::sqrt(1e6 * part * (1 - part))) << asked << " " << question;
        }
    }
    for (std::uint64_t packet = 0; packet < 10'000; ++packet) {
        ASSERT_EQ(packet_happens(&settings, packet, PACKET_IS_LOST, 0), 0);
        ASSERT_NE(packet_happens(&settings, packet, PACKET_IS_LOST, kMillion), 0);
    }
}

/// The first outputs of SplitMix64 for the seed 1234567, from its authors' reference.
TEST(PacketChance, IsSplitMix64) {
    EXPECT_EQ(packet_random(1234567, 0, 0), 6457827717110365317ULL);
    EXPECT_EQ(packet_random(1234567, 0, 1), 3203168211198807973ULL);
    EXPECT_EQ(packet_random(1234567, 0, 2), 9817491932198370423ULL);
    EXPECT_EQ(packet_random(1234567, 0, 3), 4593380528125082431ULL);
}

TEST(PacketChance, BurstsHaveTheFractionAndTheLengthOfTheChain) {
    packet_settings settings{};
    settings.seed = 7;
    settings.bursts = 1;
    settings.good_to_bad = 10'000;
    settings.bad_to_good = 250'000;
    settings.loss_in_bad = 1'000'000;
    std::uint32_t bad = 0;
    std::uint32_t lost = 0;
    std::uint32_t bursts = 0;
    bool before = false;
    for (std::uint64_t packet = 0; packet < 1'000'000; ++packet) {
        const bool now = packet_is_lost(&settings, packet, &bad) != 0;
        lost += now ? 1 : 0;
        bursts += now && !before ? 1 : 0;
        before = now;
    }
    // One packet in 26 is lost, in bursts of four on average. The number of bursts has a standard deviation of
    // about 95.
    EXPECT_NEAR(bursts, 1e6 / 26 / 4, 500);
    EXPECT_NEAR(static_cast<double>(lost) / bursts, 4, 0.2);
}

} // namespace
} // namespace railbreak::injectors
