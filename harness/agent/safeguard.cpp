#include "harness/agent/safeguard.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/state_folder.hpp"

namespace railbreak::agent {

using launch::field;
using launch::Json;

namespace {

/// Adds a policy, unless the very same was added already: the controller of a lab reads the file that its agents read.
Result<void> add_policy(std::vector<scenarios::SitePolicy>& policies,
                        scenarios::Checked<scenarios::SitePolicy> policy) {
    if (!policy) {
        return fail(scenarios::to_error(policy.error()));
    }
    const bool known = std::ranges::any_of(
        policies, [&](const auto& each) { return each.source == policy->source && each.text == policy->text; });
    if (!known) {
        policies.push_back(std::move(*policy));
    }
    return {};
}

Result<std::vector<scenarios::SitePolicy>> read_policies(const Json& init) {
    std::vector<scenarios::SitePolicy> policies;
    for (const Json& each : init.value("policies", Json::array())) {
        const Result<std::string> source = field<std::string>(each, "source");
        const Result<std::string> text = field<std::string>(each, "text");
        if (!source || !text) {
            return fail(Error(source ? text.error() : source.error()));
        }
        if (auto added = add_policy(policies, scenarios::load_policy(*text, *source)); !added) {
            return fail(std::move(added.error()));
        }
    }
    // One that may not be looked at is an Error: it holds all the same.
    if (::access(kHostPolicy, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        if (auto added = add_policy(policies, scenarios::load_policy_file(kHostPolicy)); !added) {
            return fail(std::move(added.error()));
        }
    }
    return policies;
}

std::vector<std::string> nics_of(const Json& order) {
    std::vector<std::string> nics;
    for (const char* key : {"nic", "via_nic"}) {
        if (Result<std::string> nic = field<std::string>(order, key)) {
            nics.push_back(std::move(*nic));
        }
    }
    return nics;
}

Error halt_error(const std::string& why) {
    return Error(ErrorKind::kRefused, fmt::format("railbreak is halted on this host: {}", why))
        .advise("railbreak halt --release allows runs again.");
}

} // namespace

Safeguard::Safeguard(std::string host_name, std::string state_folder, std::vector<scenarios::SitePolicy> policies)
    : host_name_(std::move(host_name)), state_folder_(std::move(state_folder)), policies_(std::move(policies)),
      halt_watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (halt_watch_.valid() &&
        ::inotify_add_watch(halt_watch_.get(), state_folder_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
        halt_watch_.reset();
    }
}

Result<std::unique_ptr<Safeguard>> Safeguard::open(const Json& init) {
    const Result<std::string> run_id = field<std::string>(init, "run_id");
    const Result<std::string> host_name = field<std::string>(init, "host_name");
    const Result<std::int64_t> lease_ns = field<std::int64_t>(init, "lease_ns");
    if (!run_id || !host_name || !lease_ns) {
        return fail(ErrorKind::kHarness, "init lacks run_id, host_name or lease_ns");
    }
    const bool with_faults = init.value("with_faults", true);
    auto policies = read_policies(init);
    auto ops = injectors::open_host_ops();
    if (!policies || !ops) {
        return fail(policies ? std::move(ops.error()) : std::move(policies.error()));
    }
    const auto folder = injectors::default_journal_folder(**ops);
    const auto netns = (*ops)->netns();
    if (!folder || !netns) {
        return fail(Error(folder ? netns.error() : folder.error()));
    }
    std::unique_ptr<Safeguard> safeguard(
        new Safeguard(*host_name, injectors::state_folder_of(*folder), std::move(*policies)));
    if (const auto why = safeguard->halted()) {
        return fail(halt_error(*why));
    }
    injectors::HostOwner owner{.run_id = *run_id,
                               .host_name = *host_name,
                               .user = injectors::current_user(),
                               .since = realtime_now(),
                               .agent = injectors::current_process()};
    safeguard->with_faults_ = with_faults;
    for (const scenarios::SitePolicy& policy : safeguard->policies_) {
        auto allowed = with_faults ? scenarios::check_lease(policy, Nanoseconds(*lease_ns)) : Result<void>();
        if (!allowed) {
            return fail(std::move(allowed.error()));
        }
    }
    auto lock = with_faults ? injectors::HostLock::take(safeguard->state_folder_, *netns, std::move(owner))
                            : injectors::HostLock::note_presence(safeguard->state_folder_, *netns, std::move(owner));
    if (!lock) {
        return fail(std::move(lock.error()));
    }
    safeguard->lock_.emplace(std::move(*lock));
    return safeguard;
}

void Safeguard::note_keeper(std::int32_t guard_pid, const std::string& journal) {
    if (lock_) {
        (void)lock_->note(guard_pid, journal); // whoever reads it finds the agent all the same
    }
}

std::optional<std::string> Safeguard::halted() {
    std::array<char, 4096> news{};
    while (halt_watch_.valid() && ::read(halt_watch_.get(), news.data(), news.size()) > 0) {
    }
    return injectors::halted(state_folder_);
}

Result<void> Safeguard::may_apply(const Json& order) {
    if (!with_faults_) {
        return fail(ErrorKind::kRefused, "this run was announced as one without faults");
    }
    if (const auto why = halted()) {
        return fail(halt_error(*why));
    }
    const scenarios::PolicyOrder asked{field<std::string>(order, "kind").value_or(""), host_name_, nics_of(order),
                                       watch_.nics()};
    const scenarios::WallTime now = scenarios::local_time(realtime_now());
    for (const scenarios::SitePolicy& policy : policies_) {
        if (auto allowed = scenarios::check_order(policy, asked, now); !allowed) {
            return allowed;
        }
    }
    return {};
}

std::optional<Nanoseconds> Safeguard::longest_fault() const {
    std::optional<Nanoseconds> longest;
    for (const scenarios::SitePolicy& policy : policies_) {
        if (policy.max_duration) {
            longest = std::min(longest.value_or(Nanoseconds::max()), policy.max_duration->value);
        }
    }
    return longest;
}

void Safeguard::applied(const Json& order) {
    watch_.applied(field<std::int32_t>(order, "id").value_or(0), nics_of(order), monotonic_now(), longest_fault());
}

} // namespace railbreak::agent
