// What the tests of the baselines share: requests, a proof with words, traffic by port, and carrying a plan out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithm.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/verify.hpp"

namespace railbreak::collective::test {

/// A port rate at which an element of four bytes takes one microsecond, so that predicted times can be compared with
/// small numbers of elements.
inline constexpr std::int64_t kElementNs = 1000;

inline PlanRequest request_for(Topology topology, std::int64_t elements,
                               std::vector<std::pair<std::string, std::string>> options = {}) {
    PlanRequest request;
    request.topology = std::move(topology);
    request.elements = elements;
    request.healthy_goodput = BitRate::bits_per_s(32'000'000);
    request.options = std::move(options);
    return request;
}

inline Rational ratio(const char* text) {
    return *parse_rational(text);
}

inline Result<Plan> plan_of(const char* algorithm, const PlanRequest& request) {
    return (*find_algorithm(algorithm))->plan(request);
}

/// Predicted time in elements over a healthy port.
inline double predicted_elements(const Plan& plan) {
    return static_cast<double>(plan.predicted.count()) / static_cast<double>(kElementNs);
}

/// Time on exclusive ports, in elements over a healthy NIC.
inline Rational exact_time(const Schedule& schedule, const Topology& topology) {
    const Result<Rational> time = simulate_exact(schedule, topology);
    EXPECT_TRUE(time.has_value()) << (time ? "" : time.error().to_line());
    return time ? *time : Rational(-1);
}

inline void expect_proven(const Schedule& schedule) {
    for (const Violation& violation : verify(schedule, 4)) {
        ADD_FAILURE() << schedule.name() << " p=" << schedule.ranks() << " n=" << schedule.elements() << ": "
                      << to_string(violation);
    }
}

inline void expect_input_error(const Result<Plan>& plan, const std::string& part) {
    ASSERT_FALSE(plan.has_value()) << part;
    EXPECT_EQ(plan.error().kind(), ErrorKind::kInput);
    EXPECT_NE(plan.error().to_line().find(part), std::string::npos) << plan.error().to_line();
}

/// Elements through one port, and the flows that carry them.
struct Traffic {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    std::int64_t sends = 0;
    std::int64_t receives = 0;
    bool operator==(const Traffic&) const = default;
};

/// By server, kind and NIC (for an intra-host port: the rank).
using PortKey = std::tuple<Rank, PortKind, std::int32_t>;

inline PortKey port_key(const Schedule& schedule, Rank rank, Lane lane) {
    const Port port = schedule.port(rank, lane);
    return {rank / schedule.ranks_per_server(), port.kind, port.kind == PortKind::kNic ? port.nic : rank};
}

inline std::map<PortKey, Traffic> traffic(const Schedule& schedule) {
    std::map<PortKey, Traffic> ports;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            for (std::int64_t i = 0; i < schedule.send_count(rank, lane); ++i) {
                Traffic& port = ports[port_key(schedule, rank, lane)];
                port.sent += schedule.send_step(rank, lane, i).slice.count;
                ++port.sends;
            }
            for (std::int64_t i = 0; i < schedule.receive_count(rank, lane); ++i) {
                Traffic& port = ports[port_key(schedule, rank, lane)];
                port.received += schedule.receive_step(rank, lane, i).slice.count;
                ++port.receives;
            }
        }
    }
    return ports;
}

/// The port of a rank's only NIC, for servers of one rank.
inline Traffic nic_traffic(const Schedule& schedule, Rank rank) {
    return traffic(schedule).at({rank, PortKind::kNic, 0});
}

/// Local flows stay in the server; network flows leave it and have the same NIC number at both ends.
inline void expect_rails(const Schedule& schedule) {
    const Rank width = schedule.ranks_per_server();
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            for (std::int64_t i = 0; i < schedule.send_count(rank, lane); ++i) {
                const Rank peer = schedule.send_step(rank, lane, i).peer;
                const Port mine = schedule.port(rank, lane);
                EXPECT_EQ(mine, schedule.port(peer, lane)) << "rank " << rank << " lane " << lane << " to " << peer;
                EXPECT_EQ(mine.kind == PortKind::kLocal, rank / width == peer / width);
            }
        }
    }
}

/// Carries a plan out on vectors of integers, whole messages, in some possible order; false when it gets stuck.
inline bool carry_out(const Schedule& schedule, std::vector<std::vector<std::int64_t>>& vectors) {
    std::map<std::tuple<Rank, Lane, bool>, std::int64_t> done;
    const auto waits_done = [&](Rank rank, const Step& step, bool receive) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            if (done[{rank, lane, !receive}] < step.after[static_cast<std::size_t>(lane)]) {
                return false;
            }
        }
        return true;
    };
    std::int64_t left = 0;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            left += schedule.send_count(rank, lane);
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
            for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
                std::int64_t& sent = done[{rank, lane, false}];
                if (sent == schedule.send_count(rank, lane)) {
                    continue;
                }
                const Step send = schedule.send_step(rank, lane, sent);
                std::int64_t& received = done[{send.peer, lane, true}];
                if (received == schedule.receive_count(send.peer, lane)) {
                    continue;
                }
                const Step receive = schedule.receive_step(send.peer, lane, received);
                if (receive.peer != rank || !waits_done(rank, send, false) || !waits_done(send.peer, receive, true)) {
                    continue;
                }
                for (std::int64_t e = send.slice.offset; e < send.slice.end(); ++e) {
                    std::int64_t& to = vectors[static_cast<std::size_t>(send.peer)][static_cast<std::size_t>(e)];
                    const std::int64_t from = vectors[static_cast<std::size_t>(rank)][static_cast<std::size_t>(e)];
                    to = receive.combine == Combine::kReduce ? to + from : from;
                }
                ++sent;
                ++received;
                --left;
                moved = true;
            }
        }
    }
    return left == 0;
}

/// Rank r starts with scale * r + i in element i; every rank must end with the sum.
inline void expect_sums(const Schedule& schedule, std::int64_t scale) {
    const std::int64_t p = schedule.ranks();
    std::vector<std::vector<std::int64_t>> vectors(static_cast<std::size_t>(p));
    std::vector<std::int64_t> sums;
    for (std::int64_t i = 0; i < schedule.elements(); ++i) {
        for (std::int64_t rank = 0; rank < p; ++rank) {
            vectors[static_cast<std::size_t>(rank)].push_back(scale * rank + i);
        }
        sums.push_back(scale * p * (p - 1) / 2 + p * i);
    }
    ASSERT_TRUE(carry_out(schedule, vectors)) << schedule.name();
    for (const std::vector<std::int64_t>& vector : vectors) {
        EXPECT_EQ(vector, sums) << schedule.name();
    }
}

} // namespace railbreak::collective::test
