#include "reports/facts.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace railbreak::reports {

using record::RunData;

std::int64_t origin_ns(const RunData& data) {
    std::int64_t origin = std::numeric_limits<std::int64_t>::max();
    const auto take = [&](std::int64_t at) { origin = at > 0 ? std::min(origin, at) : origin; };
    for (const auto& row : data.events) {
        take(row.at);
    }
    for (const auto& row : data.iterations) {
        take(row.started_at);
    }
    for (const auto& row : data.injections) {
        take(row.ordered_at);
    }
    return origin != std::numeric_limits<std::int64_t>::max() ? origin : 0;
}

const record::VerdictRow* find_verdict(const RunData& data, std::string_view scope, std::string_view subject) {
    const auto found = std::find_if(data.verdicts.begin(), data.verdicts.end(), [&](const record::VerdictRow& row) {
        return row.scope == scope && (subject.empty() || row.subject == subject);
    });
    return found != data.verdicts.end() ? &*found : nullptr;
}

std::string subject_of(const record::InjectionRow& injection) {
    return injection.algorithm.empty() ? injection.name : fmt::format("{}/{}", injection.name, injection.algorithm);
}

std::optional<Spread> spread_of(const std::vector<std::int64_t>& values) {
    std::vector<double> positive;
    for (const std::int64_t value : values) {
        if (value > 0) {
            positive.push_back(static_cast<double>(value));
        }
    }
    if (positive.empty()) {
        return std::nullopt;
    }
    const auto [low, high] = std::minmax_element(positive.begin(), positive.end());
    const double middle = record::median(positive).value_or(0);
    return Spread{static_cast<std::int64_t>(*low), static_cast<std::int64_t>(middle), static_cast<std::int64_t>(*high)};
}

std::optional<Spread> send_goodput(const RunData& data) {
    std::vector<std::int64_t> values;
    for (const record::NicRow& nic : data.nics) {
        values.push_back(nic.send_goodput_bits_per_s);
    }
    return spread_of(values);
}

std::optional<Spread> receive_goodput(const RunData& data) {
    std::vector<std::int64_t> values;
    for (const record::NicRow& nic : data.nics) {
        values.push_back(nic.receive_goodput_bits_per_s);
    }
    return spread_of(values);
}

std::optional<Comparison> compare_optcc(const std::vector<record::PhaseStatistics>& statistics) {
    for (const std::string_view phase : {"degraded", "steady"}) {
        const record::PhaseStatistics* exclusive = record::find(statistics, "optcc", phase);
        const record::PhaseStatistics* shared = record::find(statistics, "optcc-shared", phase);
        if (exclusive == nullptr || shared == nullptr || !exclusive->time_median_ns || !shared->time_median_ns) {
            continue;
        }
        const bool shared_wins = *shared->time_median_ns < *exclusive->time_median_ns;
        const record::PhaseStatistics& faster = shared_wins ? *shared : *exclusive;
        const record::PhaseStatistics& slower = shared_wins ? *exclusive : *shared;
        return Comparison{std::string(phase),     faster.algorithm,
                          slower.algorithm,       *faster.time_median_ns,
                          *slower.time_median_ns, *slower.time_median_ns / *faster.time_median_ns};
    }
    return std::nullopt;
}

} // namespace railbreak::reports
