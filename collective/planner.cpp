#include "collective/planner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

namespace {

constexpr const char* kRing = "ring";
constexpr const char* kAuto = "auto";
/// Bisections between two tried sizes, which lie a factor of two apart.
constexpr int kBisections = 4;

/// Whole nanoseconds, rounded down as the algorithms round their predictions.
Nanoseconds in_time(double time_over_n, double vector_ns) {
    return Nanoseconds(static_cast<std::int64_t>(time_over_n * vector_ns));
}

Result<void> check(const PlanRequest& request) {
    const Topology& topology = request.topology;
    if (topology.server_count() < 2 || topology.ranks_per_server < 1 || topology.nics_per_server < 1) {
        return fail(ErrorKind::kInput, "a plan needs at least two servers, each with a rank and a NIC");
    }
    if (request.elements < 1 || request.element_bytes < 1 || request.healthy_goodput.bits_per_s() == 0) {
        return fail(ErrorKind::kInput, "a plan needs a message of at least one element and the rate of a healthy NIC");
    }
    for (Rank server = 0; server < topology.server_count(); ++server) {
        const PortSlowdown& one = topology.server(server);
        if (one.send < 1 || one.receive < 1) {
            return fail(ErrorKind::kInput, fmt::format("server {} is faster than healthy", server));
        }
        if (std::popcount(one.failed_nics) >= topology.nics_per_server) {
            return fail(ErrorKind::kInput, fmt::format("server {} has no NIC left", server));
        }
    }
    return {};
}

bool shares_ports(const Schedule& schedule) {
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane one = 0; one < schedule.lanes(); ++one) {
            for (Lane other = one + 1; other < schedule.lanes(); ++other) {
                if (schedule.port(rank, one) == schedule.port(rank, other)) {
                    return true;
                }
            }
        }
    }
    return false;
}

PlanRow make_row(const PlannerInput& input, const Algorithm& algorithm, const PlanRequest& careful) {
    PlanRow row{std::string(algorithm.name()), algorithm.plan(input.request), {}, false, {}};
    if (row.plan) {
        row.shares_ports = shares_ports(*row.plan->schedule);
        if (const Result<Plan> slower = algorithm.plan(careful); slower) {
            row.careful = slower->predicted;
        }
    }
    return row;
}

/// Applies, and its time is to be believed in this model: what is predicted for flows that share ports is not, in the
/// exclusive one.
bool usable(const PlannerInput& input, const PlanRow& row) {
    return row.plan && row.careful && (input.model == PortModel::kFluid || input.simulate || !row.shares_ports);
}

/// By the times that were asked for; those of flows that share ports only where there are no others.
bool has_usable(const PlannerInput& input, const Choice& choice) {
    return std::ranges::any_of(choice.rows, [&](const PlanRow& row) { return usable(input, row); });
}

/// What the margin costs where the slowdowns are just as stated; empty when it is not worth a word.
std::string said_as_stated(const Choice& choice, const std::vector<std::size_t>& rows) {
    const auto time = [&](std::size_t i) { return choice.rows[i].time(); };
    const std::size_t fastest = *std::ranges::min_element(rows, {}, time);
    const Nanoseconds chosen = time(*choice.recommended);
    if (static_cast<double>(time(fastest).count()) >= kWorthWhile * static_cast<double>(chosen.count())) {
        return "";
    }
    return fmt::format("; with slow ports just as stated {} takes {}, and this {}", choice.rows[fastest].algorithm,
                       railbreak::to_string(time(fastest)), railbreak::to_string(chosen));
}

/// Why the row with the least careful time is recommended, or the ring instead of it.
std::string said_why(const PlannerInput& input, const Choice& choice, std::size_t best,
                     std::optional<std::size_t> ring) {
    const double margin = kSlowdownMargin;
    const char* how = input.simulate ? "simulated" : "predicted";
    if (choice.recommended != ring) {
        return fmt::format("the least time {} with slow ports {} times slower than stated: {}{}", how, margin,
                           railbreak::to_string(*choice.rows[best].careful),
                           ring ? fmt::format(", the ring {}", railbreak::to_string(*choice.rows[*ring].careful)) : "");
    }
    return best == ring
               ? fmt::format("nothing is {} to be faster than the ring, even with slow ports {} times slower "
                             "than stated",
                             how, margin)
               : fmt::format("{} is {} to gain less than {:.0f} %, with slow ports {} times slower than stated",
                             choice.rows[best].algorithm, how, 100 * (1 - kWorthWhile), margin);
}

/// The least careful time, unless the ring is nearly as good: fewer, longer flows need less luck.
void recommend(const PlannerInput& input, Choice& choice) {
    const bool any = has_usable(input, choice);
    std::vector<std::size_t> rows;
    std::optional<std::size_t> ring;
    for (std::size_t i = 0; i < choice.rows.size(); ++i) {
        const PlanRow& row = choice.rows[i];
        if (any ? usable(input, row) : row.plan && row.careful) {
            rows.push_back(i);
            ring = row.algorithm == kRing ? i : ring;
        }
    }
    if (rows.empty()) {
        choice.why = "no algorithm applies";
        return;
    }
    const std::size_t best =
        *std::ranges::min_element(rows, {}, [&](std::size_t i) { return *choice.rows[i].careful; });
    const auto least = static_cast<double>(choice.rows[best].careful->count());
    const bool leave_ring = !ring || least < kWorthWhile * static_cast<double>(choice.rows[*ring].careful->count());
    choice.recommended = leave_ring ? best : *ring;
    choice.why = said_why(input, choice, best, ring) + said_as_stated(choice, rows) +
                 (any ? "" : "; roughly, since flows share ports in all that apply");
}

/// Time that the algorithm predicts for a message of that size, in nanoseconds; infinite when it does not apply.
double predicted(const PlannerInput& input, const Algorithm& algorithm, std::uint64_t bytes) {
    PlanRequest request = relative_to_fastest(input.request);
    request.elements = static_cast<std::int64_t>(std::max<std::uint64_t>(1, bytes / request.element_bytes));
    const Result<Plan> plan = algorithm.plan(request);
    return plan ? static_cast<double>(plan->predicted.count()) : std::numeric_limits<double>::infinity();
}

bool beats_ring(const PlannerInput& input, const Algorithm& algorithm, const Algorithm& ring, std::uint64_t bytes) {
    return predicted(input, algorithm, bytes) < kWorthWhile * predicted(input, ring, bytes);
}

const Algorithm* named(const PlannerInput& input, std::string_view name) {
    for (const Algorithm* algorithm : input.algorithms) {
        if (algorithm->name() == name) {
            return algorithm;
        }
    }
    return nullptr;
}

/// Between a size for which it does not pay and one for which it does.
std::uint64_t bisect(const PlannerInput& input, const Algorithm& algorithm, const Algorithm& ring, std::uint64_t low,
                     std::uint64_t high) {
    for (int step = 0; step < kBisections; ++step) {
        const std::uint64_t middle = low + (high - low) / 2;
        (beats_ring(input, algorithm, ring, middle) ? high : low) = middle;
    }
    return high;
}

Result<Nanoseconds> simulated(const Schedule& schedule, const SimulationOptions& options) {
    return simulate(schedule, options).map([](const SimulationResult& result) { return result.makespan; });
}

std::int64_t flows_of(const Schedule& schedule) {
    std::int64_t flows = 0;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            flows += schedule.send_count(rank, lane);
        }
    }
    return flows;
}

/// Before the first of them is simulated, since that may take a while.
Result<void> check_flows(const Choice& choice) {
    for (const PlanRow& row : choice.rows) {
        const std::int64_t flows = row.plan ? flows_of(*row.plan->schedule) : 0;
        if (flows > kTooManyFlows) {
            return fail(Error(ErrorKind::kInput, fmt::format("{} has {} flows, more than the {} that are simulated",
                                                             row.plan->schedule->name(), flows, kTooManyFlows))
                            .advise("predict without simulating, or ask for algorithms with fewer flows"));
        }
    }
    return {};
}

/// The two port models of a planner input: as stated, and with the margin.
struct Models {
    SimulationOptions stated;
    SimulationOptions careful;
};

void simulate_row(const PlannerInput& input, const Models& models, PlanRow& row) {
    const std::int64_t flows = flows_of(*row.plan->schedule);
    if (flows > kManyFlows && input.on_long_simulation) {
        input.on_long_simulation(*row.plan->schedule, flows);
    }
    row.simulated = simulated(*row.plan->schedule, models.stated);
    const Result<Nanoseconds> slower = simulated(*row.plan->schedule, models.careful);
    row.careful = slower ? std::optional(*slower) : std::nullopt;
}

/// What tuning minimises: a plan should be fast at either slowdown. Infinite where a simulation failed.
double tuned_for(const PlanRow& row) {
    return row.simulated && *row.simulated && row.careful
               ? static_cast<double>((*row.simulated)->count()) * static_cast<double>(row.careful->count())
               : std::numeric_limits<double>::infinity();
}

bool has_option(const Algorithm& algorithm, std::string_view name) {
    return std::ranges::any_of(algorithm.options(), [&](const OptionHelp& one) { return one.name == name; });
}

/// Replaces the row's plan by the best of those tried. Segments are tried coarsely first, then around the best.
void tune_row(const PlannerInput& input, const Models& models, const Algorithm& algorithm, PlanRow& row) {
    for (const char* plan : {"ramp", "lag", "bs"}) {
        std::int64_t best = 0; // number of segments with which this plan is the row's; 0: it is not
        const auto try_segments = [&](std::int64_t segments) {
            PlanRequest request = relative_to_fastest(input.request);
            request.options = {{"plan", plan}, {"k", std::to_string(segments)}};
            PlanRow other{row.algorithm, algorithm.plan(request), {}, row.shares_ports, {}};
            if (!other.plan || flows_of(*other.plan->schedule) > kTooManyFlows) {
                return;
            }
            simulate_row(input, models, other);
            if (tuned_for(other) < tuned_for(row)) {
                row = std::move(other);
                best = segments;
            }
        };
        for (const std::int64_t segments : {4, 6, 9, 14, 21, 32, 48}) {
            try_segments(segments);
        }
        for (const std::int64_t around = best; const std::int64_t eighths : {7, 9, 10}) {
            if (around > 0) {
                try_segments(around * eighths / 8);
            }
        }
    }
}

void simulate_rows(const PlannerInput& input, Choice& choice) {
    Models models{simulation_of(input), simulation_of(input)};
    models.careful.topology = with_margin(input.request).topology;
    for (std::size_t i = 0; i < choice.rows.size(); ++i) {
        PlanRow& row = choice.rows[i];
        if (!row.plan) {
            continue;
        }
        simulate_row(input, models, row);
        const Algorithm& algorithm = *input.algorithms[i];
        if (input.tune && input.request.options.empty() && has_option(algorithm, "plan") &&
            has_option(algorithm, "k")) {
            tune_row(input, models, algorithm, row);
        }
    }
}

/// The ring while nothing was slow.
std::optional<Nanoseconds> healthy_ring(const PlannerInput& input) {
    PlannerInput healthy = input;
    healthy.request.options.clear();
    std::ranges::fill(healthy.request.topology.servers, PortSlowdown{});
    const Result<const Algorithm*> ring = find_algorithm(kRing);
    const Result<Plan> plan = ring ? (*ring)->plan(healthy.request) : tl::unexpected(ring.error());
    if (!plan) {
        return std::nullopt;
    }
    if (!input.simulate || flows_of(*plan->schedule) > kTooManyFlows) {
        return plan->predicted;
    }
    const Result<Nanoseconds> time = simulated(*plan->schedule, simulation_of(healthy));
    return time ? std::optional(*time) : std::nullopt;
}

} // namespace

Nanoseconds PlanRow::time() const {
    RB_CHECK(plan.has_value(), "an algorithm that does not apply takes no time");
    return simulated && *simulated ? **simulated : plan->predicted;
}

std::vector<const Algorithm*> plannable_algorithms() {
    std::vector<const Algorithm*> list;
    std::ranges::copy_if(algorithms(), std::back_inserter(list),
                         [](const Algorithm* algorithm) { return algorithm->name() != kAuto; });
    return list;
}

PlanRequest relative_to_fastest(const PlanRequest& request) {
    const auto& servers = request.topology.servers;
    RB_CHECK(!servers.empty(), "a cluster has a server");
    Rational fastest = servers.front().send;
    for (const PortSlowdown& server : servers) {
        fastest = server.failed_nics != 0 ? Rational(1) : std::min({fastest, server.send, server.receive});
        if (fastest <= 1) {
            return request;
        }
    }
    PlanRequest relative = request;
    for (PortSlowdown& server : relative.topology.servers) {
        server.send /= fastest;
        server.receive /= fastest;
    }
    relative.topology.local_ratio *= fastest;
    const double rate = static_cast<double>(request.healthy_goodput.bits_per_s()) / to_double(fastest);
    relative.healthy_goodput = BitRate::bits_per_s(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rate)));
    return relative;
}

PlanRequest with_margin(const PlanRequest& request) {
    PlanRequest careful = request;
    const Rational margin(static_cast<std::int64_t>(std::llround(kSlowdownMargin * 1000)), 1000);
    for (PortSlowdown& server : careful.topology.servers) {
        for (Rational* side : {&server.send, &server.receive}) {
            if (server.failed_nics == 0 && to_double(*side) >= kNoticeableSlowdown) {
                *side *= margin;
            }
        }
    }
    return careful;
}

Result<Choice> choose(const PlannerInput& input) {
    if (Result<void> fine = check(input.request); !fine) {
        return tl::unexpected(fine.error());
    }
    PlannerInput relative = input;
    relative.request = relative_to_fastest(input.request);
    const PlanRequest careful = with_margin(relative.request);
    Choice choice;
    for (const Algorithm* algorithm : input.algorithms) {
        choice.rows.push_back(make_row(relative, *algorithm, careful));
    }
    if (input.simulate) {
        if (Result<void> fine = check_flows(choice); !fine) {
            return tl::unexpected(fine.error());
        }
        simulate_rows(input, choice);
    }
    recommend(input, choice);
    return choice;
}

SimulationOptions simulation_of(const PlannerInput& input) {
    SimulationOptions options;
    options.model = input.model;
    options.topology = input.request.topology;
    options.healthy_goodput = input.request.healthy_goodput;
    options.element_bytes = input.request.element_bytes;
    options.flow_overhead = input.request.flow_overhead;
    options.flow_latency = input.request.flow_latency;
    options.cut_through = input.model == PortModel::kFluid;
    return options;
}

Result<Evaluation> evaluate(const PlannerInput& input) {
    Result<Choice> choice = choose(input);
    if (!choice) {
        return tl::unexpected(choice.error());
    }
    Evaluation evaluation;
    evaluation.choice = std::move(*choice);
    const double bits = 8.0 * static_cast<double>(input.request.elements) * input.request.element_bytes;
    const double vector_ns = bits * 1e9 / static_cast<double>(input.request.healthy_goodput.bits_per_s());
    evaluation.vector_time = in_time(1, vector_ns);
    evaluation.exclusive = all_bounds(input.request.topology, PortModel::kExclusive);
    evaluation.fluid = all_bounds(input.request.topology, PortModel::kFluid);
    const std::vector<Bound>& bounds = input.model == PortModel::kExclusive ? evaluation.exclusive : evaluation.fluid;
    evaluation.bound_time = in_time(binding(bounds).time_over_n, vector_ns);

    evaluation.healthy_ring = healthy_ring(input);
    return evaluation;
}

std::optional<BreakEven> break_even(const PlannerInput& input, const Choice& choice) {
    const Algorithm* ring = named(input, kRing);
    const bool planned = std::ranges::any_of(
        choice.rows, [](const PlanRow& row) { return row.algorithm == kRing && row.plan.has_value(); });
    if (ring == nullptr || !planned || !choice.recommended) {
        return std::nullopt;
    }
    const auto bytes = static_cast<std::uint64_t>(input.request.elements) * input.request.element_bytes;
    const std::string& recommended = choice.rows[*choice.recommended].algorithm;
    if (const Algorithm* algorithm = named(input, recommended);
        algorithm != ring && beats_ring(input, *algorithm, *ring, bytes)) {
        std::uint64_t size = bytes;
        while (size > kSmallestTried && beats_ring(input, *algorithm, *ring, size / 2)) {
            size /= 2;
        }
        const bool all = size <= kSmallestTried;
        return BreakEven{recommended, ByteCount::bytes(all ? size : bisect(input, *algorithm, *ring, size / 2, size))};
    }
    for (std::uint64_t size = 2 * bytes; size <= kLargestTried; size *= 2) {
        for (std::size_t i = 0; i < input.algorithms.size(); ++i) {
            if (usable(input, choice.rows[i]) && beats_ring(input, *input.algorithms[i], *ring, size)) {
                return BreakEven{choice.rows[i].algorithm,
                                 ByteCount::bytes(bisect(input, *input.algorithms[i], *ring, size / 2, size))};
            }
        }
    }
    return std::nullopt;
}

} // namespace railbreak::collective
