// Which bounds hold for a cluster, and which of them binds. All are valid for any slowdowns of at least 1, because a
// slower port only adds time; a cluster is therefore first scaled to its fastest NIC.
#include <algorithm>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/bounds.hpp"
#include "collective/exact_bound.hpp"

namespace railbreak::collective {

namespace {

using bounds::ClassWeights;
using bounds::Cluster;
using bounds::ServerClass;

/// Rounds of the search for the best weights: enough for a dozen classes, and some tenths of a second at most.
constexpr std::int32_t kRounds = 150;
/// Differences below this share are rounding and must not decide which name is shown.
constexpr double kRounding = 1e-9;
/// Classes up to which a report lists the weights.
constexpr std::size_t kMostListedWeights = 4;

/// Scales the slowdowns so that the fastest NIC side has 1; what they were divided by.
Rational scale(Cluster<Rational>& cluster) {
    Rational fastest = cluster.classes.front().send;
    for (const ServerClass<Rational>& one : cluster.classes) {
        fastest = std::min({fastest, one.send, one.receive});
    }
    RB_CHECK(fastest > 0, "a slowdown is above zero");
    for (ServerClass<Rational>& one : cluster.classes) {
        one.send /= fastest;
        one.receive /= fastest;
    }
    cluster.local_cost /= fastest;
    return fastest;
}

/// Collects the bounds of one cluster in one model.
class Collector {
public:
    Collector(const Topology& topology, PortModel model)
        : model_(model), exact_(bounds::cluster_of(topology)), nics_(topology.nics_per_server),
          servers_(topology.server_count()) {
        exact_.loops = model == PortModel::kFluid;
        unit_ = to_double(scale(exact_));
        cluster_ = bounds::approximate(exact_);
        plain_ = nics_ == 1 && cluster_.ranks_per_server == 1;
        for (const ServerClass<double>& one : cluster_.classes) {
            if (one.nics < nics_ || one.send > 1 || one.receive > 1) {
                slow_.push_back(one);
                stragglers_ += one.servers;
            }
        }
    }

    std::vector<Bound> collect() {
        add("fault-free", "weights: all 1, every server healthy", plain_ ? "2(p-1)/p" : "2(q-1)/(qK)",
            bounds::fault_free<double>(servers_) / nics_);
        if (stragglers_ != 1) {
            add_rates();
        }
        if (model_ == PortModel::kExclusive) {
            add_one_straggler();
        }
        if (stragglers_ == 1) {
            add_rates();
        }
        if (model_ == PortModel::kExclusive) {
            add_equal_stragglers();
            add_weights();
            add_local_ports();
        }
        add_best_weights();
        return std::move(found_);
    }

private:
    void add(std::string_view name, std::string_view proof, std::string_view branch, double time_over_n) {
        found_.push_back({std::string(name), std::string(proof), std::string(to_string(model_)), std::string(branch),
                          time_over_n * unit_});
    }

    [[nodiscard]] std::string alone() const { return plain_ ? "l" : "l/K"; }

    /// Theorems 1, 2 and 3: all sends, or all receives, over the total rate; or the slowest server alone.
    void add_rates() {
        if (stragglers_ == 0) {
            return;
        }
        double send = 0;
        double receive = 0;
        double slowest = 0;
        for (const ServerClass<double>& one : cluster_.classes) {
            send += one.servers * one.nics / one.send;
            receive += one.servers * one.nics / one.receive;
            slowest = std::max(slowest, std::max(one.send, one.receive) / one.nics);
        }
        const double shared = 2 * (servers_ - 1) / std::min(send, receive);
        const bool one = stragglers_ == 1;
        const char* name = !one ? "theorem 2" : plain_ ? "theorem 1" : "theorem 3";
        const char* proof = !one     ? "OptCC paper, Theorem 2"
                            : plain_ ? "OptCC paper, Theorem 1"
                                     : "OptCC paper, Theorem 3";
        const char* term = !one     ? (plain_ ? "2(p-1)/sum(1/l)" : "2(q-1)/(K sum(1/l))")
                           : plain_ ? "2l(p-1)/(l(p-1)+1)"
                                    : "2l(q-1)/(K(l(q-1)+1))";
        add(name, proof, slowest >= shared ? alone() : term, std::max(slowest, shared));
    }

    /// Theorems 6 and 13, and their form for ports that send and receive at different rates: the straggler for which
    /// they give most, the others taken for healthy.
    void add_one_straggler() {
        double most = 0;
        const ServerClass<double>* worst = nullptr;
        for (const ServerClass<double>& one : slow_) {
            const double value = bounds::asymmetric_straggler(servers_, one.send, one.receive) / nics_;
            if (one.nics == nics_ && value > most) {
                most = value;
                worst = &one;
            }
        }
        if (worst == nullptr) {
            return;
        }
        const bool alike = worst->send == worst->receive;
        const bool single = most * nics_ == std::max(worst->send, worst->receive);
        if (!alike) {
            add("one straggler, send and receive differ", "weights: healthy 1, straggler 2/l-1 a side",
                single   ? alone()
                : plain_ ? "2(p-1)/(p-2+1/l_s+1/l_r)"
                         : "2(q-1)/(K(q-2+1/l_s+1/l_r))",
                most);
            return;
        }
        add(plain_ ? "theorem 6" : "theorem 13", plain_ ? "OptCC paper, Theorem 6" : "OptCC paper, Theorem 13",
            single   ? alone()
            : plain_ ? "2l(p-1)/(l(p-2)+2)"
                     : "2l(q-1)/(K(l(q-2)+2))",
            most);
    }

    void add_equal_stragglers() {
        if (slow_.size() != 1 || slow_[0].nics < nics_ || slow_[0].send != slow_[0].receive || slow_[0].send > 2 ||
            stragglers_ < 2 || servers_ - stragglers_ < 2) {
            return;
        }
        add("equal stragglers", "closed form of the best weights", "largest of three terms",
            bounds::equal_stragglers(servers_, stragglers_, slow_[0].send) / nics_);
    }

    void add_weights() {
        if (stragglers_ == 0) {
            return;
        }
        std::vector<ClassWeights<double>> ones;
        std::vector<ClassWeights<double>> peers;
        for (const ServerClass<double>& one : cluster_.classes) {
            ones.push_back({1, 1, 0, 0, 0});
            peers.push_back({std::max(0.0, 2 / one.send - 1), std::max(0.0, 2 / one.receive - 1), 0, 0, 0});
        }
        add("port sum", "weights: all 1", "all NICs alike", bounds::weighted_bound(model_, cluster_, ones));
        add("peers", "weights: healthy 1, straggler max(0, 2/l-1)", "weights 2/l-1",
            bounds::weighted_bound(model_, cluster_, peers));
    }

    void add_local_ports() {
        const Rank per_server = cluster_.ranks_per_server;
        if (per_server == 1 || exact_.local_cost * (per_server - 1) != 1 || nics_ != per_server || stragglers_ > 1) {
            return;
        }
        const double slowdown = slow_.empty() ? 1 : slow_[0].send;
        if (!slow_.empty() && (slow_[0].nics < nics_ || slow_[0].receive != slowdown)) {
            return;
        }
        add("intra-host ports", "weights: NIC 1, slow NIC 2/l-1, intra-host port g-1",
            slowdown > 2 ? "l/g" : "2l(p-1)/(g(l(p-2)+2))", bounds::local_ports(servers_, per_server, slowdown));
    }

    void add_best_weights() {
        const Result<bounds::BestWeights> best = bounds::best_weights(model_, exact_, kRounds);
        if (!best) {
            return;
        }
        const bool alike = std::ranges::all_of(exact_.classes, [](const auto& one) { return one.send == one.receive; });
        const bool reached = model_ == PortModel::kExclusive && alike && best->optimal;
        std::string branch = "linear programme";
        if (best->weights.size() <= kMostListedWeights) {
            branch = "NIC weights";
            for (const ClassWeights<Rational>& one : best->weights) {
                branch += one.send == one.receive
                              ? fmt::format(" {:.4g}", to_double(one.send))
                              : fmt::format(" {:.4g}/{:.4g}", to_double(one.send), to_double(one.receive));
            }
        }
        add(reached ? "exact optimum" : "best weights",
            reached ? "weights of a linear programme, checked in fractions; reached with many segments"
                    : "weights of a linear programme, checked in fractions",
            branch, to_double(best->time_over_n));
    }

    PortModel model_;
    Cluster<Rational> exact_;
    Cluster<double> cluster_;
    std::int32_t nics_;
    Rank servers_;
    bool plain_ = true; ///< one rank and one NIC a server
    std::vector<ServerClass<double>> slow_;
    Rank stragglers_ = 0;
    double unit_ = 1;
    std::vector<Bound> found_;
};

Bound lower_bound(PortModel model, const std::vector<double>& send, const std::vector<double>& receive) {
    RB_CHECK(send.size() == receive.size() && send.size() >= 2, "two slowdowns for each of two or more ranks");
    Topology topology;
    for (std::size_t v = 0; v < send.size(); ++v) {
        topology.servers.push_back({.send = Rational(send[v]), .receive = Rational(receive[v])});
    }
    return binding(all_bounds(topology, model));
}

} // namespace

std::vector<Bound> all_bounds(const Topology& topology, PortModel model) {
    return Collector(topology, model).collect();
}

const Bound& binding(const std::vector<Bound>& bounds) {
    RB_CHECK(!bounds.empty(), "the fault-free bound always holds");
    const Bound* most = &bounds.front();
    for (const Bound& bound : bounds) {
        if (bound.time_over_n > most->time_over_n * (1 + kRounding)) {
            most = &bound;
        }
    }
    return *most;
}

Bound lower_bound_exclusive(const std::vector<double>& send_slowdown, const std::vector<double>& receive_slowdown) {
    return lower_bound(PortModel::kExclusive, send_slowdown, receive_slowdown);
}

Bound lower_bound_fluid(const std::vector<double>& send_slowdown, const std::vector<double>& receive_slowdown) {
    return lower_bound(PortModel::kFluid, send_slowdown, receive_slowdown);
}

} // namespace railbreak::collective
