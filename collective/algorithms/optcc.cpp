#include "collective/algorithms/optcc.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/check.hpp"
#include "collective/algorithms/optcc_rail.hpp"
#include "collective/algorithms/optcc_servers.hpp"

namespace railbreak::collective {

namespace {

bool has_star(OptccPlan plan) {
    return plan == OptccPlan::kStar || plan == OptccPlan::kLagStar;
}

bool has_weights(OptccPlan plan) {
    return plan == OptccPlan::kLag || plan == OptccPlan::kLagStar || plan == OptccPlan::kRamp;
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
    std::int64_t total = 0;
    for (const std::int64_t value : values) {
        RB_CHECK(value >= 0, "sizes are not negative");
        total += value;
    }
    return total;
}

void check_members(const OptccParameters& parameters) {
    const auto stragglers = static_cast<Rank>(parameters.stragglers.size());
    RB_CHECK(stragglers >= 1 && parameters.servers >= stragglers + 2, "OptCC needs a straggler and two healthy ranks");
    std::set<Rank> different;
    for (const Rank straggler : parameters.stragglers) {
        RB_CHECK(straggler >= 0 && straggler < parameters.servers && different.insert(straggler).second,
                 "every straggler is another rank");
    }
    RB_CHECK(parameters.ranks_per_server >= 1 && parameters.nics_per_server >= 1, "a server has ranks and NICs");
}

void check_plan(const OptccParameters& parameters) {
    const OptccPlan plan = parameters.plan;
    RB_CHECK(parameters.elements >= 1, "a vector has at least one element");
    RB_CHECK(parameters.segments >= 1, "a plan has at least one segment");
    RB_CHECK(parameters.stragglers.size() == 1 || (plan != OptccPlan::kLagStar && plan != OptccPlan::kPatterns),
             "this plan is for one straggler");
    RB_CHECK(plan != OptccPlan::kPatterns || parameters.segments % 4 == 0, "the four patterns take four segments");
    RB_CHECK(!parameters.late_first_link || plan == OptccPlan::kUniform,
             "only uniform plans may have a late first link");
    const std::vector<std::int64_t>& weights = parameters.weights;
    RB_CHECK(static_cast<std::int64_t>(weights.size()) == (has_weights(plan) ? parameters.segments : 0),
             "one weight a segment");
    RB_CHECK(weights.empty() || (*std::min_element(weights.begin(), weights.end()) > 0 &&
                                 sum(weights) <= std::numeric_limits<std::int64_t>::max() / 4),
             "no segment has weight 0");
    RB_CHECK(plan != OptccPlan::kRamp || std::equal(weights.begin(), weights.end(), weights.rbegin()),
             "a ramp goes down as it goes up");
}

void check_star(const OptccParameters& parameters) {
    RB_CHECK(sum(parameters.star_elements) <= parameters.elements, "the star chunks are a part of the vector");
    RB_CHECK(parameters.star_elements.empty() || has_star(parameters.plan), "only star plans have star chunks");
    RB_CHECK(parameters.star_elements.empty() ||
                 (parameters.star_elements.size() == parameters.stragglers.size() &&
                  2 * static_cast<Rank>(parameters.stragglers.size()) <= parameters.servers),
             "a star for each straggler, and at least as many healthy ranks");
    const bool lag = parameters.plan == OptccPlan::kLagStar;
    RB_CHECK(parameters.star_weights.empty() ? !lag || parameters.star_elements.empty() : lag,
             "only lagged plans have unequal star chunks");
    RB_CHECK(parameters.star_weights.empty() ||
                 (parameters.star_weights.size() == parameters.weights.size() + 1 && sum(parameters.star_weights) > 0),
             "one star chunk more than segments");
}

} // namespace

std::string_view to_string(OptccPlan plan) {
    switch (plan) {
    case OptccPlan::kUniform: return "u";
    case OptccPlan::kBalanced: return "bs";
    case OptccPlan::kStar: return "star";
    case OptccPlan::kLag: return "lag";
    case OptccPlan::kLagStar: return "lag-star";
    case OptccPlan::kRamp: return "ramp";
    case OptccPlan::kPatterns: return "abcd";
    }
    return "unknown";
}

std::vector<std::int64_t> star_shares(Rank servers, std::int64_t elements, const std::vector<Rational>& slowdowns) {
    std::vector<Rational> chunks;
    Rational whole = servers - static_cast<Rank>(slowdowns.size());
    for (const Rational& slowdown : slowdowns) {
        chunks.push_back(slowdown < 2 ? Rational((2 - slowdown) / slowdown) : Rational(0));
        whole += chunks.back();
    }
    std::vector<std::int64_t> shares;
    for (const Rational& chunk : chunks) {
        const Rational share = elements * chunk / whole;
        shares.push_back(
            static_cast<std::int64_t>(boost::multiprecision::cpp_int(numerator(share) / denominator(share))));
    }
    return shares;
}

std::unique_ptr<const Schedule> make_optcc(const OptccParameters& parameters) {
    check_members(parameters);
    check_plan(parameters);
    check_star(parameters);
    if (parameters.ranks_per_server > 1) {
        return std::make_unique<OptccServers>(parameters);
    }
    return std::make_unique<OptccRail>(parameters);
}

} // namespace railbreak::collective
