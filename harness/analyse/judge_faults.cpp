#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.hpp"
#include "harness/analyse/analyse.hpp"
#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::InjectionRow;
using record::RunData;
using record::VerdictRow;

namespace {

std::string subject_of(const InjectionRow& row) {
    return row.algorithm.empty() ? row.name : fmt::format("{}/{}", row.name, row.algorithm);
}

// "h3 rail0", by number where the cluster's rows are missing.
std::string where_of(const RunData& data, const InjectionRow& row) {
    const auto host =
        std::find_if(data.hosts.begin(), data.hosts.end(), [&](const auto& h) { return h.host == row.host; });
    const auto nic = std::find_if(data.nics.begin(), data.nics.end(),
                                  [&](const auto& n) { return n.host == row.host && n.nic == row.nic; });
    const std::string host_name = host != data.hosts.end() ? host->name : fmt::format("host {}", row.host);
    if (row.rank >= 0) {
        return fmt::format("{} rank {}", host_name, row.rank);
    }
    if (row.nic < 0) {
        return fmt::format("the disk of the run's database on {}", host_name);
    }
    return fmt::format("{} {}", host_name, nic != data.nics.end() ? nic->name : fmt::format("NIC {}", row.nic));
}

// Acted in a simulation only.
bool pretended(const InjectionRow& row) {
    return row.realism == "pretended";
}

bool refused(const InjectionRow& row) {
    return row.error.starts_with(kRefusedMark);
}

std::string with_error(std::string reason, const InjectionRow& row) {
    return row.error.empty() ? reason : fmt::format("{}: {}", reason, row.error);
}

std::string rate(double bits_per_s) {
    return railbreak::to_string(
        BitRate::bits_per_s(static_cast<std::uint64_t>(std::llround(std::max(bits_per_s, 0.0)))));
}

// Whether another fault of the plan acts on the packets of the same NIC, or on those that leave through it.
bool disturbed(const scenarios::PlannedFault& cap, const scenarios::Plan& plan) {
    return std::any_of(plan.faults.begin(), plan.faults.end(), [&](const scenarios::PlannedFault& fault) {
        return target_kind(fault.kind) == scenarios::TargetKind::kNic && fault.kind != scenarios::FaultKind::kCap &&
               !is_off(fault) && fault.host == cap.host &&
               (fault.nic == cap.nic ||
                (fault.kind == scenarios::FaultKind::kReroute && fault.strength.via_nic == cap.nic));
    });
}

// The least share of what a cap leaves that must be seen.
double least_share(const InjectionRow& row, const scenarios::Plan& plan) {
    const auto fault = std::find_if(plan.faults.begin(), plan.faults.end(),
                                    [&](const scenarios::PlannedFault& f) { return f.id == row.fault; });
    if (fault == plan.faults.end()) {
        return 1 - kGoodputTolerance;
    }
    if (disturbed(*fault, plan)) {
        return 0; // what is lost, delayed or goes another way is not seen
    }
    return fault->at_iteration ? kCarriedShareMin : 1 - kGoodputTolerance;
}

// A cap must be seen as goodput: in each direction that it acts on, and near what the cap leaves for payload. Both ways
// off are doubts: too fast means that the cap does not act, too slow that something else does.
VerdictRow judge_cap(const InjectionRow& row, const scenarios::Plan& plan) {
    struct Side {
        std::string_view name;
        std::int64_t measured;
    };
    std::vector<Side> sides;
    if (row.direction != "receive") {
        sides.push_back({"send", row.measured_send_bits_per_s});
    }
    if (row.direction != "send") {
        sides.push_back({"receive", row.measured_receive_bits_per_s});
    }
    const double wanted = static_cast<double>(row.wanted_rate_bits_per_s) * payload_share(plan.cluster.mtu_bytes);
    VerdictRow verdict = make_row("fault", subject_of(row), Verdict::kPass, "");
    verdict.limit_min = wanted * least_share(row, plan);
    verdict.limit_max = wanted * (1 + kGoodputTolerance);
    std::string figures;
    for (const Side& side : sides) {
        const auto measured = static_cast<double>(side.measured);
        if (side.measured <= 0) {
            verdict.verdict = to_string(Verdict::kInconclusive);
            verdict.reason = fmt::format("fault not seen in goodput: {} was not measured", side.name);
            return verdict;
        }
        if (!verdict.measured || std::fabs(measured - wanted) > std::fabs(*verdict.measured - wanted)) {
            verdict.measured = measured;
        }
        figures += fmt::format("{}{} {}", figures.empty() ? "" : ", ", side.name, rate(measured));
    }
    const bool seen = *verdict.measured >= *verdict.limit_min && *verdict.measured <= *verdict.limit_max;
    verdict.verdict = to_string(seen ? Verdict::kPass : Verdict::kInconclusive);
    verdict.reason = fmt::format("{}: {} where a cap of {} leaves {} (taken as seen from {} to {})",
                                 seen ? "seen in goodput" : "fault not seen in goodput", figures,
                                 rate(static_cast<double>(row.wanted_rate_bits_per_s)), rate(wanted),
                                 rate(*verdict.limit_min), rate(*verdict.limit_max));
    return verdict;
}

VerdictRow judge(const InjectionRow& row, const scenarios::Plan& plan) {
    const auto verdict = [&](Verdict v, std::string reason) {
        return make_row("fault", subject_of(row), v, with_error(std::move(reason), row));
    };
    if (refused(row)) {
        return make_row("fault", subject_of(row), Verdict::kRefused, row.error);
    }
    if (row.ordered_at == 0) {
        return verdict(Verdict::kInconclusive, "the fault was never ordered");
    }
    if (row.applied_at == 0) {
        return verdict(Verdict::kInconclusive, "the fault was ordered but not applied");
    }
    if (row.observed_at == 0) {
        return verdict(Verdict::kInconclusive, "the fault was applied but never observed");
    }
    if (pretended(row)) {
        return make_row("fault", subject_of(row), Verdict::kPass,
                        "pretended: acted in the simulation, nothing real was touched");
    }
    if (row.kind == to_string(scenarios::FaultKind::kCap)) {
        return judge_cap(row, plan);
    }
    return make_row("fault", subject_of(row), Verdict::kPass,
                    fmt::format("observed {} after the order",
                                railbreak::to_string(Nanoseconds(row.observed_at - row.ordered_at))));
}

// Something else changed on the host: a doubt, unless an expectation says that so much may change.
void judge_collateral(const InjectionRow& row, const scenarios::Plan& plan, std::vector<VerdictRow>& rows) {
    const Collateral collateral = collateral_of(row);
    if (collateral.sentences.empty()) {
        return;
    }
    const std::optional<double> allowed = allowed_collateral(plan, row);
    const bool expected =
        allowed && !collateral.unknown && static_cast<double>(collateral.interfaces.size()) <= *allowed;
    rows.push_back(make_row(
        "fault", subject_of(row) + " collateral", expected ? Verdict::kPass : Verdict::kInconclusive,
        fmt::format("{}: {}",
                    expected ? "something else changed on the host meanwhile, as much as is expected"
                             : "something else changed on the host meanwhile, so what was measured may come from that",
                    fmt::join(collateral.sentences, "; "))));
}

} // namespace

double payload_share(std::int32_t mtu_bytes) {
    constexpr double kHeaders = 20 + 20 + 12; // IPv4, TCP, timestamps
    constexpr double kEthernet = 14;
    return (mtu_bytes - kHeaders) / (mtu_bytes + kEthernet);
}

void judge_faults(const RunData& data, const scenarios::Plan& plan, std::vector<VerdictRow>& rows) {
    for (const scenarios::PlannedFault& fault : plan.faults) {
        for (const std::string& algorithm : plan.workload.labels()) {
            const bool there =
                std::any_of(data.injections.begin(), data.injections.end(), [&](const InjectionRow& row) {
                    return row.fault == fault.id && row.algorithm == algorithm;
                });
            if (!there && is_off(fault)) {
                rows.push_back(make_row("fault", fmt::format("{}/{}", fault.name, algorithm), Verdict::kPass,
                                        "off: a strength of 0 does nothing, and nothing was made"));
            } else if (!there) {
                rows.push_back(make_row("fault", fmt::format("{}/{}", fault.name, algorithm), Verdict::kInconclusive,
                                        "the fault was never ordered"));
            }
        }
    }
    for (const InjectionRow& row : data.injections) {
        rows.push_back(judge(row, plan));
        judge_collateral(row, plan, rows);
    }
}

void judge_teardown(const RunData& data, std::vector<VerdictRow>& rows) {
    const std::size_t before = rows.size();
    std::size_t restored = 0;
    for (const InjectionRow& row : data.injections) {
        if (row.ordered_at == 0 || refused(row) || pretended(row)) {
            continue; // nothing was touched
        }
        if (row.restored_at > 0) {
            ++restored;
            continue;
        }
        const std::string what = fmt::format("{} was not verified as restored", where_of(data, row));
        rows.push_back(make_row("teardown", subject_of(row), Verdict::kFail,
                                with_error(what, row) + "; run railbreak recover on that host"));
    }
    for (const record::EventRow& event : data.events) {
        if (event.kind == fmt::format("stopped_{}", to_string(ErrorKind::kTeardown))) {
            rows.push_back(make_row("teardown", event.source, Verdict::kFail, event.text));
        }
    }
    if (rows.size() == before && restored > 0) {
        rows.push_back(
            make_row("teardown", "", Verdict::kPass, fmt::format("all {} injections verified as restored", restored)));
    }
}

} // namespace railbreak::analyse
