// OptCC for servers of several ranks: proofs, executions, times.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/verify.hpp"
#include "tests/unit/collective/random_execution.hpp"

namespace railbreak::collective {
namespace {

OptccParameters parameters(Rank servers, std::vector<Rank> stragglers, Rank group, OptccPlan plan,
                           std::int64_t segments) {
    const Rank h = servers - static_cast<Rank>(stragglers.size());
    return {.servers = servers,
            .stragglers = std::move(stragglers),
            .elements = group * h * segments * (segments + 1),
            .plan = plan,
            .segments = segments,
            .ranks_per_server = group,
            .nics_per_server = group};
}

std::vector<OptccParameters> variants(Rank servers, const std::vector<Rank>& stragglers, Rank group,
                                      std::int64_t elements, std::int64_t segments) {
    std::vector<OptccParameters> list;
    for (const bool shared : {false, true}) {
        for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kStar}) {
            OptccParameters wanted = parameters(servers, stragglers, group, plan, segments);
            wanted.elements = elements;
            wanted.shared = shared;
            if (plan == OptccPlan::kStar) {
                wanted.star_elements.assign(stragglers.size(), elements / 7);
            }
            if (plan != OptccPlan::kStar || 2 * static_cast<Rank>(stragglers.size()) <= servers) {
                list.push_back(wanted);
            }
        }
        OptccParameters late = parameters(servers, stragglers, group, OptccPlan::kUniform, segments);
        late.elements = elements;
        late.shared = shared;
        late.late_first_link = true;
        list.push_back(late);
    }
    return list;
}

TEST(Servers, EveryPlanIsProven) {
    for (const Rank group : {2, 3, 4}) {
        for (const Rank servers : {3, 4, 6}) {
            const std::vector<std::vector<Rank>> places =
                servers == 3 ? std::vector<std::vector<Rank>>{{1}} : std::vector<std::vector<Rank>>{{2}, {3, 0}};
            for (const std::vector<Rank>& stragglers : places) {
                for (const std::int64_t k : {1, 3, 8}) {
                    for (const std::int64_t elements : {1, 13, 1009}) {
                        for (const OptccParameters& wanted : variants(servers, stragglers, group, elements, k)) {
                            const auto schedule = make_optcc(wanted);
                            EXPECT_EQ(schedule->ranks(), servers * group);
                            for (const Violation& violation : verify(*schedule, 2)) {
                                ADD_FAILURE() << schedule->name() << " q=" << servers << " n=" << elements << ": "
                                              << to_string(violation);
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(Servers, LargePlansAreProven) {
    for (const OptccParameters& wanted : variants(12, {11, 3, 4, 0}, 4, 5003, 8)) {
        const auto schedule = make_optcc(wanted);
        EXPECT_TRUE(verify(*schedule, 1).empty()) << schedule->name();
    }
}

TEST(Servers, EveryPlanGivesTheSumInAnyOrderOfEvents) {
    for (const std::int64_t elements : {7, 101}) {
        for (const OptccParameters& wanted : variants(4, {2}, 3, elements, 2)) {
            const auto schedule = make_optcc(wanted);
            EXPECT_EQ(test::wrong_runs(*schedule, 2), 0) << schedule->name() << " n=" << elements;
        }
    }
}

TEST(Servers, RailsAndLocalWorkHaveLanesOfTheirOwn) {
    OptccParameters wanted = parameters(4, {1}, 3, OptccPlan::kBalanced, 2);
    wanted.nics_per_server = 2;
    EXPECT_EQ(make_optcc(wanted)->lanes(), 2);
    wanted.shared = true;
    const auto schedule = make_optcc(wanted);
    EXPECT_EQ(schedule->name(), "optcc-shared-bs(k=2,straggler=1,g=3)");
    EXPECT_EQ(schedule->lanes(), 3);
    EXPECT_EQ(schedule->ranks_per_server(), 3);
    EXPECT_EQ(schedule->port(7, 0), (Port{PortKind::kNic, 1}));
    EXPECT_EQ(schedule->port(8, 1), (Port{PortKind::kNic, 0}));
    EXPECT_EQ(schedule->port(8, 2), (Port{PortKind::kLocal, 0}));
}

/// T/n with `ratio` the speed of a local port over a NIC.
Rational time_over_n(const OptccParameters& wanted, const std::vector<Rational>& slowdowns, std::int64_t ratio) {
    Topology topology = healthy_topology(wanted.servers);
    topology.ranks_per_server = wanted.ranks_per_server;
    topology.nics_per_server = wanted.nics_per_server;
    topology.local_ratio = ratio;
    for (std::size_t a = 0; a < slowdowns.size(); ++a) {
        topology.servers[static_cast<std::size_t>(wanted.stragglers[a])] = {.send = slowdowns[a],
                                                                            .receive = slowdowns[a]};
    }
    const auto schedule = make_optcc(wanted);
    const Result<Rational> time = simulate_exact(*schedule, topology);
    EXPECT_TRUE(time) << (time ? "" : time.error().to_line());
    return time ? Rational(*time / schedule->elements()) : Rational(-1);
}

TEST(Servers, LocalWorkHidesBehindTheNics) {
    // With H the local work of a phase: at most H before, H after and, a phase, the longer of the NICs' and of 2H.
    for (const Rank servers : {4, 6, 8}) {
        for (const Rank group : {2, 4}) {
            for (const std::int64_t ratio : {group - 1, 2 * group}) {
                for (const Rational& ell : {Rational(8, 7), Rational(3, 2), Rational(2), Rational(3)}) {
                    for (const std::int64_t k : {1, 4, 7}) {
                        const OptccParameters wanted = parameters(servers, {1}, group, OptccPlan::kUniform, k);
                        const Rational h = servers - 1;
                        const Rational section = Rational(1) / (k * h * group);
                        const Rational local = (group - 1) * h * section / ratio;
                        const Rational body = std::max(Rational(2 * (h - 1) + ell), Rational(h * ell)) * section;
                        const Rational end = std::max(Rational(h - 1 + ell), Rational(h * ell)) * section;
                        const Rational most = 2 * local + 2 * std::max(end, Rational(2 * local)) +
                                              (k - 1) * std::max(body, Rational(2 * local));
                        EXPECT_LE(time_over_n(wanted, {ell}, ratio), most)
                            << "q=" << servers << " g=" << group << " V=" << ratio << " l=" << ell << " k=" << k;
                    }
                }
            }
        }
    }
}

TEST(Servers, FastLocalPortsLeaveTheTimeOfOneRail) {
    // T/n of g rails is 1/g of that of one rail on the whole vector, up to the local work before and after.
    for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced}) {
        OptccParameters wanted = parameters(6, {4, 1}, 4, plan, 4);
        const std::vector<Rational> ells = {Rational(3, 2), Rational(8, 7)};
        const Rational rails = time_over_n(wanted, ells, 1'000'000) * 4;
        wanted.ranks_per_server = 1;
        const Rational one = time_over_n(wanted, ells, 1);
        EXPECT_GE(rails, one);
        EXPECT_LT(rails, one * Rational(1001, 1000));
    }
}

} // namespace
} // namespace railbreak::collective
