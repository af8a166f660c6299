#include <algorithm>

#include <fmt/format.h>

#include "harness/analyse/analyse.hpp"
#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::BoundRow;
using record::PhaseStatistics;
using record::RunData;
using record::VerdictRow;

namespace {

// While traffic is stopped no finite bound need exist.
bool may_lack_bound(const scenarios::Plan& plan, const PhaseStatistics& entry) {
    return entry.phase == to_string(scenarios::Phase::kDegraded) &&
           std::any_of(plan.faults.begin(), plan.faults.end(),
                       [](const scenarios::PlannedFault& fault) { return stops_traffic(fault.kind, fault.strength); });
}

// Bytes that the binding port moves take that many bits less than the bound says: a shaper that was idle before lets
// one burst through at once. It weighs in small messages only.
double burst_share(const RunData& data, const BoundRow& bound) {
    const double port_bytes = bound.time_over_n * static_cast<double>(data.run.bytes);
    return port_bytes > 0 ? std::min(static_cast<double>(kShaperBurstBytes) / port_bytes, 1.0) : 0.0;
}

VerdictRow judge_bound(const RunData& data, const BoundRow& bound, const PhaseStatistics& entry) {
    const double share = *entry.time_min_ns / static_cast<double>(bound.time_ns);
    const double limit = 1 - kBoundTolerance - burst_share(data, bound);
    const bool invalid = share < limit;
    VerdictRow row = make_row("bound", fmt::format("{}/{}", entry.algorithm, entry.phase),
                              invalid ? Verdict::kInvalid : Verdict::kPass,
                              fmt::format("fastest iteration takes {:.4f} of the fluid bound ({}){}", share, bound.name,
                                          invalid ? ": it beats the bound, so the testbed is wrong" : ""));
    row.measured = share;
    row.limit_min = limit;
    return row;
}

} // namespace

void judge_bounds(const RunData& data, const scenarios::Plan& plan, const std::vector<PhaseStatistics>& statistics,
                  std::vector<VerdictRow>& rows) {
    for (const PhaseStatistics& entry : statistics) {
        // Warm-up is never judged, nor are the tries that choose between the forms of an algorithm.
        if (entry.phase == to_string(scenarios::Phase::kWarmup) || entry.phase == "comparison" || !entry.time_min_ns) {
            continue;
        }
        const BoundRow* bound = record::binding_bound(data, entry.algorithm, entry.phase, "fluid");
        if (bound != nullptr) {
            rows.push_back(judge_bound(data, *bound, entry));
        } else if (!may_lack_bound(plan, entry)) {
            rows.push_back(make_row("bound", fmt::format("{}/{}", entry.algorithm, entry.phase), Verdict::kInconclusive,
                                    "no bound of the fluid port model was recorded"));
        }
    }
}

} // namespace railbreak::analyse
