// Random faults that overlap on three NICs and a process, undone in any order: while they act each target is what all
// of its faults together mean, and after the last one the host is as it was.
#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <net/if.h>

#include "injectors/composer.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/shaping.hpp"
#include "tests/lab/conformance_targets.hpp"

namespace railbreak::injectors {
namespace {

constexpr std::uint32_t kSeeds = 500;
constexpr std::size_t kMostAtOnce = 6;
constexpr int kSteps = 9;
constexpr std::array kNics{"nic0", "nic1", "nic2"};

class Composition : public ConformanceTargets {
protected:
    void run_seed(std::uint32_t seed);
    [[nodiscard]] FaultRequest draw(std::mt19937& random, std::int32_t id);
    void start(FaultKeeper& keeper, const FaultRequest& request);
    void expect_model(const std::string& where);
    void expect_nic(const std::string& nic, const WantedState& wanted, const std::string& where);
    [[nodiscard]] std::map<std::string, WantedState> model() const;

    std::vector<FaultForm> forms_ = all_fault_forms();
    std::map<std::int32_t, FaultRequest> active_;
    std::map<std::string, int> started_; ///< by kind, over all seeds
    int refused_ = 0;
};

FaultRequest Composition::draw(std::mt19937& random, std::int32_t id) {
    FaultRequest request;
    do {
        request = forms_.at(random() % forms_.size()).request;
    } while (request.kind == FaultKind::kKill || (request.kind == FaultKind::kDiskFull && !no_disk().empty()));
    request = aimed(request);
    request.id = id;
    if (target_kind(request.kind) != TargetKind::kNic) {
        return request;
    }
    const std::size_t nic = random() % kNics.size();
    request.nic = kNics.at(nic);
    if (!request.via_nic.empty()) {
        request.via_nic = kNics.at((nic + 1 + random() % 2) % kNics.size());
    }
    if (request.kind == FaultKind::kCap) {
        request.rate = BitRate::bits_per_s((10 + random() % 90) * 1'000'000);
    }
    return request;
}

/// Starts a fault. What cannot go together with those that act is refused; then nothing may have changed.
void Composition::start(FaultKeeper& keeper, const FaultRequest& request) {
    const auto applied = keeper.apply(request);
    if (applied) {
        active_[request.id] = request;
        ++started_[std::string(to_string(request.kind))];
        return;
    }
    ++refused_;
    ASSERT_EQ(applied.error().kind(), ErrorKind::kRefused) << applied.error().to_line();
}

std::map<std::string, WantedState> Composition::model() const {
    std::map<std::string, std::vector<FaultRequest>> by_nic;
    for (const char* nic : kNics) {
        by_nic[nic] = {};
    }
    for (const auto& [id, request] : active_) {
        if (target_kind(request.kind) == TargetKind::kNic) {
            by_nic[request.nic].push_back(request);
        }
    }
    std::map<std::string, WantedState> wanted;
    for (const auto& [nic, requests] : by_nic) {
        wanted[nic] = compose(requests).value();
    }
    return wanted;
}

void Composition::expect_nic(const std::string& nic, const WantedState& wanted, const std::string& where) {
    const std::int32_t ifindex = index_of(nic);
    const auto links = ops_->links().value();
    const auto link =
        std::find_if(links.begin(), links.end(), [&](const LinkRecord& each) { return each.ifindex == ifindex; });
    ASSERT_NE(link, links.end()) << where;
    EXPECT_EQ((link->flags & IFF_UP) == 0, wanted.down) << where << nic;
    EXPECT_EQ(link->mtu, wanted.mtu_bytes.value_or(1500)) << where << nic;
    EXPECT_EQ(class_rate(*ops_, ifindex, kOwnHtbClass).value(), wanted.send) << where << nic;
    const auto ifb = find_own_ifb(*ops_, fmt::format("rbifbr{}", ifindex)).value();
    const auto receive = ifb ? class_rate(*ops_, ifb->ifindex, kOwnHtbClass).value() : std::nullopt;
    EXPECT_EQ(receive, wanted.receive) << where << nic;
}

void Composition::expect_model(const std::string& where) {
    for (const auto& [nic, wanted] : model()) {
        expect_nic(nic, wanted, where);
    }
}

void Composition::run_seed(std::uint32_t seed) {
    std::mt19937 random(seed);
    FaultKeeper keeper = open_keeper(*ops_, options());
    std::int32_t next_id = 1;
    for (int step = 0; (step < kSteps || !active_.empty()) && !HasFailure(); ++step) {
        const std::string where = fmt::format("seed {} step {} ", seed, step);
        const bool add = step < kSteps && active_.size() < kMostAtOnce && random() % 3 != 0;
        if (add) {
            start(keeper, draw(random, next_id++));
        } else if (!active_.empty()) {
            const auto victim = std::next(active_.begin(), static_cast<std::ptrdiff_t>(random() % active_.size()));
            const auto reverted = keeper.revert(victim->first);
            ASSERT_TRUE(reverted.has_value()) << where << reverted.error().to_line();
            active_.erase(victim);
        }
        expect_model(where);
    }
    EXPECT_TRUE(keeper.close().has_value());
    wait_ended(keeper.guard_pid(), kPatience);
}

TEST_F(Composition, OverlappingFaultsActAsOneAndEndInTheOriginalState) {
    (void)aimed({.kind = FaultKind::kPause}); // so that the victim is part of the snapshot
    const auto before = snapshot();
    for (std::uint32_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
        run_seed(seed);
        expect_as_before(before, static_cast<int>(seed));
    }
    fmt::print("composition: {} seeds; started {}; {} refused\n", kSeeds, started_, refused_);
    EXPECT_GT(started_.size(), 3U);
}

} // namespace
} // namespace railbreak::injectors
