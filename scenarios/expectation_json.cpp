#include "scenarios/expectation_json.hpp"

#include <cmath>

#include "scenarios/json_fields.hpp"
#include "scenarios/limits.hpp"

namespace railbreak::scenarios {

using nlohmann::json;

namespace {

json baseline_to_json(const BaselineLimit& limit) {
    json result{{"min_runs", limit.min_runs}, {limit.in_sigmas ? "sigma_millionths" : "share_millionths", limit.band}};
    if (limit.side != Side::kBoth) {
        result["side"] = to_string(limit.side);
    }
    return result;
}

BaselineLimit baseline_from(const json& object) {
    BaselineLimit limit;
    limit.min_runs = small(object, "min_runs", kMinBaselineRuns, kMaxBaselineRuns);
    limit.in_sigmas = object.contains("sigma_millionths");
    const std::int64_t most = (limit.in_sigmas ? kMaxSigmas : 1) * kLimitScale;
    limit.band =
        static_cast<std::uint32_t>(integer(object, limit.in_sigmas ? "sigma_millionths" : "share_millionths", 1, most));
    if (object.contains("side")) {
        limit.side = word(object, "side", kSides);
    }
    return limit;
}

void add_limits(const Expectation& expectation, json& result) {
    if (expectation.min) {
        result["min_millionths"] = std::llround(*expectation.min * static_cast<double>(kLimitScale));
    }
    if (expectation.max) {
        result["max_millionths"] = std::llround(*expectation.max * static_cast<double>(kLimitScale));
    }
    if (expectation.min_time) {
        result["min_ns"] = expectation.min_time->count();
    }
    if (expectation.max_time) {
        result["max_ns"] = expectation.max_time->count();
    }
    if (expectation.baseline) {
        result["baseline"] = baseline_to_json(*expectation.baseline);
    }
}

void read_limits(const json& object, Expectation& result) {
    const auto limit = [&](const char* key) -> std::optional<double> {
        if (!object.contains(key)) {
            return std::nullopt;
        }
        return static_cast<double>(integer(object, key, 0, kMaxLimit * kLimitScale)) / static_cast<double>(kLimitScale);
    };
    const auto time = [&](const char* key) -> std::optional<Nanoseconds> {
        if (!object.contains(key)) {
            return std::nullopt;
        }
        return Nanoseconds(integer(object, key, 0, 2 * kMaxIterationTimeout.count()));
    };
    if (is_duration(result.metric)) {
        result.min_time = time("min_ns");
        result.max_time = time("max_ns");
    } else {
        result.min = limit("min_millionths");
        result.max = limit("max_millionths");
    }
    if (object.contains("baseline")) {
        result.baseline = baseline_from(object.at("baseline"));
    }
}

} // namespace

json to_json(const Expectation& expectation) {
    json result = json::object();
    const bool of_a_fault = !expectation.outcome && is_of_a_fault(expectation.metric);
    if (!of_a_fault) {
        result["phase"] = to_string(expectation.phase);
    }
    if (expectation.algorithm) {
        result["algorithm"] = *expectation.algorithm;
    }
    if (expectation.outcome) {
        result["outcome"] = to_string(*expectation.outcome);
        if (expectation.within) {
            result["within_ns"] = expectation.within->count();
        }
        return result;
    }
    result["metric"] = to_string(expectation.metric);
    if (of_a_fault && expectation.fault) {
        result["fault"] = *expectation.fault;
    }
    if (has_band(expectation.metric)) {
        result["band_millionths"] = expectation.band;
    }
    add_limits(expectation, result);
    return result;
}

Expectation expectation_from(const json& object) {
    Expectation result;
    if (object.contains("algorithm")) {
        result.algorithm = object.at("algorithm").get<std::string>();
    }
    if (object.contains("outcome")) {
        result.phase = word(object, "phase", kPhases);
        result.outcome = word(object, "outcome", kOutcomes);
        if (object.contains("within_ns")) {
            result.within = Nanoseconds(integer(object, "within_ns", 1, 2 * kMaxIterationTimeout.count()));
        }
        return result;
    }
    result.metric = word(object, "metric", kMetrics);
    if (!is_of_a_fault(result.metric)) {
        result.phase = word(object, "phase", kPhases);
    } else if (object.contains("fault")) {
        result.fault = object.at("fault").get<std::string>();
    }
    if (has_band(result.metric)) {
        result.band = static_cast<Millionths>(integer(object, "band_millionths", 1, kMillion));
    }
    read_limits(object, result);
    return result;
}

} // namespace railbreak::scenarios
