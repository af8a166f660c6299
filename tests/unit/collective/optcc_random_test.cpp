// OptCC plans with parameters drawn at random are proven, one and all. Same draws in every run.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_weights.hpp"
#include "collective/verify.hpp"

namespace railbreak::collective {
namespace {

class Draw {
public:
    explicit Draw(std::uint64_t seed) : random_(seed) {}

    OptccParameters parameters() {
        OptccParameters p;
        p.servers = static_cast<Rank>(number(3, 14));
        p.plan = static_cast<OptccPlan>(number(0, static_cast<std::int64_t>(OptccPlan::kPatterns)));
        const bool several = p.plan != OptccPlan::kLagStar && p.plan != OptccPlan::kPatterns;
        draw_stragglers(p, several ? number(1, std::min(6, p.servers - 2)) : 1);
        p.elements = number(1, number(0, 2) == 0 ? 40 : 3000);
        p.segments = p.plan == OptccPlan::kPatterns ? 4 * number(1, 2) : number(1, 8);
        p.shared = number(0, 1) == 1;
        p.late_first_link = p.plan == OptccPlan::kUniform && number(0, 1) == 1;
        p.ranks_per_server = static_cast<Rank>(number(1, 3));
        p.nics_per_server = static_cast<std::int32_t>(number(1, 3));
        draw_weights(p);
        draw_stars(p);
        return p;
    }

private:
    std::int64_t number(std::int64_t least, std::int64_t most) {
        return least + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
    }

    void draw_stragglers(OptccParameters& p, std::int64_t count) {
        std::vector<Rank> all;
        for (Rank server = 0; server < p.servers; ++server) {
            all.push_back(server);
        }
        for (std::int64_t a = 0; a < count; ++a) {
            const auto at = number(0, static_cast<std::int64_t>(all.size()) - 1);
            p.stragglers.push_back(all[static_cast<std::size_t>(at)]);
            all.erase(all.begin() + at);
        }
    }

    void draw_weights(OptccParameters& p) {
        const double slowdown = 1 + static_cast<double>(number(0, 30)) / 10;
        if (p.plan == OptccPlan::kLag || p.plan == OptccPlan::kLagStar) {
            p.weights = lag_weights(slowdown, p.segments, p.servers - 1);
        } else if (p.plan == OptccPlan::kRamp) {
            p.weights = ramp_weights(slowdown, p.segments, p.servers - 1);
        }
        for (std::size_t i = 0; i < p.weights.size() && number(0, 9) > 0; ++i) { // mostly not what the plan is made for
            p.weights[i] = number(1, 9);
            if (p.plan == OptccPlan::kRamp) {
                p.weights[p.weights.size() - 1 - i] = p.weights[i];
            }
        }
    }

    void draw_stars(OptccParameters& p) {
        if (p.plan == OptccPlan::kLagStar) {
            p.star_weights.push_back(1);
            for (std::size_t i = 0; i < p.weights.size(); ++i) {
                p.star_weights.push_back(number(0, 3));
            }
        }
        if (p.plan == OptccPlan::kLagStar ||
            (p.plan == OptccPlan::kStar && 2 * p.stragglers.size() <= static_cast<std::size_t>(p.servers))) {
            std::int64_t left = p.elements;
            for (std::size_t a = 0; a < p.stragglers.size(); ++a) {
                p.star_elements.push_back(number(0, left));
                left -= p.star_elements.back();
            }
        }
    }

    std::mt19937_64 random_;
};

TEST(RandomOptcc, IsProven) {
    Draw draw(2026);
    for (int i = 0; i < 150; ++i) {
        const auto schedule = make_optcc(draw.parameters());
        for (const Violation& violation : verify(*schedule, 2)) {
            ADD_FAILURE() << schedule->name() << " p=" << schedule->ranks() << " n=" << schedule->elements() << ": "
                          << to_string(violation);
        }
    }
}

} // namespace
} // namespace railbreak::collective
