// Two sets of runs: the tests against published figures, and how often the whole is right on runs with planted truth.
#include "harness/analyse/comparison.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analyse/bootstrap.hpp"
#include "harness/analyse/matching.hpp"
#include "harness/analyse/rank_test.hpp"
#include "scenarios/random.hpp"
#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::analyse {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Hollander and Wolfe, Nonparametric Statistical Methods, 1973, page 69: permeability constants of the placental
// membrane at term and after 12 to 26 weeks. One-sided p = 0.1272.
TEST(RankTest, GivesThePValueOfHollanderAndWolfe) {
    const std::vector<double> term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    const std::vector<double> early{1.15, 0.88, 0.90, 0.74, 1.21};
    const RankTest test = mann_whitney(early, term);
    EXPECT_TRUE(test.exact);
    EXPECT_DOUBLE_EQ(test.u, 35);
    EXPECT_NEAR(test.p_value, 2 * 0.1272, 1e-4);
    EXPECT_DOUBLE_EQ(mann_whitney(term, early).p_value, test.p_value);
}

// Table of Mann and Whitney, 1947: with 5 and 5 values U <= 2 has probability 0.016, with 4 and 4 U <= 0 has 0.014.
TEST(RankTest, GivesTheProbabilitiesOfMannAndWhitney) {
    EXPECT_NEAR(mann_whitney(std::vector{1., 2., 3., 4., 7.}, std::vector{5., 6., 8., 9., 10.}).p_value, 2 * 0.016,
                0.0005);
    EXPECT_NEAR(mann_whitney(std::vector{1., 2., 3., 4.}, std::vector{5., 6., 7., 8.}).p_value, 2 * 0.014, 0.001);
    EXPECT_DOUBLE_EQ(smallest_p_value(4, 4), 2.0 / 70);
    EXPECT_DOUBLE_EQ(smallest_p_value(1, 1), 1);
    EXPECT_DOUBLE_EQ(smallest_p_value(0, 5), 1);
}

/// Every way to deal the values, one by one.
double enumerated_p_value(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> all(a);
    all.insert(all.end(), b.begin(), b.end());
    const double mean = static_cast<double>(a.size() * b.size()) / 2;
    const auto distance = [&](unsigned chosen) { // chosen: the bits of set a
        double u = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            for (std::size_t j = 0; j < all.size(); ++j) {
                if ((chosen >> i & 1U) == 1 && (chosen >> j & 1U) == 0) {
                    u += all[i] < all[j] ? 1 : all[i] == all[j] ? 0.5 : 0;
                }
            }
        }
        return std::fabs(u - mean);
    };
    const double actual = distance((1U << a.size()) - 1);
    int as_far = 0;
    int ways = 0;
    for (unsigned chosen = 0; chosen < 1U << all.size(); ++chosen) {
        if (std::popcount(chosen) == static_cast<int>(a.size())) {
            ++ways;
            as_far += distance(chosen) >= actual ? 1 : 0;
        }
    }
    return static_cast<double>(as_far) / ways;
}

TEST(RankTest, CountsEveryWayToDealTiedValues) {
    const std::vector<double> a{1, 2, 2, 3, 5};
    const std::vector<double> b{2, 3, 3, 5, 5, 7};
    EXPECT_DOUBLE_EQ(mann_whitney(a, b).p_value, enumerated_p_value(a, b));
    const std::vector<double> c{4, 4, 4};
    EXPECT_DOUBLE_EQ(mann_whitney(c, c).p_value, 1);
}

TEST(RankTest, LargeSetsAgreeWithTheExactTest) {
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < 25; ++i) {
        a.push_back(i % 9);
        b.push_back(i % 9 + (i % 3));
    }
    const RankTest exact = mann_whitney(a, b);
    ASSERT_TRUE(exact.exact);
    std::vector<double> more = a;
    more.push_back(4); // in the middle: changes little
    const RankTest approximate = mann_whitney(more, b);
    ASSERT_FALSE(approximate.exact);
    EXPECT_NEAR(approximate.p_value, exact.p_value, 0.02);
    EXPECT_DOUBLE_EQ(mann_whitney(std::vector<double>(40, 1.0), std::vector<double>(40, 1.0)).p_value, 1);
    EXPECT_DOUBLE_EQ(mann_whitney({}, a).p_value, 1);
}

// Holm 1979: the smallest of four counts four times, the next three times, ...; none below one before it.
TEST(Holm, MultipliesStepByStep) {
    EXPECT_THAT(holm(std::vector{0.01, 0.04, 0.03, 0.005}),
                ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12),
                            DoubleNear(0.02, 1e-12)));
    EXPECT_THAT(holm(std::vector{0.9, 0.8}), ElementsAre(1, 1));
    EXPECT_THAT(holm({}), IsEmpty());
}

/// Runs as a machine makes them: each run is a little off as a whole, each iteration a little more, and some iterations
/// are far off.
class Machine {
public:
    explicit Machine(std::uint64_t seed) : random_(seed) {}

    Samples runs(std::size_t count, std::size_t iterations, double typical) {
        Samples samples;
        for (std::size_t i = 0; i < count; ++i) {
            const double run = typical * (1 + 0.007 * normal());
            std::vector<double>& values = samples.emplace_back();
            for (std::size_t j = 0; j < iterations; ++j) {
                const double outlier = uniform() < 0.03 ? 1.05 + 0.5 * uniform() : 1.0;
                values.push_back(run * (1 + 0.01 * normal()) * outlier);
            }
        }
        return samples;
    }

private:
    double uniform() { return (static_cast<double>(random_.next() >> 11U) + 0.5) * 0x1p-53; }
    double normal() {
        const double radius = std::sqrt(-2 * std::log(uniform()));
        return radius * std::cos(2 * std::numbers::pi * uniform());
    }
    scenarios::SplitMix64 random_;
};

/// What is tried, and how often the verdicts come.
struct Trial {
    std::string_view what;
    std::size_t runs_a;
    std::size_t runs_b;
    std::size_t iterations;
    std::size_t family; ///< the slowdown is planted in the first comparison of these
};

struct Rates {
    int trials = 0;
    int slower = 0;  ///< in the first comparison
    int any = 0;     ///< slower or faster in any comparison
    int none = 0;    ///< no difference that counts, in the first
    int covered = 0; ///< the interval of the first holds the truth
};

/// 100, or as many as RAILBREAK_COMPARE_TRIALS says.
int trial_count() {
    const char* wanted = std::getenv("RAILBREAK_COMPARE_TRIALS");
    return wanted != nullptr ? std::atoi(wanted) : 100;
}

Rates rates_of(const Trial& trial, double planted, int trials) {
    Rates rates;
    rates.trials = trials;
    for (int seed = 1; seed <= rates.trials; ++seed) {
        Machine machine(static_cast<std::uint64_t>(seed));
        std::vector<PhaseSamples> pairs;
        for (std::size_t i = 0; i < trial.family; ++i) {
            PhaseSamples& pair = pairs.emplace_back();
            pair.a = machine.runs(trial.runs_a, trial.iterations, 100);
            pair.b = machine.runs(trial.runs_b, trial.iterations, i == 0 ? 100 * planted : 100);
        }
        const std::vector<Comparison> results = compare_family(pairs, {.resamples = 500});
        const Comparison& first = results.front();
        rates.slower += first.difference == Difference::kSlower ? 1 : 0;
        rates.none += first.difference == Difference::kNone ? 1 : 0;
        rates.covered += first.interval && first.interval->low <= planted && planted <= first.interval->high ? 1 : 0;
        rates.any += std::ranges::any_of(results, [](const Comparison& result) {
            return result.difference == Difference::kSlower || result.difference == Difference::kFaster;
        });
    }
    return rates;
}

class Rate : public ::testing::TestWithParam<Trial> {};

TEST_P(Rate, ASlowdownOfThreePercentIsToldAndEqualSetsAreNot) {
    const Trial& trial = GetParam();
    const Rates slow = rates_of(trial, 1.03, trial_count());
    const Rates equal = rates_of(trial, 1.0, trial_count());
    fmt::print(
        "{}: {} trials each; 3 % planted: told {}, interval holds the truth {}; equal: told {}, no difference of "
        "3 % {}, interval holds the truth {}\n",
        trial.what, slow.trials, slow.slower, slow.covered, equal.any, equal.none, equal.covered);
    EXPECT_GE(slow.slower, slow.trials * 95 / 100);
    EXPECT_LE(equal.any, equal.trials * 5 / 100);
    EXPECT_GE(equal.none, equal.trials * 80 / 100);
    EXPECT_GE(slow.covered, slow.trials * 90 / 100);
}

INSTANTIATE_TEST_SUITE_P(OfTrials, Rate,
                         ::testing::Values(Trial{"10 runs of 5 iterations", 10, 10, 5, 1},
                                           Trial{"10 runs of 5 iterations, 6 comparisons", 10, 10, 5, 6},
                                           Trial{"6 runs of 3 iterations against 12", 12, 6, 3, 1}),
                         [](const auto& info) { return fmt::format("Trial{}", info.index); });

// Too little to tell 3 % for sure, but hardly more often wrong than the 5 % that are asked for; the scatter of the
// rates themselves over so many trials is 0.7 %.
TEST(Rates, FewRunsAreCarefulRatherThanWrong) {
    for (const Trial& trial :
         {Trial{"3 runs against 3", 3, 3, 5, 1}, Trial{"5 runs against 5, 6 comparisons", 5, 5, 5, 6},
          Trial{"1 run against 10", 10, 1, 5, 1}, Trial{"2 runs against 2, 6 comparisons", 2, 2, 5, 6}}) {
        const Rates slow = rates_of(trial, 1.03, 1000);
        const Rates equal = rates_of(trial, 1.0, 1000);
        fmt::print("{}: {} trials each; 3 % planted: told {}; equal: told {}\n", trial.what, slow.trials, slow.slower,
                   equal.any);
        EXPECT_LE(equal.any, equal.trials * 7 / 100) << trial.what;
        EXPECT_GT(slow.slower, equal.any) << trial.what;
    }
}

Samples runs_of(std::initializer_list<double> medians) {
    Samples samples;
    for (const double median : medians) {
        samples.push_back({median, median * 0.9, median * 2}); // the middle one counts
    }
    return samples;
}

TEST(Comparison, OneRunOnEachSideCannotTell) {
    const Comparison result = compare(runs_of({100}), runs_of({150}), {});
    EXPECT_EQ(result.difference, Difference::kCannotTell);
    EXPECT_EQ(result.method, Method::kNothing);
    EXPECT_DOUBLE_EQ(*result.ratio, 1.5);
    EXPECT_FALSE(result.visible);
    EXPECT_THAT(in_words(result), HasSubstr("cannot tell: B lies 50.0 % above A, but one run on each side"));
    EXPECT_THAT(in_words(compare({}, runs_of({1, 2}), {})), HasSubstr("cannot tell: A has no values"));
    EXPECT_THAT(in_words(compare({{1.0}, {}}, {{}}, {})), HasSubstr("cannot tell: B has no values"));
}

TEST(Comparison, SaysWhatIsSlowerAndByHowMuch) {
    const Samples a = runs_of({99, 100, 100.5, 101, 100, 99.5});
    const Comparison slower = compare(a, runs_of({109, 110, 110.5, 111, 110, 109.5}), {});
    EXPECT_EQ(slower.method, Method::kRanks);
    EXPECT_EQ(slower.difference, Difference::kSlower);
    EXPECT_DOUBLE_EQ(slower.p_value, mann_whitney(std::vector{99., 100., 100.5, 101., 100., 99.5},
                                                  std::vector{109., 110., 110.5, 111., 110., 109.5})
                                         .p_value);
    EXPECT_THAT(in_words(slower), HasSubstr("B is slower than A by 10.0 % (95 % confidence: "));
    const Comparison faster = compare(runs_of({109, 110, 110.5, 111, 110, 109.5}), a, {});
    EXPECT_THAT(in_words(faster, "the new", "the old"), HasSubstr("the old is faster than the new by 9.1 % (95 % "));
    EXPECT_DOUBLE_EQ(*faster.ratio * *slower.ratio, 1);
    const Comparison little = compare(a, runs_of({101, 102, 102.5, 102, 102, 101.5}), {.tolerance = 0.1});
    EXPECT_THAT(in_words(little), HasSubstr("less than the 10.0 % that counts"));
}

TEST(Comparison, EqualSetsHaveNoDifferenceThatCounts) {
    const Samples a = runs_of({99, 100, 100.5, 101, 100, 99.5});
    const Comparison same = compare(a, a, {});
    EXPECT_EQ(same.difference, Difference::kNone);
    EXPECT_DOUBLE_EQ(same.p_value, 1);
    EXPECT_THAT(in_words(same), HasSubstr("no difference larger than "));
    const Comparison strict = compare(a, a, {.tolerance = 0.001});
    EXPECT_EQ(strict.difference, Difference::kCannotTell);
    EXPECT_THAT(in_words(strict), HasSubstr("would most likely have shown"));
    EXPECT_GT(*strict.visible, 0.001);
}

TEST(Comparison, FewRunsAreJudgedByTheirSpread) {
    const Comparison result = compare(runs_of({99, 100, 101}), runs_of({110, 111}), {});
    EXPECT_EQ(result.method, Method::kSpread);
    EXPECT_EQ(result.difference, Difference::kSlower);
    const Comparison among_many =
        compare_family(std::vector<PhaseSamples>(20, {"ring", "steady", runs_of({99, 100, 101}), runs_of({104})}), {})
            .front();
    EXPECT_EQ(among_many.difference, Difference::kCannotTell);
    EXPECT_EQ(among_many.family, 20U);
    EXPECT_GE(among_many.adjusted_p_value, among_many.p_value);
}

// Student's 1908 sleep data in the usual two-sample form: t = -1.8608, 18 degrees of freedom, p = 0.07919. Given as
// exponentials, because the test is of logarithms.
TEST(Comparison, TheSpreadIsStudentsTTest) {
    Samples first;
    Samples second;
    for (const double value : {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}) {
        first.push_back({std::exp(value)});
    }
    for (const double value : {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}) {
        second.push_back({std::exp(value)});
    }
    // At that confidence no ranks of 10 and 10 runs could tell anything, so the spread decides.
    const Comparison result = compare(first, second, {.confidence = 0.9999999});
    ASSERT_EQ(result.method, Method::kSpread);
    EXPECT_NEAR(result.p_value, 0.07919, 5e-6);
    EXPECT_NEAR(std::log(*result.ratio), 1.58, 1e-9);
}

TEST(Comparison, IsTheSameEveryTime) {
    Machine machine(7);
    const Samples a = machine.runs(10, 5, 100);
    const Samples b = machine.runs(10, 5, 101);
    const Comparison once = compare(a, b, {});
    const Comparison twice = compare(a, b, {});
    EXPECT_EQ(once.interval->low, twice.interval->low);
    EXPECT_EQ(once.interval->high, twice.interval->high);
    EXPECT_NE(compare(a, b, {.seed = 2}).interval->low, once.interval->low);
}

std::vector<record::RunData> several(std::size_t count, double factor, std::uint64_t seed) {
    Machine machine(seed);
    std::vector<record::RunData> runs;
    for (const std::vector<double>& noise : machine.runs(count, 1, factor)) {
        record::RunData& run = runs.emplace_back(record::fixture_run());
        run.run.run_id = fmt::format("run-{}-{}", seed, runs.size());
        for (record::IterationRow& row : run.iterations) {
            row.duration_ns = static_cast<std::int64_t>(static_cast<double>(row.duration_ns) * noise.front());
        }
    }
    return runs;
}

TEST(Sets, AreComparedPhaseByPhase) {
    const SetComparison sets = compare_sets(several(8, 1, 1), several(8, 1.2, 2));
    ASSERT_EQ(sets.phases.size(), 9U); // 3 algorithms, 3 phases
    EXPECT_EQ(sets.phases.front().algorithm, "ring");
    EXPECT_EQ(sets.phases.front().phase, "steady");
    for (const PhaseComparison& phase : sets.phases) {
        EXPECT_EQ(phase.comparison.difference, Difference::kSlower) << phase.algorithm << phase.phase;
        EXPECT_EQ(phase.comparison.family, 9U);
    }
    EXPECT_THAT(sets.sentence, HasSubstr("of 9 phases: B is slower in 9 (ring steady by "));
    EXPECT_THAT(sets.unlike, IsEmpty());
    // What all of a run shares is gone where it is measured against the run itself.
    const SetComparison relative = compare_sets(several(8, 1, 1), several(8, 1.2, 2), {.measure = Measure::kVsSteady});
    ASSERT_EQ(relative.phases.size(), 6U);
    EXPECT_THAT(relative.sentence, HasSubstr("no difference of 3.0 % or more in 6"));
}

TEST(Sets, SayWhatIsNotLikeWithLike) {
    std::vector<record::RunData> a = several(2, 1, 1);
    std::vector<record::RunData> b = several(2, 1, 2);
    EXPECT_EQ(why_mixed(a), "");
    b[1].run.plan_hash = "fedcba9876543210";
    b[1].run.cluster = "lab on node8";
    EXPECT_THAT(why_mixed(b), HasSubstr("run-2-2 has another plan (half-rate-nic fedcba987654) than run-2-1"));
    const SetComparison sets = compare_sets(a, b);
    ASSERT_EQ(sets.unlike.size(), 2U);
    EXPECT_THAT(sets.unlike[0], HasSubstr("the plans differ: A has half-rate-nic 0123456789ab, B has"));
    EXPECT_THAT(sets.unlike[1], HasSubstr("the clusters differ: A has lab on node7, B has lab on node7, lab on node8"));
}

TEST(Sets, TellRunsThatAreInBoth) {
    std::vector<record::RunData> b = several(2, 1, 2);
    const std::vector<record::RunData> a = several(3, 1, 1);
    EXPECT_THAT(compare_sets(a, b).shared, IsEmpty());
    b.push_back(a[1]);
    EXPECT_THAT(compare_sets(a, b).shared, ElementsAre("run-1-2"));
}

TEST(Sets, OfSeveralScenariosAreMatchedByPlanAndClusterOrByTheirOnlyName) {
    const auto add = [](std::vector<record::RunData>& to, const std::string& id, const std::string& scenario,
                        const std::string& plan, const std::string& cluster = "c") {
        record::RunData& run = to.emplace_back();
        run.run = {.run_id = id, .scenario_name = scenario, .plan_hash = plan, .cluster = cluster};
    };
    std::vector<record::RunData> a;
    std::vector<record::RunData> b;
    add(a, "a1", "half", "p1");
    add(a, "a2", "half", "p2");
    add(a, "a3", "half", "p1");
    add(a, "a4", "half", "gone");
    add(a, "a5", "loss", "before");
    add(a, "a6", "flap", "p6");
    add(b, "b1", "half", "p2");
    add(b, "b2", "loss", "after");
    add(b, "b3", "half", "p1");
    add(b, "b4", "half", "p1", "another");
    add(b, "b5", "new", "p7");
    const Matching matching = match(a, b);
    std::vector<std::string> ids;
    for (const MatchedRuns& runs : matching.scenarios) {
        std::string& text = ids.emplace_back();
        for (const record::RunData& run : runs.a) {
            text += run.run.run_id + " ";
        }
        for (const record::RunData& run : runs.b) {
            text += "| " + run.run.run_id;
        }
    }
    EXPECT_THAT(ids, ElementsAre("a1 a3 | b3", "a2 | b1", "a4 | b4", "a5 | b2"));
    EXPECT_THAT(matching.only_a, ElementsAre("flap p6 on c (1 run)"));
    EXPECT_THAT(matching.only_b, ElementsAre("new p7 on c (1 run)"));
    add(b, "b6", "half", "p9"); // now two are left that a4 might be held against
    EXPECT_THAT(match(a, b).only_a, ElementsAre("half gone on c (1 run)", "flap p6 on c (1 run)"));
    EXPECT_THAT(match(a, b).only_b,
                ElementsAre("half p1 on another (1 run)", "new p7 on c (1 run)", "half p9 on c (1 run)"));
}

TEST(Sets, ComparedTogetherAreOneFamily) {
    const std::vector<record::RunData> a = several(8, 1, 1);
    const std::vector<record::RunData> b = several(8, 1.2, 2);
    std::vector<record::RunData> simulated{record::fixture_run()};
    simulated[0].run.backend = record::kSimulatedBackend;
    const std::vector<RunSets> pairs{{a, b}, {simulated, simulated}, {a, a}};
    const std::vector<SetComparison> all = compare_all(pairs, {});
    ASSERT_EQ(all.size(), 3U);
    const SetComparison alone = compare_sets(a, b);
    for (std::size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(all[0].phases[i].algorithm, alone.phases[i].algorithm);
        EXPECT_EQ(all[0].phases[i].comparison.family, 18U);
        EXPECT_GE(all[0].phases[i].comparison.adjusted_p_value, alone.phases[i].comparison.adjusted_p_value);
        EXPECT_EQ(all[1].phases[i].comparison.method, Method::kExact);
    }
    EXPECT_EQ(all[2].shared.size(), 8U);
}

TEST(Sets, SimulatedRunsNeedNoSecondOne) {
    std::vector<record::RunData> a{record::fixture_run()};
    std::vector<record::RunData> b{record::fixture_run()};
    a[0].run.backend = b[0].run.backend = record::kSimulatedBackend;
    iterations_of(b[0], "ring", "steady")[1]->duration_ns *= 2;
    iterations_of(b[0], "ring", "steady")[2]->duration_ns *= 2;
    const SetComparison sets = compare_sets(a, b);
    EXPECT_EQ(sets.phases[0].comparison.difference, Difference::kSlower);
    EXPECT_EQ(sets.phases[1].comparison.difference, Difference::kNone);
    EXPECT_THAT(in_words(sets.phases[1].comparison), HasSubstr("are the same, simulated on both sides"));
}

TEST(Sets, WithoutIterationsThereIsNothingToCompare) {
    std::vector<record::RunData> a{record::fixture_run()};
    std::vector<record::RunData> empty = a;
    empty[0].iterations.clear();
    EXPECT_THAT(compare_sets(empty, empty).sentence, HasSubstr("nothing to compare"));
    const SetComparison half = compare_sets(a, empty);
    EXPECT_THAT(in_words(half.phases.at(0).comparison), HasSubstr("B has no values"));
}

TEST(Measures, HaveWordsAndLeaveOutWhatIsNotMeasured) {
    for (const Measure measure : kMeasures) {
        EXPECT_EQ(parse_measure(to_string(measure)), measure);
    }
    EXPECT_FALSE(parse_measure("speed"));
    record::RunData run = record::fixture_run();
    iterations_of(run, "ring", "degraded")[1]->error = "rank 2 ended";
    const std::vector<PhaseValues> values = values_of(run, Measure::kOverheadFluid);
    EXPECT_EQ(values.size(), 9U);
    EXPECT_EQ(find_values(values, "ring", "degraded").size(), 2U);
    EXPECT_THAT(find_values(values, "ring", "warmup"), IsEmpty());
    EXPECT_NEAR(find_values(values, "ring", "steady").at(0), 1.01, 0.005);
    EXPECT_THAT(find_values(values_of(run, Measure::kVsSteady), "ring", "steady"), IsEmpty());
}

} // namespace
} // namespace railbreak::analyse
