// NVML: the loader and the decisions, on a stand-in with NVML's symbols; what the driver's own library does needs a
// GPU.
#include "injectors/hardware/nvml.hpp"

#include <gtest/gtest.h>

namespace railbreak::injectors::hardware {
namespace {

template <class T> testing::AssertionResult done(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

class StandInGpus : public testing::Test {
protected:
    void SetUp() override {
        auto loaded = Nvml::load(NVML_STAND_IN);
        ASSERT_TRUE(done(loaded));
        nvml_.emplace(std::move(*loaded));
    }
    std::optional<Nvml> nvml_;
};

TEST(NvmlLoader, WithoutNvmlItIsARefusalThatTellsTheWay) {
    const auto none = Nvml::load("libno-such-management.so.1");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::kRefused);
    EXPECT_FALSE(none.error().advice().empty());
}

TEST(NvmlLoader, AnotherLibraryIsNoNvml) {
    const auto other = Nvml::load("libm.so.6");
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message().find("nvmlInit_v2"), std::string::npos);
}

TEST(NvmlLoader, ThisHostHasItOrSaysWhyNot) {
    const auto real = Nvml::load();
    if (real) {
        EXPECT_TRUE(done(real->gpus()));
    } else {
        EXPECT_EQ(real.error().kind(), ErrorKind::kRefused) << real.error().to_line();
    }
}

TEST_F(StandInGpus, AreListed) {
    const auto gpus = nvml_->gpus();
    ASSERT_TRUE(done(gpus));
    EXPECT_EQ(*gpus, (std::vector<Gpu>{{"GPU-0", "stand-in", "0000:3b:00.0"},
                                       {"GPU-1", "stand-in", "0000:3b:01.0"},
                                       {"GPU-2", "stand-in", "0000:3b:02.0"}}));
}

TEST_F(StandInGpus, ThePowerLimitIsSetAndPutBack) {
    const auto former = nvml_->read_power("GPU-0");
    ASSERT_TRUE(done(former));
    EXPECT_EQ(*former, (GpuPower{700'000, 200'000, 700'000, 700'000}));
    ASSERT_TRUE(done(nvml_->set_power_limit("GPU-0", 300'000)));
    EXPECT_EQ(nvml_->read_power("GPU-0")->limit_milliwatts, 300'000U);
    ASSERT_TRUE(done(nvml_->restore_power_limit("GPU-0", *former)));
    EXPECT_EQ(*nvml_->read_power("GPU-0"), *former);
}

TEST_F(StandInGpus, ALimitOutsideTheGpusRangeIsRefused) {
    for (const std::uint32_t limit : {199'999U, 700'001U}) {
        const auto set = nvml_->set_power_limit("GPU-0", limit);
        ASSERT_FALSE(set);
        EXPECT_EQ(set.error().kind(), ErrorKind::kInput);
    }
    EXPECT_EQ(nvml_->read_power("GPU-0")->limit_milliwatts, 700'000U);
}

TEST_F(StandInGpus, WithoutPermissionItIsARefusal) {
    const auto set = nvml_->set_power_limit("GPU-1", 300'000);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kRefused);
    const auto restored = nvml_->restore_clocks("GPU-1", {});
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
}

TEST_F(StandInGpus, ALimitThatDidNotTakeIsFound) {
    const auto set = nvml_->set_power_limit("GPU-2", 300'000);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kHarness);
    const auto restored = nvml_->restore_power_limit("GPU-2", GpuPower{300'000, 0, 0, 0});
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
}

TEST_F(StandInGpus, ClocksAreLockedOnlyWithADeclaredBaseline) {
    const auto refused = nvml_->lock_clocks("GPU-0", {210, 900}, std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(nvml_->sm_clock_mhz("GPU-0").value_or(0), 1980U);
    ASSERT_TRUE(done(nvml_->lock_clocks("GPU-0", {210, 900}, ClockBaseline{})));
    EXPECT_EQ(nvml_->sm_clock_mhz("GPU-0").value_or(0), 900U);
    ASSERT_TRUE(done(nvml_->restore_clocks("GPU-0", ClockBaseline{{{210, 1500}}})));
    EXPECT_EQ(nvml_->sm_clock_mhz("GPU-0").value_or(0), 1500U);
    ASSERT_TRUE(done(nvml_->restore_clocks("GPU-0", ClockBaseline{})));
    EXPECT_EQ(nvml_->sm_clock_mhz("GPU-0").value_or(0), 1980U);
    EXPECT_FALSE(nvml_->lock_clocks("GPU-0", {900, 210}, ClockBaseline{}));
}

TEST_F(StandInGpus, AnUnknownGpuIsAnInputError) {
    const auto power = nvml_->read_power("GPU-9");
    ASSERT_FALSE(power);
    EXPECT_EQ(power.error().kind(), ErrorKind::kInput);
}

} // namespace
} // namespace railbreak::injectors::hardware
