#include "harness/agent/plan_spec.hpp"

namespace railbreak::agent {

using collective::PortSlowdown;
using launch::Json;

Json to_json(const PlanSpec& spec) {
    Json servers = Json::array();
    for (const PortSlowdown& server : spec.request.topology.servers) {
        servers.push_back({server.send.str(), server.receive.str(), server.failed_nics});
    }
    Json options = Json::array();
    for (const auto& [name, value] : spec.request.options) {
        options.push_back({name, value});
    }
    return {{"algorithm", spec.algorithm},
            {"slowdowns", servers},
            {"ranks_per_server", spec.request.topology.ranks_per_server},
            {"nics_per_server", spec.request.topology.nics_per_server},
            {"local_ratio", spec.request.topology.local_ratio.str()},
            {"elements", spec.request.elements},
            {"element_bytes", spec.request.element_bytes},
            {"healthy_goodput_bits_per_s", spec.request.healthy_goodput.bits_per_s()},
            {"flow_overhead_ns", spec.request.flow_overhead.count()},
            {"flow_latency_ns", spec.request.flow_latency.count()},
            {"options", options}};
}

namespace {

Result<PortSlowdown> slowdown_from_json(const Json& pair) {
    PortSlowdown slowdown;
    if (!pair.is_array() || pair.size() != 3 || !pair[2].is_number_unsigned()) {
        return fail(ErrorKind::kHarness, "a server in a plan is not two fractions and a set of failed NICs");
    }
    slowdown.failed_nics = pair[2].get<std::uint64_t>();
    for (const std::size_t side : {0U, 1U}) {
        if (!pair[side].is_string()) {
            return fail(ErrorKind::kHarness, "a slowdown in a plan is not a fraction");
        }
        Result<Rational> value = parse_rational(pair[side].get<std::string>());
        if (!value) {
            return fail(std::move(value.error()));
        }
        (side == 0 ? slowdown.send : slowdown.receive) = *value;
    }
    return slowdown;
}

} // namespace

Result<PlanSpec> plan_spec_from_json(const Json& json) {
    PlanSpec spec;
    const Result<std::string> algorithm = launch::field<std::string>(json, "algorithm");
    const Result<Json> servers = launch::field<Json>(json, "slowdowns");
    const Result<std::int64_t> elements = launch::field<std::int64_t>(json, "elements");
    const Result<std::uint32_t> element_bytes = launch::field<std::uint32_t>(json, "element_bytes");
    const Result<std::uint64_t> goodput = launch::field<std::uint64_t>(json, "healthy_goodput_bits_per_s");
    const Result<std::int64_t> overhead = launch::field<std::int64_t>(json, "flow_overhead_ns");
    const Result<std::int64_t> latency = launch::field<std::int64_t>(json, "flow_latency_ns");
    const auto options = launch::field<std::vector<std::pair<std::string, std::string>>>(json, "options");
    const Result<collective::Rank> ranks_per_server = launch::field<collective::Rank>(json, "ranks_per_server");
    const Result<std::int32_t> nics_per_server = launch::field<std::int32_t>(json, "nics_per_server");
    const Result<std::string> local_ratio = launch::field<std::string>(json, "local_ratio");
    if (!ranks_per_server || !nics_per_server || !local_ratio || *ranks_per_server < 1 || *nics_per_server < 1) {
        return fail(ErrorKind::kHarness, "a plan lacks the ranks or the NICs of a server");
    }
    if (!algorithm || !servers || !elements || !element_bytes || !goodput || !overhead || !latency || !options) {
        return fail(ErrorKind::kHarness, "a plan lacks a member or has one of the wrong type");
    }
    for (const Json& pair : *servers) {
        Result<PortSlowdown> slowdown = slowdown_from_json(pair);
        if (!slowdown) {
            return fail(std::move(slowdown.error()));
        }
        spec.request.topology.servers.push_back(std::move(*slowdown));
    }
    const Result<Rational> ratio = parse_rational(*local_ratio);
    if (!ratio) {
        return fail(Error(ratio.error()));
    }
    spec.request.topology.ranks_per_server = *ranks_per_server;
    spec.request.topology.nics_per_server = *nics_per_server;
    spec.request.topology.local_ratio = *ratio;
    spec.algorithm = *algorithm;
    spec.request.elements = *elements;
    spec.request.element_bytes = *element_bytes;
    spec.request.healthy_goodput = BitRate::bits_per_s(*goodput);
    spec.request.flow_overhead = Nanoseconds(*overhead);
    spec.request.flow_latency = Nanoseconds(*latency);
    spec.request.options = *options;
    return spec;
}

Result<collective::Plan> make_plan(const PlanSpec& spec) {
    Result<const collective::Algorithm*> algorithm = collective::find_algorithm(spec.algorithm);
    if (!algorithm) {
        return fail(std::move(algorithm.error()));
    }
    return (*algorithm)->plan(spec.request);
}

} // namespace railbreak::agent
