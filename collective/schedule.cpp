#include "collective/schedule.hpp"

namespace railbreak::collective {

void Schedule::send_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const {
    for (Step& step : steps) {
        step = send_step(rank, lane, first++);
    }
}

void Schedule::receive_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const {
    for (Step& step : steps) {
        step = receive_step(rank, lane, first++);
    }
}

bool same_plan(const Schedule& a, const Schedule& b) {
    if (a.name() != b.name() || a.ranks() != b.ranks() || a.lanes() != b.lanes() || a.elements() != b.elements()) {
        return false;
    }
    for (Rank rank = 0; rank < a.ranks(); ++rank) {
        for (Lane lane = 0; lane < a.lanes(); ++lane) {
            if (a.port(rank, lane) != b.port(rank, lane)) {
                return false;
            }
        }
    }
    return true;
}

std::string_view to_string(Stage stage) {
    switch (stage) {
    case Stage::kReduceScatter: return "reduce-scatter";
    case Stage::kUpload: return "upload";
    case Stage::kDownload: return "download";
    case Stage::kAllGather: return "allgather";
    case Stage::kStarUp: return "star-up";
    case Stage::kStarDown: return "star-down";
    case Stage::kStarExchange: return "star-exchange";
    case Stage::kLocalReduce: return "local-reduce";
    case Stage::kLocalGather: return "local-gather";
    case Stage::kReduce: return "reduce";
    case Stage::kBroadcast: return "broadcast";
    case Stage::kExchange: return "exchange";
    case Stage::kProbe: return "probe";
    }
    return "unknown";
}

} // namespace railbreak::collective
