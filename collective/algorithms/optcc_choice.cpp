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
    case OptccPlan::kStar: return false;
    case OptccPlan::kLag:
    case OptccPlan::kLagStar:
    case OptccPlan::kRamp:
    case OptccPlan::kPatterns: return true;
    }
    return true;
}

class Chooser {
public:
    explicit Chooser(const OptccQuestion& question) : q_(question) {}

    [[nodiscard]] std::optional<OptccChoice> choose() {
        std::optional<OptccChoice> best;
        for (const std::size_t count : straggler_counts()) {
            std::optional<OptccChoice> choice = choose_plan(count);
            if (choice && (!best || choice->predicted_ns < best->predicted_ns)) {
                best = std::move(choice);
            }
        }
        return best;
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
        if (count > 1) {
            return {OptccPlan::kBalanced, OptccPlan::kUniform};
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

    /// A plan and, for searching, its program.
    struct Candidate {
        OptccParameters parameters;
        OptccProgram program;
    };

    [[nodiscard]] Candidate candidate(OptccPlan plan, std::size_t count, std::int64_t k) const {
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
        const double careful =
            optcc_visit_slowdown(to_double(q_.slow[0].slowdown) * kSlowdownMargin, q_.cluster.shared);
        const std::int64_t healthy = q_.cluster.servers - static_cast<std::int64_t>(count);
        if (plan == OptccPlan::kLag || plan == OptccPlan::kLagStar) {
            p.weights = lag_weights(careful, k, healthy);
        } else if (plan == OptccPlan::kRamp) {
            p.weights = ramp_weights(careful, k, healthy);
        }
        add_star(p);
        made.program = make_program(p);
        return made;
    }

    /// Stars are for well-known slowdowns: sized for what was measured, without a margin.
    void add_star(OptccParameters& p) const {
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

    [[nodiscard]] std::optional<OptccChoice> choose_plan(std::size_t count) const {
        const OptccCluster careful = cluster(count, kSlowdownMargin);
        std::optional<Candidate> best;
        double least = std::numeric_limits<double>::infinity();
        for (std::int64_t k = q_.segments.value_or(1); k <= q_.segments.value_or(kMostSegments); ++k) {
            for (const OptccPlan plan : plans(count)) {
                if (!suits(plan, count, k)) {
                    continue;
                }
                Candidate tried = candidate(plan, count, k);
                const double cost = optcc_cost_ns(careful, tried.parameters, tried.program);
                if (cost < least) {
                    least = cost;
                    best = std::move(tried);
                }
            }
        }
        if (!best) {
            return std::nullopt;
        }
        const double predicted = optcc_cost_ns(cluster(count, 1), best->parameters, best->program);
        return OptccChoice{std::move(best->parameters), predicted};
    }

    const OptccQuestion& q_;
};

} // namespace

std::optional<OptccChoice> choose_optcc(const OptccQuestion& question) {
    return Chooser(question).choose();
}

} // namespace railbreak::collective
