#include "reports/facts.hpp"

#include <algorithm>
#include <limits>
#include <map>

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

std::optional<Comparison> compare_forms(const record::RunData& data) {
    std::map<std::string, std::vector<double>> times; // by schedule
    std::string algorithm;
    for (const record::IterationRow& row : data.iterations) {
        if (row.phase == "comparison" && row.error.empty() && row.duration_ns > 0) {
            algorithm = row.algorithm;
            times[row.schedule].push_back(static_cast<double>(row.duration_ns));
        }
    }
    if (times.size() < 2) {
        return std::nullopt;
    }
    std::vector<std::pair<double, std::string>> forms;
    for (auto& [schedule, values] : times) {
        forms.emplace_back(record::median(values).value_or(0), schedule);
    }
    std::sort(forms.begin(), forms.end());
    const auto& [faster_ns, faster] = forms.front();
    const auto& [slower_ns, slower] = forms.back();
    return Comparison{algorithm, faster, slower, faster_ns, slower_ns, slower_ns / faster_ns};
}

} // namespace railbreak::reports
