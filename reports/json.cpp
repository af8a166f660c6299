#include "reports/json.hpp"

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"

namespace railbreak::reports {

using record::RunData;
using Json = nlohmann::ordered_json;

namespace {

Json number(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

// 0 means "did not happen" or "not measured" in the rows; null says it in JSON.
Json or_null(std::int64_t value) {
    return value != 0 ? Json(value) : Json(nullptr);
}

Json time_or_null(std::int64_t realtime_ns) {
    return realtime_ns != 0 ? Json(to_iso8601(Nanoseconds(realtime_ns))) : Json(nullptr);
}

Json offset(std::int64_t at, std::int64_t origin) {
    return at != 0 ? Json(at - origin) : Json(nullptr);
}

// JSON text of a row as JSON; as a plain string where it does not parse.
Json embedded(const std::string& text) {
    if (text.empty()) {
        return Json::object();
    }
    Json parsed = Json::parse(text, nullptr, false);
    return parsed.is_discarded() ? Json(text) : parsed;
}

Json spread(const std::optional<Spread>& value) {
    return value ? Json{{"min_bits_per_s", value->min},
                        {"median_bits_per_s", value->median},
                        {"max_bits_per_s", value->max}}
                 : Json(nullptr);
}

Json run_part(const RunData& data) {
    const record::RunRow& run = data.run;
    return Json{{"run_id", run.run_id},
                {"scenario_name", run.scenario_name},
                {"plan_hash", run.plan_hash},
                {"seed", std::to_string(run.seed)},
                {"backend", run.backend},
                {"railbreak_version", run.version},
                {"command_line", run.command_line},
                {"environment", embedded(run.environment_json)},
                {"started_at", time_or_null(run.started_realtime_ns)},
                {"finished_at", time_or_null(run.finished_realtime_ns)}};
}

Json cluster_part(const RunData& data) {
    Json hosts = Json::array();
    for (const record::HostRow& host : data.hosts) {
        Json nics = Json::array();
        for (const record::NicRow& nic : data.nics) {
            if (nic.host == host.host) {
                nics.push_back({{"nic", nic.nic},
                                {"name", nic.name},
                                {"mac", nic.mac},
                                {"address", nic.address},
                                {"line_rate_bits_per_s", nic.line_rate_bits_per_s},
                                {"send_goodput_bits_per_s", or_null(nic.send_goodput_bits_per_s)},
                                {"receive_goodput_bits_per_s", or_null(nic.receive_goodput_bits_per_s)}});
            }
        }
        hosts.push_back({{"host", host.host},
                         {"name", host.name},
                         {"boot_id", host.boot_id},
                         {"clock_offset_ns", host.clock_offset_ns},
                         {"clock_error_ns", host.clock_error_ns},
                         {"nics", std::move(nics)}});
    }
    return Json{{"host_count", data.run.hosts},
                {"rank_count", record::rank_count(data)},
                {"line_rate_bits_per_s", data.run.rate_bits_per_s},
                {"vector_bytes", data.run.bytes},
                {"dtype", data.run.dtype},
                {"healthy_send_goodput", spread(send_goodput(data))},
                {"healthy_receive_goodput", spread(receive_goodput(data))},
                {"hosts", std::move(hosts)}};
}

Json phases_part(const RunData& data, const std::vector<record::PhaseStatistics>& statistics) {
    Json phases = Json::array();
    for (const record::PhaseStatistics& entry : statistics) {
        phases.push_back({{"algorithm", entry.algorithm},
                          {"phase", entry.phase},
                          {"schedules", schedules_of(data, entry.algorithm, entry.phase)},
                          {"iterations", entry.iterations},
                          {"failed", entry.failed},
                          {"wrong", entry.wrong},
                          {"time_min_ns", number(entry.time_min_ns)},
                          {"time_median_ns", number(entry.time_median_ns)},
                          {"time_max_ns", number(entry.time_max_ns)},
                          {"algbw_bytes_per_s", number(entry.algbw_bytes_per_s)},
                          {"busbw_bytes_per_s", number(entry.busbw_bytes_per_s)},
                          {"vs_healthy", number(entry.vs_healthy)},
                          {"vs_steady", number(entry.vs_steady)},
                          {"overhead_exclusive", number(entry.overhead_exclusive)},
                          {"overhead_fluid", number(entry.overhead_fluid)}});
    }
    return phases;
}

Json iterations_part(const RunData& data, std::int64_t origin) {
    Json iterations = Json::array();
    for (const record::IterationRow& row : data.iterations) {
        iterations.push_back({{"algorithm", row.algorithm},
                              {"phase", row.phase},
                              {"iteration", row.iteration},
                              {"schedule", row.schedule},
                              {"start_offset_ns", offset(row.started_at, origin)},
                              {"duration_ns", or_null(row.duration_ns)},
                              {"expected_digest", row.expected_digest},
                              {"correct", row.correct},
                              {"error", row.error}});
    }
    return iterations;
}

Json bounds_part(const RunData& data) {
    Json bounds = Json::array();
    for (const record::BoundRow& row : data.bounds) {
        bounds.push_back({{"algorithm", row.algorithm},
                          {"phase", row.phase},
                          {"model", row.model},
                          {"name", row.name},
                          {"branch", row.branch},
                          {"slowdown", row.slowdown},
                          {"time_over_n", row.time_over_n},
                          {"time_ns", or_null(row.time_ns)}});
    }
    return bounds;
}

Json injections_part(const RunData& data, std::int64_t origin) {
    Json injections = Json::array();
    for (const record::InjectionRow& row : data.injections) {
        injections.push_back({{"fault", row.fault},
                              {"name", row.name},
                              {"kind", row.kind},
                              {"algorithm", row.algorithm},
                              {"host", row.host},
                              {"nic", row.nic >= 0 ? Json(row.nic) : Json()},
                              {"rank", row.rank >= 0 ? Json(row.rank) : Json()},
                              {"direction", row.direction},
                              {"params", embedded(row.params_json)},
                              {"wanted_rate_bits_per_s", or_null(row.wanted_rate_bits_per_s)},
                              {"measured_send_bits_per_s", or_null(row.measured_send_bits_per_s)},
                              {"measured_receive_bits_per_s", or_null(row.measured_receive_bits_per_s)},
                              {"ordered_offset_ns", offset(row.ordered_at, origin)},
                              {"applied_offset_ns", offset(row.applied_at, origin)},
                              {"observed_offset_ns", offset(row.observed_at, origin)},
                              {"reverted_offset_ns", offset(row.reverted_at, origin)},
                              {"restored_offset_ns", offset(row.restored_at, origin)},
                              {"mechanism", row.mechanism},
                              {"realism", row.realism},
                              {"data_path", row.data_path},
                              {"observation", embedded(row.observation_json)},
                              {"collateral", embedded(row.collateral_json)},
                              {"error", row.error}});
    }
    return injections;
}

Json events_part(const RunData& data, std::int64_t origin) {
    Json events = Json::array();
    for (const record::EventRow& row : data.events) {
        events.push_back({{"offset_ns", offset(row.at, origin)},
                          {"level", row.level},
                          {"source", row.source},
                          {"kind", row.kind},
                          {"text", row.text},
                          {"facts", embedded(row.facts_json)}});
    }
    return events;
}

Json verdicts_part(const RunData& data) {
    Json verdicts = Json::array();
    for (const record::VerdictRow& row : data.verdicts) {
        verdicts.push_back({{"scope", row.scope},
                            {"subject", row.subject},
                            {"verdict", row.verdict},
                            {"reason", row.reason},
                            {"measured", number(row.measured)},
                            {"limit_min", number(row.limit_min)},
                            {"limit_max", number(row.limit_max)}});
    }
    return verdicts;
}

Json comparison_part(const RunData& data) {
    Json comparisons = Json::array();
    for (const Comparison& comparison : compare_forms(data)) {
        Json forms = Json::array();
        for (const Form& form : comparison.forms) {
            forms.push_back({{"schedule", form.schedule},
                             {"time_median_ns", form.time_median_ns},
                             {"over_fastest", form.over_fastest}});
        }
        comparisons.push_back({{"algorithm", comparison.algorithm},
                               {"forms", std::move(forms)},
                               {"kept", comparison.kept.empty() ? Json(nullptr) : Json(comparison.kept)}});
    }
    return comparisons;
}

} // namespace

std::string run_json(const RunData& data) {
    const std::vector<record::PhaseStatistics> statistics = record::phase_statistics(data);
    const std::int64_t origin = origin_ns(data);
    const record::VerdictRow* run = find_verdict(data, "run");
    Json report;
    report["schema"] = "railbreak-run-report";
    report["version"] = 1;
    report["verdict"] = run != nullptr ? Json(run->verdict) : Json(nullptr);
    report["reason"] = run != nullptr ? run->reason : not_ended(data);
    report["run"] = run_part(data);
    report["cluster"] = cluster_part(data);
    report["phases"] = phases_part(data, statistics);
    report["comparison"] = comparison_part(data);
    report["bounds"] = bounds_part(data);
    report["injections"] = injections_part(data, origin);
    report["verdicts"] = verdicts_part(data);
    report["iterations"] = iterations_part(data, origin);
    report["events"] = events_part(data, origin);
    return json_text(report);
}

std::string list_json(const std::vector<record::RunSummary>& runs) {
    Json list = Json::array();
    for (const record::RunSummary& run : runs) {
        list.push_back({{"run_id", run.run_id},
                        {"scenario_name", run.scenario_name},
                        {"plan_hash", run.plan_hash},
                        {"seed", std::to_string(run.seed)},
                        {"backend", run.backend},
                        {"host_count", run.hosts},
                        {"started_at", time_or_null(run.started_realtime_ns)},
                        {"finished_at", time_or_null(run.finished_realtime_ns)},
                        {"verdict", run.verdict.empty() ? Json(nullptr) : Json(run.verdict)},
                        {"reason", run.reason},
                        {"teardown_problem", run.teardown_problem}});
    }
    Json report;
    report["schema"] = "railbreak-run-list";
    report["version"] = 1;
    report["runs"] = std::move(list);
    return json_text(report);
}

} // namespace railbreak::reports
