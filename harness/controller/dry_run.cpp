#include "harness/controller/dry_run.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "harness/controller/fault_order.hpp"
#include "harness/controller/run_begin.hpp"
#include "harness/controller/session.hpp"

namespace railbreak::controller {

using launch::Json;
using scenarios::PlannedFault;

namespace {

/// A folder for the database that every cluster is entered in; it goes with this object.
class ScratchFolder {
public:
    [[nodiscard]] static Result<ScratchFolder> make() {
        std::string pattern = (std::filesystem::temp_directory_path() / "railbreak-forecast-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            return fail_errno(ErrorKind::kHarness, "make the folder " + pattern, errno);
        }
        return ScratchFolder(pattern);
    }
    ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        if (!path_.empty()) {
            std::filesystem::remove_all(path_, ignored);
        }
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
    std::filesystem::path path_;
};

constexpr Nanoseconds kAnswerBudget = std::chrono::seconds(15);

std::string when_of(const PlannedFault& fault) {
    if (!fault.at_iteration) {
        return "during the degraded phase";
    }
    const std::string offset = fault.offset.count() == 0 ? "the start" : to_string(fault.offset);
    return fmt::format("at {} of degraded iteration {}{}", offset, *fault.at_iteration,
                       fault.duration ? ", for " + to_string(*fault.duration) : "");
}

/// What a rank does to itself needs no injector.
FaultForecast late_rank(const PlannedFault& fault, FaultForecast forecast) {
    forecast.target = fmt::format("rank {} of the host", fault.rank);
    forecast.mechanism = "the rank waits on a timer before it begins";
    forecast.realism = "process";
    forecast.data_path = "every path of the rank";
    forecast.changes.push_back(fmt::format("{} begins {} late", forecast.target, to_string(fault.strength.late)));
    forecast.undo.emplace_back("nothing: the next iteration begins on time");
    return forecast;
}

FaultForecast ask(Session& session, const PlannedFault& fault, const std::filesystem::path& folder) {
    FaultForecast forecast{
        .name = fault.name, .kind = std::string(to_string(fault.kind)), .host = fault.host, .when = when_of(fault)};
    if (fault.kind == scenarios::FaultKind::kLate) {
        return late_rank(fault, std::move(forecast));
    }
    if (is_off(fault)) {
        forecast.changes.emplace_back("nothing: a strength of 0 is off");
        return forecast;
    }
    const auto address_of = [&](std::int32_t host, std::int32_t nic) { return session.address(host, nic); };
    Result<Json> answer = session.agents().call(fault.host, "fault.preview", fault_order(fault, address_of, folder),
                                                Deadline::after(kAnswerBudget));
    if (!answer) {
        forecast.refusal = answer.error().to_line();
        return forecast;
    }
    forecast.target = answer->value("target", "");
    forecast.mechanism = answer->value("mechanism", "");
    forecast.realism = answer->value("realism", "");
    forecast.data_path = answer->value("data_path", "");
    forecast.changes = answer->value("changes", std::vector<std::string>());
    forecast.undo = answer->value("undo", std::vector<std::string>());
    return forecast;
}

} // namespace

bool Forecast::all_possible() const {
    return std::all_of(faults.begin(), faults.end(), [](const FaultForecast& fault) { return fault.refusal.empty(); });
}

Result<Forecast> dry_run_scenario(const scenarios::Scenario& scenario, const RunOptions& options, Progress& progress) {
    const std::filesystem::path folder = std::filesystem::absolute(options.database).parent_path();
    const Result<ScratchFolder> scratch = ScratchFolder::make();
    if (!scratch) {
        return fail(Error(scratch.error()));
    }
    RunOptions unrecorded = options;
    unrecorded.database = scratch->path() / "forecast.db";
    Result<Run> run = begin_run(scenario, unrecorded);
    if (!run) {
        return fail(std::move(run.error()));
    }
    Forecast forecast{.scenario = run->plan.scenario_name,
                      .plan_hash = run->plan.hash,
                      .seed = run->plan.seed,
                      .hosts = run->plan.cluster.hosts,
                      .lease = to_string(run->plan.lease)};
    progress.doing(fmt::format("building {} hosts", run->plan.cluster.hosts));
    Result<std::unique_ptr<Session>> session =
        Session::open(run->plan,
                      {.executable = options.executable,
                       .run_id = run->run_id,
                       .token_hex = run->token_hex,
                       .fill_seed = run->plan.seed},
                      run->recorder, run->row_id, [](std::int32_t, const launch::RpcMessage&) {});
    if (!session) {
        return fail(std::move(session.error()));
    }
    for (const PlannedFault& fault : run->plan.faults) {
        forecast.faults.push_back(ask(**session, fault, folder));
    }
    progress.doing("tearing down");
    const std::vector<Error> left = (*session)->close();
    progress.end_line();
    return left.empty() ? Result<Forecast>(std::move(forecast)) : fail(Error(left.front()));
}

} // namespace railbreak::controller
