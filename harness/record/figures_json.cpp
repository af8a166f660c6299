#include "harness/record/figures_json.hpp"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace railbreak::record {

using Json = nlohmann::ordered_json;

namespace {

using Number = std::optional<double> PhaseStatistics::*;
constexpr std::array<std::pair<const char*, Number>, 9> kNumbers{{
    {"time_min_ns", &PhaseStatistics::time_min_ns},
    {"time_median_ns", &PhaseStatistics::time_median_ns},
    {"time_max_ns", &PhaseStatistics::time_max_ns},
    {"algbw_bytes_per_s", &PhaseStatistics::algbw_bytes_per_s},
    {"busbw_bytes_per_s", &PhaseStatistics::busbw_bytes_per_s},
    {"vs_healthy", &PhaseStatistics::vs_healthy},
    {"vs_steady", &PhaseStatistics::vs_steady},
    {"overhead_exclusive", &PhaseStatistics::overhead_exclusive},
    {"overhead_fluid", &PhaseStatistics::overhead_fluid},
}};
using Count = std::int32_t PhaseStatistics::*;
constexpr std::array<std::pair<const char*, Count>, 3> kCounts{{
    {"iterations", &PhaseStatistics::iterations},
    {"failed", &PhaseStatistics::failed},
    {"wrong", &PhaseStatistics::wrong},
}};

std::string text_at(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

} // namespace

std::string figures_json(const std::vector<PhaseStatistics>& figures) {
    Json list = Json::array();
    for (const PhaseStatistics& entry : figures) {
        if (entry.phase == "comparison") {
            continue;
        }
        Json object{{"algorithm", entry.algorithm}, {"phase", entry.phase}};
        for (const auto& [key, count] : kCounts) {
            object[key] = entry.*count;
        }
        for (const auto& [key, number] : kNumbers) {
            if (entry.*number) {
                object[key] = *(entry.*number);
            }
        }
        list.push_back(std::move(object));
    }
    return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<PhaseStatistics> parse_figures(std::string_view json) {
    std::vector<PhaseStatistics> figures;
    const Json list = Json::parse(json, nullptr, false);
    if (!list.is_array()) {
        return figures;
    }
    for (const Json& object : list) {
        if (!object.is_object()) {
            continue;
        }
        PhaseStatistics& entry = figures.emplace_back();
        entry.algorithm = text_at(object, "algorithm");
        entry.phase = text_at(object, "phase");
        for (const auto& [key, count] : kCounts) {
            const auto found = object.find(key);
            entry.*count = found != object.end() && found->is_number_integer() ? found->get<std::int32_t>() : 0;
        }
        for (const auto& [key, number] : kNumbers) {
            const auto found = object.find(key);
            if (found != object.end() && found->is_number()) {
                entry.*number = found->get<double>();
            }
        }
    }
    return figures;
}

} // namespace railbreak::record
