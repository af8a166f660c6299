// All candidates are tried: a few hundred plans of a few hundred operations each. Only the number of stragglers is
// narrowed down before, by what its plans tend to with many segments, when there are many to choose from.
#include "collective/algorithms/optcc_choice.hpp"

#include <algorithm>
#include <limits>

#include "collective/algorithms/optcc_weights.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

namespace {

constexpr std::size_t kMostStragglerCounts = 8;

bool for_one_straggler(OptccPlan plan) {
    switch (plan) {
    case OptccPlan::kUniform:
    case OptccPlan::kBalanced:
    case OptccPlan::kStar:
    case OptccPlan::kLag:
    case OptccPlan::kRamp: return false;
    case OptccPlan::kLagStar:
    case OptccPlan::kPatterns: return true;
    }
    return true;
}

class Chooser {
public:
    explicit Chooser(const OptccQuestion& question) : q_(question) {}

    [[nodiscard]] std::optional<OptccChoice> choose() {
        std::vector<Scored> tried;
        for (const std::size_t count : straggler_counts()) {
            score_all(count, tried);
        }
        const Scored* best = least_regret(tried);
        if (best == nullptr) {
            return std::nullopt;
        }
        return OptccChoice{candidate(best->form).parameters, best->as_measured_ns};
    }

private:
    /// The cluster when the `count` slowest are stragglers, with all slowdowns times `margin`.
    [[nodiscard]] OptccCluster cluster(std::size_t count, double margin) const {
        OptccCluster cluster = q_.cluster;
        cluster.stragglers.clear();
        for (std::size_t a = 0; a < count; ++a) {
            cluster.stragglers.push_back(to_double(q_.slow[a].slowdown) * margin);
        }
        if (count < q_.slow.size()) {
            cluster.ring_slowdown = to_double(q_.slow[count].slowdown) * margin;
        }
        return cluster;
    }

    /// The numbers of stragglers worth a closer look: those with the smallest max{ l_1, (2(h-1) c + sum l) / h }, what
    /// U and BS tend to with many segments; c is the slowdown of the slowest rank that stays in the ring.
    [[nodiscard]] std::vector<std::size_t> straggler_counts() const {
        auto most = std::min(q_.slow.size(), static_cast<std::size_t>(std::max(0, q_.cluster.servers - 2)));
        if (q_.plan && for_one_straggler(*q_.plan)) {
            most = std::min<std::size_t>(most, 1);
        }
        if (q_.plan == OptccPlan::kStar) {
            most = std::min(most, static_cast<std::size_t>(q_.cluster.servers / 2));
        }
        std::vector<std::pair<double, std::size_t>> limits;
        double sum = 0;
        for (std::size_t count = 1; count <= most; ++count) {
            sum += to_double(q_.slow[count - 1].slowdown);
            const double pace = count < q_.slow.size() ? to_double(q_.slow[count].slowdown) : 1;
            const double healthy = q_.cluster.servers - static_cast<double>(count);
            limits.emplace_back(std::max(to_double(q_.slow[0].slowdown), (2 * (healthy - 1) * pace + sum) / healthy),
                                count);
        }
        if (limits.size() > kMostStragglerCounts) {
            std::nth_element(limits.begin(), limits.begin() + kMostStragglerCounts, limits.end());
            limits.resize(kMostStragglerCounts);
        }
        std::vector<std::size_t> counts;
        for (const auto& [limit, count] : limits) {
            counts.push_back(count);
        }
        std::sort(counts.begin(), counts.end());
        return counts;
    }

    [[nodiscard]] std::vector<OptccPlan> plans(std::size_t count) const {
        if (q_.plan) {
            return {*q_.plan};
        }
        if (count > 1) { // a ramp's ring, with one stream a phase, waits for latencies that LAG hides
            return {OptccPlan::kBalanced, OptccPlan::kUniform, OptccPlan::kLag};
        }
        return {OptccPlan::kBalanced, OptccPlan::kUniform, OptccPlan::kLag, OptccPlan::kRamp};
    }

    [[nodiscard]] bool suits(OptccPlan plan, std::size_t count, std::int64_t k) const {
        if (plan == OptccPlan::kPatterns) {
            return k % 4 == 0;
        }
        const double covered = 2.0 * static_cast<double>(k) / static_cast<double>(k + 1);
        return q_.plan || plan != OptccPlan::kBalanced || count == 1 ||
               optcc_visit_slowdown(to_double(q_.slow[0].slowdown) * kSlowdownMargin, q_.cluster.shared) <= covered;
    }

    /// What a plan is made from.
    struct Form {
        OptccPlan plan = OptccPlan::kBalanced;
        std::size_t count = 1; ///< of stragglers
        std::int64_t segments = 1;
        double sized_for = 1; ///< times the measured slowdown; matters to plans with unequal segments only
        double late = 0; ///< slowdown of the slowest straggler that gets segments a phase late; matters to the same
    };

    /// A form and its times, for the slowdowns as measured and with the margin.
    struct Scored {
        Form form;
        double as_measured_ns = 0;
        double with_margin_ns = 0;
    };

    /// A plan and, for searching, its program.
    struct Candidate {
        OptccParameters parameters;
        OptccProgram program;
    };

    [[nodiscard]] Candidate candidate(const Form& form) const {
        const auto& [plan, count, k, sized_for, late] = form;
        Candidate made;
        OptccParameters& p = made.parameters;
        p.servers = q_.cluster.servers;
        for (std::size_t a = 0; a < count; ++a) {
            p.stragglers.push_back(q_.slow[a].server);
        }
        p.elements = q_.elements;
        p.plan = plan;
        p.segments = k;
        p.shared = q_.cluster.shared;
        p.ranks_per_server = q_.cluster.ranks_per_server;
        p.nics_per_server = q_.nics_per_server;
        p.late_first_link =
            plan == OptccPlan::kUniform && q_.late_first_link.value_or(count > 1 && q_.slow[0].slowdown > 2);
        const double slowdown = optcc_visit_slowdown(to_double(q_.slow[0].slowdown) * sized_for, q_.cluster.shared);
        const std::int64_t healthy = q_.cluster.servers - static_cast<std::int64_t>(count);
        if (plan == OptccPlan::kLag || plan == OptccPlan::kLagStar) {
            p.weights = lag_weights(slowdown, k, healthy, late * sized_for);
        } else if (plan == OptccPlan::kRamp) {
            p.weights = ramp_weights(slowdown, k, healthy, late * sized_for);
        }
        add_star(p);
        made.program = make_program(p);
        return made;
    }

    /// Stars are for well-known slowdowns: sized for what was measured, without a margin.
    void add_star(OptccParameters& p) const {
        if (p.plan != OptccPlan::kStar && p.plan != OptccPlan::kLagStar) {
            return;
        }
        std::vector<Rational> slowdowns;
        for (std::size_t a = 0; a < p.stragglers.size(); ++a) {
            slowdowns.push_back(q_.slow[a].slowdown);
        }
        if (p.plan == OptccPlan::kStar) {
            p.star_elements = star_shares(p.servers, p.elements, slowdowns);
        } else if (p.plan == OptccPlan::kLagStar) {
            const std::vector<std::int64_t> chunks = lag_star_weights(to_double(slowdowns[0]), p.weights);
            std::int64_t star = 0;
            std::int64_t ring = 0;
            for (const std::int64_t chunk : chunks) {
                star += chunk;
            }
            for (const std::int64_t weight : p.weights) {
                ring += weight * (p.servers - 1);
            }
            if (star > 0) {
                const Rational share = Rational(p.elements) * star / (star + ring);
                p.star_weights = chunks;
                p.star_elements = {
                    static_cast<std::int64_t>(boost::multiprecision::cpp_int(numerator(share) / denominator(share)))};
            }
        }
    }

    static bool has_unequal_segments(OptccPlan plan) {
        return plan == OptccPlan::kLag || plan == OptccPlan::kLagStar || plan == OptccPlan::kRamp;
    }

    void score_all(std::size_t count, std::vector<Scored>& tried) const {
        const OptccCluster measured = cluster(count, 1);
        const OptccCluster careful = cluster(count, kSlowdownMargin);
        for (std::int64_t k = q_.segments.value_or(1); k <= q_.segments.value_or(kMostSegments); ++k) {
            for (const OptccPlan plan : plans(count)) {
                if (!suits(plan, count, k)) {
                    continue;
                }
                for (const double sized_for : {1.0, kSlowdownMargin}) {
                    if (sized_for > 1 && !has_unequal_segments(plan)) {
                        continue;
                    }
                    for (const bool late : {false, true}) {
                        if (late && (count == 1 || !has_unequal_segments(plan))) {
                            continue;
                        }
                        const Form form{plan, count, k, sized_for, late ? to_double(q_.slow[1].slowdown) : 0.0};
                        const Candidate made = candidate(form);
                        tried.push_back({form, optcc_cost_ns(measured, made.parameters, made.program),
                                         optcc_cost_ns(careful, made.parameters, made.program)});
                    }
                }
            }
        }
    }

    /// The form that loses least against the best one, whichever of the two slowdowns turns out to be true.
    [[nodiscard]] static const Scored* least_regret(const std::vector<Scored>& tried) {
        double least_measured = std::numeric_limits<double>::infinity();
        double least_careful = std::numeric_limits<double>::infinity();
        for (const Scored& one : tried) {
            least_measured = std::min(least_measured, one.as_measured_ns);
            least_careful = std::min(least_careful, one.with_margin_ns);
        }
        const Scored* best = nullptr;
        double least_regret = std::numeric_limits<double>::infinity();
        for (const Scored& one : tried) {
            const double regret = std::max(one.as_measured_ns / least_measured, one.with_margin_ns / least_careful);
            if (regret < least_regret) {
                least_regret = regret;
                best = &one;
            }
        }
        return best;
    }

    const OptccQuestion& q_;
};

} // namespace

std::optional<OptccChoice> choose_optcc(const OptccQuestion& question) {
    return Chooser(question).choose();
}

} // namespace railbreak::collective
