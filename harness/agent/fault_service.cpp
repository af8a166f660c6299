#include "harness/agent/fault_service.hpp"

#include <fmt/format.h>

#include "harness/agent/collateral.hpp"
#include "harness/agent/fault_json.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/real_host_ops.hpp"

namespace railbreak::agent {

using injectors::FaultEvidence;
using injectors::FaultKeeper;
using injectors::FaultRequest;
using launch::field;
using launch::Json;

namespace {

/// The guard's copy of the lease need not be renewed with every frame that arrives here.
constexpr int kRenewalsPerLease = 8;

class KeeperService final : public FaultService {
public:
    KeeperService(std::unique_ptr<injectors::HostOps> ops, FaultKeeper keeper, Nanoseconds lease)
        : ops_(std::move(ops)), keeper_(std::move(keeper)), collateral_(*ops_), lease_(lease) {}

    [[nodiscard]] Json opening_report() const override {
        return {{"journal", keeper_.journal_path()}, {"guard_pid", keeper_.guard_pid()}};
    }
    [[nodiscard]] Result<Json> handle(std::string_view method, const Json& params) override;
    [[nodiscard]] Result<Json> revert_all() override;
    [[nodiscard]] Result<Json> close() override;
    void renew_lease() override;
    [[nodiscard]] int guard_fd() const override { return guard_known_ ? keeper_.guard_fd() : -1; }
    [[nodiscard]] Result<void> check_guard() override { return keeper_.check_guard(); }
    void forget_guard() override { guard_known_ = false; }

private:
    [[nodiscard]] Result<Json> apply(const FaultRequest& request);
    [[nodiscard]] Result<Json> preview(const FaultRequest& request);
    [[nodiscard]] Result<Json> revert(std::int32_t id);

    std::unique_ptr<injectors::HostOps> ops_; ///< outlives keeper_
    FaultKeeper keeper_;
    CollateralWatch collateral_;
    Nanoseconds lease_;
    Nanoseconds last_renewal_{0};
    bool guard_known_ = true;
};

Result<Json> KeeperService::handle(std::string_view method, const Json& params) {
    if (method == "fault.apply") {
        if (!guard_known_) {
            return fail(ErrorKind::kRefused, "the guard of this host has ended; no fault may be in force without one");
        }
        Result<FaultRequest> request = fault_request_from_json(params);
        return request ? apply(*request) : Result<Json>(fail(std::move(request.error())));
    }
    if (method == "fault.preview") {
        Result<FaultRequest> request = fault_request_from_json(params);
        return request ? preview(*request) : Result<Json>(fail(std::move(request.error())));
    }
    if (method == "fault.revert") {
        const Result<std::int32_t> id = field<std::int32_t>(params, "id");
        return id ? revert(*id) : Result<Json>(fail(Error(id.error())));
    }
    if (method == "fault.revert_all") {
        return revert_all();
    }
    return fail(ErrorKind::kHarness, fmt::format("the agent has no method \"{}\"", method));
}

Result<Json> KeeperService::apply(const FaultRequest& request) {
    collateral_.begin(request);
    Result<FaultEvidence> evidence = keeper_.apply(request);
    if (!evidence) {
        collateral_.forget(request.id);
        return fail(std::move(evidence.error()));
    }
    Json json = to_json(*evidence);
    json["collateral"] = collateral_.changes(request.id);
    return json;
}

/// What apply() would do, told and not done.
Result<Json> KeeperService::preview(const FaultRequest& request) {
    Result<injectors::FaultPreview> preview = keeper_.preview(request);
    if (!preview) {
        return fail(std::move(preview.error()));
    }
    return Json{{"target", to_string(preview->target)}, {"mechanism", preview->mechanism},
                {"realism", preview->realism},          {"data_path", preview->data_path},
                {"changes", preview->steps.changes},    {"undo", preview->steps.undo}};
}

Result<Json> KeeperService::revert(std::int32_t id) {
    Result<FaultEvidence> evidence = keeper_.revert(id);
    if (!evidence) {
        return fail(std::move(evidence.error()));
    }
    Json json = to_json(*evidence);
    json["collateral"] = collateral_.changes(id);
    collateral_.forget(id);
    return json;
}

Result<Json> KeeperService::revert_all() {
    Result<std::vector<FaultEvidence>> evidence = keeper_.revert_all();
    if (!evidence) {
        return fail(std::move(evidence.error()));
    }
    Json list = Json::array();
    for (const FaultEvidence& one : *evidence) {
        list.push_back(to_json(one));
    }
    return list;
}

Result<Json> KeeperService::close() {
    Result<Json> reverted = revert_all();
    Result<void> closed = keeper_.close();
    if (reverted && !closed && guard_known_) {
        return fail(std::move(closed.error()));
    }
    return reverted;
}

void KeeperService::renew_lease() {
    const Nanoseconds now = monotonic_now();
    if (guard_known_ && now - last_renewal_ >= lease_ / kRenewalsPerLease) {
        last_renewal_ = now;
        (void)keeper_.renew_lease(); // a guard that is gone shows itself on guard_fd()
    }
}

} // namespace

Result<std::unique_ptr<FaultService>> FaultService::open(const Json& init, const std::string& executable) {
    const Result<std::string> run_id = field<std::string>(init, "run_id");
    const Result<std::string> host_name = field<std::string>(init, "host_name");
    const Result<std::int64_t> lease_ns = field<std::int64_t>(init, "lease_ns");
    const auto protected_nics = field<std::vector<std::string>>(init, "protected_nics");
    if (!run_id || !host_name || !lease_ns || !protected_nics) {
        return fail(ErrorKind::kHarness, "init lacks run_id, host_name, lease_ns or protected_nics");
    }
    Result<std::unique_ptr<injectors::HostOps>> ops = injectors::open_host_ops();
    if (!ops) {
        return fail(std::move(ops.error()));
    }
    Result<FaultKeeper> keeper = FaultKeeper::open({.run_id = *run_id,
                                                    .host_name = *host_name,
                                                    .lease = Nanoseconds(*lease_ns),
                                                    .protected_nics = *protected_nics,
                                                    .guard = {.executable = executable}},
                                                   **ops);
    if (!keeper) {
        return fail(std::move(keeper.error()));
    }
    return std::unique_ptr<FaultService>(
        new KeeperService(std::move(*ops), std::move(*keeper), Nanoseconds(*lease_ns)));
}

} // namespace railbreak::agent
