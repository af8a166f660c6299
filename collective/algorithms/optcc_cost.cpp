#include "collective/algorithms/optcc_cost.hpp"

#include <algorithm>
#include <numeric>

namespace railbreak::collective {

namespace {

double total(const std::vector<std::int64_t>& values) {
    return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0}));
}

/// Costs of one program on one cluster.
class Cost {
public:
    Cost(const OptccCluster& cluster, const OptccParameters& parameters, const OptccProgram& program)
        : cluster_(cluster), program_(program), phases_(static_cast<std::int64_t>(program.phases.size())),
          healthy_(static_cast<double>(cluster.servers) - static_cast<double>(cluster.stragglers.size())) {
        const double rail_ns = cluster.vector_ns / cluster.ranks_per_server;
        const auto elements = static_cast<double>(parameters.elements);
        double star = 0;
        for (const std::int64_t chunk : parameters.star_elements) {
            const double share = static_cast<double>(chunk) / elements;
            stars_ns_.push_back(share * rail_ns);
            star += share;
        }
        const double weights = total(parameters.star_weights);
        for (std::int64_t chunk = 0; chunk + 1 < phases_; ++chunk) {
            star_shares_.push_back(parameters.star_weights.empty()
                                       ? 1 / static_cast<double>(phases_ - 1)
                                       : static_cast<double>(parameters.star_weights[at(chunk)]) / weights);
        }
        part_ns_ = (1 - star) * rail_ns / healthy_ / static_cast<double>(program.scale);
        for (std::size_t a = 1; a < cluster.stragglers.size(); ++a) {
            mean_other_ += cluster.stragglers[a] / static_cast<double>(cluster.stragglers.size() - 1);
        }
        find_local();
    }

    [[nodiscard]] double time() const {
        double sum = local_before_ + local_after_ + cluster_.latency_ns + late_tail();
        for (std::int64_t f = 0; f < phases_; ++f) {
            sum += phase(f);
        }
        return sum;
    }

private:
    [[nodiscard]] double range_ns(const std::vector<OptccProgram::Range>& ranges, std::int64_t index) const {
        return index == kOptccNone ? 0.0
                                   : static_cast<double>(ranges[at(index)].end - ranges[at(index)].begin) * part_ns_;
    }

    [[nodiscard]] double chunk_ns(std::int64_t chunk, std::size_t straggler) const {
        return stars_ns_.empty() || chunk < 0 || chunk + 1 >= phases_ ? 0.0
                                                                      : stars_ns_[straggler] * star_shares_[at(chunk)];
    }

    /// One side of a pause: the flows of one direction.
    [[nodiscard]] double side(double slowdown, double segment, double chunk) const {
        const int flows = (segment > 0 ? 1 : 0) + (chunk > 0 ? 1 : 0);
        return slowdown * (segment + chunk) + flows * cluster_.overhead_ns;
    }

    [[nodiscard]] double pause(std::int64_t f, std::size_t straggler, double slowdown) const {
        const std::int64_t up = program_.up(f, program_.late_others && straggler > 0 ? 1 : 0);
        return std::max(side(slowdown, range_ns(program_.segments, program_.phase(f).down), chunk_ns(f - 1, straggler)),
                        side(slowdown, range_ns(program_.segments, up), chunk_ns(f, straggler)));
    }

    /// How many of the stragglers, from the slowest on, one has to look at to know the work of all. Without stars the
    /// slowest of those that are treated alike speaks for them.
    [[nodiscard]] std::size_t different() const {
        return stars_ns_.empty() ? std::min<std::size_t>(cluster_.stragglers.size(), 2) : cluster_.stragglers.size();
    }

    /// The pauses of a link for all stragglers but the slowest; `shared`: as long as on a healthy port.
    [[nodiscard]] double other_pauses(std::int64_t f, bool shared) const {
        if (cluster_.stragglers.size() == 1) {
            return 0;
        }
        if (stars_ns_.empty()) {
            return static_cast<double>(cluster_.stragglers.size() - 1) * pause(f, 1, shared ? 1.0 : mean_other_);
        }
        double sum = 0;
        for (std::size_t a = 1; a < cluster_.stragglers.size(); ++a) {
            sum += pause(f, a, shared ? 1.0 : cluster_.stragglers[a]);
        }
        return sum;
    }

    /// Where all flows of the stragglers begin or end, the later ones wait for the first one.
    [[nodiscard]] bool at_an_end(std::int64_t f) const {
        const OptccProgram::Phase& phase = program_.phase(f);
        return (phase.down == kOptccNone) != (phase.up == kOptccNone);
    }

    [[nodiscard]] double phase(std::int64_t f) const {
        double link = 0;
        double chain = 0;
        for (const OptccProgram::Stream& stream : program_.phase(f).streams) {
            if (stream.unit != kOptccNone) {
                const double hop =
                    cluster_.ring_slowdown * range_ns(program_.units, stream.unit) + cluster_.overhead_ns;
                link += (healthy_ - 1) * hop;
                chain = std::max(chain, (healthy_ - 1) * (hop + cluster_.latency_ns));
            }
        }
        link += pause(f, 0, cluster_.shared ? 1.0 : cluster_.stragglers[0]) + other_pauses(f, cluster_.shared);
        double straggler = 0;
        for (std::size_t a = 0; a < different(); ++a) {
            straggler = std::max(straggler, visits(f, a, link) + exchanges(f, a));
        }
        straggler += at_an_end(f) ? other_pauses(f, false) : 0;
        return std::max({link, straggler, chain, local_[at(f)]});
    }

    /// All visits of a straggler in a phase. With two lanes they have half of each healthy port while its ring is busy.
    [[nodiscard]] double visits(std::int64_t f, std::size_t straggler, double busy) const {
        const double alone = healthy_ * pause(f, straggler, cluster_.stragglers[straggler]);
        const double beside =
            healthy_ * pause(f, straggler, optcc_visit_slowdown(cluster_.stragglers[straggler], cluster_.shared));
        return beside <= busy || beside <= alone ? beside : busy + alone * (1 - busy / beside);
    }

    /// What a straggler exchanges with the other ones.
    [[nodiscard]] double exchanges(std::int64_t f, std::size_t straggler) const {
        double sum = 0;
        for (std::size_t other = 0; other < stars_ns_.size(); ++other) {
            if (other != straggler) {
                sum += side(std::max(cluster_.stragglers[other], cluster_.stragglers[straggler]), chunk_ns(f, other),
                            chunk_ns(f - 1, straggler));
            }
        }
        return sum;
    }

    /// Where link 0 is a phase behind, its last flow comes after everything else. With equal segments the stragglers
    /// need not wait for it, so that each of their later phases overlaps with the one before, by what a visit of the
    /// slowest takes longer than the two ring hops of a window.
    [[nodiscard]] double late_tail() const {
        double most = 0;
        for (std::size_t j = 0; program_.late_first_link && j < program_.segments.size(); ++j) {
            most = std::max(most, range_ns(program_.segments, static_cast<std::int64_t>(j)));
        }
        if (most <= 0) {
            return 0;
        }
        const double visit =
            optcc_visit_slowdown(cluster_.stragglers.front(), cluster_.shared) * most + cluster_.overhead_ns;
        const double window = kOptccStreams * (cluster_.ring_slowdown * most + cluster_.overhead_ns);
        const bool equal = program_.phase(0).down != kOptccNone;
        return visit - (equal ? (healthy_ - 1) * std::max(0.0, visit - window) : 0);
    }

    /// Local work before, beside and after each phase: every unit is reduced in the phase before its first and handed
    /// round in the phase after its last.
    void find_local() {
        local_.assign(at(phases_), 0);
        if (cluster_.ranks_per_server == 1) {
            return;
        }
        const double rate = cluster_.local_ratio > 0 ? 1 / cluster_.local_ratio : 0;
        const auto add = [&](std::int64_t f, double section_ns, double pieces) {
            const double work = (cluster_.ranks_per_server - 1) * pieces * (section_ns * rate + cluster_.overhead_ns);
            (f < 0 ? local_before_ : f >= phases_ ? local_after_ : local_[at(f)]) += work;
        };
        for (std::size_t u = 0; u < program_.units.size(); ++u) {
            const double section = range_ns(program_.units, static_cast<std::int64_t>(u));
            if (program_.reduced_from[u] != kOptccNone) {
                add(program_.reduced_from[u] - 1, section, healthy_);
            }
            if (program_.finished[u] != kOptccNone) {
                add(program_.finished[u] + 1, section, healthy_);
            }
        }
        for (std::size_t a = 0; a < stars_ns_.size(); ++a) {
            for (std::int64_t chunk = 0; chunk + 1 < phases_; ++chunk) {
                add(chunk - 1, chunk_ns(chunk, a), 1);
                add(chunk + 2, chunk_ns(chunk, a), 1);
            }
        }
    }

    const OptccCluster& cluster_;
    const OptccProgram& program_;
    std::int64_t phases_;
    double healthy_;
    double part_ns_ = 0;    ///< 1/scale of a section
    double mean_other_ = 0; ///< mean slowdown of the stragglers but the slowest
    std::vector<double> stars_ns_;
    std::vector<double> star_shares_;
    double local_before_ = 0;
    double local_after_ = 0;
    std::vector<double> local_; ///< per phase
};

} // namespace

double optcc_visit_slowdown(double slowdown, bool shared) {
    return shared ? std::max(2.0, slowdown) : slowdown;
}

double optcc_cost_ns(const OptccCluster& cluster, const OptccParameters& parameters, const OptccProgram& program) {
    return Cost(cluster, parameters, program).time();
}

} // namespace railbreak::collective
