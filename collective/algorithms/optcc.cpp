#include "collective/algorithms/optcc.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"
#include "collective/algorithms/optcc_rail.hpp"
#include "collective/algorithms/optcc_servers.hpp"

namespace railbreak::collective {

namespace {

void check(const OptccParameters& parameters) {
    const auto stragglers = static_cast<Rank>(parameters.stragglers.size());
    RB_CHECK(stragglers >= 1 && parameters.servers >= stragglers + 2, "OptCC needs a straggler and two healthy ranks");
    RB_CHECK(std::all_of(parameters.stragglers.begin(), parameters.stragglers.end(),
                         [&](Rank rank) { return rank >= 0 && rank < parameters.servers; }) &&
                 std::set<Rank>(parameters.stragglers.begin(), parameters.stragglers.end()).size() ==
                     parameters.stragglers.size(),
             "every straggler is another rank");
    RB_CHECK(parameters.elements >= 1, "a vector has at least one element");
    RB_CHECK(parameters.segments >= 1, "a plan has at least one segment");
    std::int64_t star = 0;
    for (const std::int64_t elements : parameters.star_elements) {
        RB_CHECK(elements >= 0, "a star chunk has no negative size");
        star += elements;
    }
    RB_CHECK(star <= parameters.elements, "the star chunks are a part of the vector");
    RB_CHECK(parameters.star_elements.empty() || parameters.plan == OptccPlan::kStar,
             "only star plans have star chunks");
    RB_CHECK(parameters.star_elements.empty() || (parameters.star_elements.size() == parameters.stragglers.size() &&
                                                  stragglers <= parameters.servers - stragglers),
             "a star for each straggler, and at least as many healthy ranks");
    RB_CHECK(parameters.ranks_per_server >= 1 && parameters.nics_per_server >= 1, "a server has ranks and NICs");
    RB_CHECK(!parameters.late_first_link || parameters.plan == OptccPlan::kUniform,
             "only uniform plans may have a late first link");
}

} // namespace

std::string_view to_string(OptccPlan plan) {
    switch (plan) {
    case OptccPlan::kUniform: return "u";
    case OptccPlan::kBalanced: return "bs";
    case OptccPlan::kStar: return "star";
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
    check(parameters);
    if (parameters.ranks_per_server > 1) {
        return std::make_unique<OptccServers>(parameters);
    }
    return std::make_unique<OptccRail>(parameters);
}

} // namespace railbreak::collective
