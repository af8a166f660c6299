#include "harness/cli/plan_output.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "collective/cost_model.hpp"
#include "collective/exact_bound.hpp"

namespace railbreak::cli {

namespace {

using collective::Bound;
using collective::BreakEven;
using collective::Evaluation;
using collective::PlannerInput;
using collective::PlanRow;

std::string plural(std::int64_t count, std::string_view word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string slowdowns(const collective::Topology& topology) {
    std::string text;
    for (collective::Rank server = 0; server < topology.server_count(); ++server) {
        const collective::PortSlowdown& one = topology.server(server);
        if (one.failed_nics != 0) {
            text += fmt::format("; host {} with {} dead", server, plural(std::popcount(one.failed_nics), "NIC"));
        } else if (one.send == one.receive && one.send > 1) {
            text += fmt::format("; host {} slowed {}", server, one.send.str());
        } else if (one.worst() > 1) {
            text += fmt::format("; host {} slowed {} sending, {} receiving", server, one.send.str(), one.receive.str());
        }
    }
    return text;
}

std::string question(const PlannerInput& input) {
    const collective::Topology& topology = input.request.topology;
    const auto bytes = static_cast<std::uint64_t>(input.request.elements) * input.request.element_bytes;
    std::string text = fmt::format(
        "{}, each with {} and {} of {}{}{}\n", plural(topology.server_count(), "server"),
        plural(topology.ranks_per_server, "rank"), plural(topology.nics_per_server, "NIC"),
        to_string(input.request.healthy_goodput),
        topology.local_ratio > 0 ? fmt::format(", intra-host ports {} times a NIC", topology.local_ratio.str()) : "",
        slowdowns(topology));
    return text + fmt::format("AllReduce of {}; {} ports; overhead {}, latency {} a flow\n\n",
                              to_string(ByteCount::bytes(bytes)), to_string(input.model),
                              to_string(input.request.flow_overhead), to_string(input.request.flow_latency));
}

Nanoseconds time_of(const Evaluation& evaluation, const Bound& bound) {
    return Nanoseconds(
        static_cast<std::int64_t>(bound.time_over_n * static_cast<double>(evaluation.vector_time.count())));
}

std::string bounds_text(const Evaluation& evaluation) {
    std::size_t name = 0;
    std::size_t branch = 0;
    for (const std::vector<Bound>* bounds : {&evaluation.exclusive, &evaluation.fluid}) {
        for (const Bound& bound : *bounds) {
            name = std::max(name, bound.name.size());
            branch = std::max(branch, bound.branch.size());
        }
    }
    std::string out = fmt::format("  {:<9} {:>10} {:>8}  {:<{}}  {:<{}}  {}\n", "bounds", "time", "T/n", "", name,
                                  "what binds", branch, "proof");
    for (const std::vector<Bound>* bounds : {&evaluation.exclusive, &evaluation.fluid}) {
        const Bound* binding = &collective::binding(*bounds);
        for (const Bound& bound : *bounds) {
            out += fmt::format("{} {:<9} {:>10} {:>8.4f}  {:<{}}  {:<{}}  {}\n", &bound == binding ? '*' : ' ',
                               bound.model, to_string(time_of(evaluation, bound)), bound.time_over_n, bound.name, name,
                               bound.branch, branch, bound.proof);
        }
    }
    return out + "  * the largest of its model\n\n";
}

std::string row_text(const PlannerInput& input, const Evaluation& evaluation, const PlanRow& row, bool recommended) {
    const std::string head = fmt::format("{} {:<17} ", recommended ? '*' : ' ', row.algorithm);
    if (!row.plan) {
        return head + fmt::format("{:>10} {:>10} {:>8} {:>8}  {}\n", "-", "-", "-", "-", row.plan.error().message());
    }
    const Nanoseconds time = row.time();
    const std::string simulated = !row.simulated ? "-" : *row.simulated ? to_string(**row.simulated) : "failed";
    std::string out =
        head + fmt::format("{:>10} {:>10} {:>8.3f} {:>8}  {}", to_string(row.plan->predicted), simulated,
                           ratio(time, evaluation.bound_time),
                           evaluation.healthy_ring ? fmt::format("{:.3f}", ratio(time, *evaluation.healthy_ring)) : "-",
                           row.plan->schedule->name());
    if (row.simulated && !*row.simulated) {
        out += fmt::format(" ({})", row.simulated->error().message());
    }
    if (row.shares_ports && input.model == collective::PortModel::kExclusive) {
        out += " (its flows share ports: meant for the fluid model)";
    }
    return out + "\n";
}

std::string break_even_text(const Evaluation& evaluation, const std::optional<BreakEven>& break_even) {
    const std::string gain = fmt::format("{:.0f} %", 100 * (1 - collective::kWorthWhile));
    if (break_even) {
        return fmt::format("Break-even: {} beats the ring by {} from {} on.\n", break_even->algorithm, gain,
                           to_string(break_even->smallest));
    }
    const PlanRow& row = evaluation.choice.rows[*evaluation.choice.recommended];
    return row.algorithm == "ring"
               ? fmt::format("No larger message for which another algorithm is predicted to beat it by {}.\n", gain)
               : "";
}

nlohmann::json bounds_json(const Evaluation& evaluation, const std::vector<Bound>& bounds) {
    nlohmann::json list = nlohmann::json::array();
    for (const Bound& bound : bounds) {
        list.push_back({{"name", bound.name},
                        {"proof", bound.proof},
                        {"model", bound.model},
                        {"branch", bound.branch},
                        {"binds", &bound == &collective::binding(bounds)},
                        {"time_over_n", bound.time_over_n},
                        {"time_ns", time_of(evaluation, bound).count()}});
    }
    return list;
}

nlohmann::json row_json(const Evaluation& evaluation, const PlanRow& row) {
    nlohmann::json json{{"algorithm", row.algorithm}, {"applies", row.plan.has_value()}};
    if (!row.plan) {
        json["why_not"] = row.plan.error().message();
        return json;
    }
    json["schedule"] = row.plan->schedule->name();
    json["reason"] = row.plan->reason;
    json["predicted_ns"] = row.plan->predicted.count();
    json["predicted_with_margin_ns"] = row.careful ? nlohmann::json(row.careful->count()) : nlohmann::json(nullptr);
    json["shares_ports"] = row.shares_ports;
    if (row.simulated && *row.simulated) {
        json["simulated_ns"] = (**row.simulated).count();
    } else if (row.simulated) {
        json["simulation_error"] = row.simulated->error().message();
    }
    json["vs_bound"] = ratio(row.time(), evaluation.bound_time);
    if (evaluation.healthy_ring) {
        json["vs_healthy"] = ratio(row.time(), *evaluation.healthy_ring);
    }
    return json;
}

nlohmann::json question_json(const PlannerInput& input) {
    const collective::Topology& topology = input.request.topology;
    nlohmann::json slow = nlohmann::json::array();
    for (collective::Rank server = 0; server < topology.server_count(); ++server) {
        const collective::PortSlowdown& one = topology.server(server);
        if (one.worst() > 1) {
            slow.push_back({{"host", server},
                            {"send_slowdown", to_double(one.send)},
                            {"receive_slowdown", to_double(one.receive)},
                            {"dead_nics", std::popcount(one.failed_nics)}});
        }
    }
    return {{"servers", topology.server_count()},
            {"ranks_per_server", topology.ranks_per_server},
            {"nics_per_server", topology.nics_per_server},
            {"nvlink_ratio", to_double(topology.local_ratio)},
            {"slow", std::move(slow)},
            {"bytes", input.request.elements * input.request.element_bytes},
            {"rate_bits_per_s", input.request.healthy_goodput.bits_per_s()},
            {"overhead_ns", input.request.flow_overhead.count()},
            {"latency_ns", input.request.flow_latency.count()},
            {"model", to_string(input.model)}};
}

} // namespace

std::string plan_text(const PlannerInput& input, const Evaluation& evaluation,
                      const std::optional<BreakEven>& break_even) {
    std::string out = question(input) + bounds_text(evaluation);
    out += fmt::format("{:<19} {:>10} {:>10} {:>8} {:>8}  {}\n", "algorithms", "predicted", "simulated", "/bound",
                       "/healthy", "schedule, or why none");
    for (std::size_t i = 0; i < evaluation.choice.rows.size(); ++i) {
        out += row_text(input, evaluation, evaluation.choice.rows[i], evaluation.choice.recommended == i);
    }
    out += fmt::format("  * recommended; /bound: over the bound that binds; /healthy: over the fault-free ring{}\n\n",
                       evaluation.healthy_ring ? fmt::format(", {}", to_string(*evaluation.healthy_ring)) : "");
    if (!evaluation.choice.recommended) {
        return out + fmt::format("No recommendation: {}.\n", evaluation.choice.why);
    }
    const PlanRow& row = evaluation.choice.rows[*evaluation.choice.recommended];
    out += fmt::format("Recommended: {}: {}.\n", row.algorithm, evaluation.choice.why);
    out += fmt::format("Its plan: {}: {}.\n", row.plan->schedule->name(), row.plan->reason);
    return out + break_even_text(evaluation, break_even);
}

std::string plan_json(const PlannerInput& input, const Evaluation& evaluation,
                      const std::optional<BreakEven>& break_even) {
    nlohmann::json rows = nlohmann::json::array();
    for (const PlanRow& row : evaluation.choice.rows) {
        rows.push_back(row_json(evaluation, row));
    }
    nlohmann::json bounds = bounds_json(evaluation, evaluation.exclusive);
    for (nlohmann::json& bound : bounds_json(evaluation, evaluation.fluid)) {
        bounds.push_back(std::move(bound));
    }
    nlohmann::json json{{"schema", "railbreak-plan"},
                        {"version", 1},
                        {"question", question_json(input)},
                        {"vector_time_ns", evaluation.vector_time.count()},
                        {"bound_time_ns", evaluation.bound_time.count()},
                        {"bounds", std::move(bounds)},
                        {"algorithms", std::move(rows)},
                        {"why", evaluation.choice.why}};
    json["healthy_ring_ns"] =
        evaluation.healthy_ring ? nlohmann::json(evaluation.healthy_ring->count()) : nlohmann::json(nullptr);
    json["recommended"] = evaluation.choice.recommended
                              ? nlohmann::json(evaluation.choice.rows[*evaluation.choice.recommended].algorithm)
                              : nlohmann::json(nullptr);
    if (break_even) {
        json["break_even"] = {{"algorithm", break_even->algorithm}, {"bytes", break_even->smallest.bytes()}};
    }
    return json.dump(2) + "\n";
}

double ratio(Nanoseconds above, Nanoseconds below) {
    return below.count() == 0 ? 0 : static_cast<double>(above.count()) / static_cast<double>(below.count());
}

} // namespace railbreak::cli
