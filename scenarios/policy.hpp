// The site policy: what the people who own the hosts allow, in a file of their own beside every scenario. It limits how
// much of a cluster a run may break, which faults, when and for how long, and names what is never touched.
//
// The controller checks a whole plan before anything is started; every agent checks each order again, for what it can
// see itself. Nothing on a command line loosens a policy: several policies hold together, each of them whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// A value and where it stands in the file, for refusals that name their rule.
template <class T> struct Ruled {
    T value{};
    Position at;
};

/// A span of local time on some days of the week. One that ends at or before its start goes past midnight and belongs
/// to the day on which it starts.
struct HourWindow {
    std::uint8_t weekdays = 0x7f; ///< bit 0 is Monday
    int from_minute = 0;          ///< of the day, 0..1439
    int to_minute = 0;            ///< of the day, 0..1440
};

/// A moment as a policy sees it, in local time.
struct WallTime {
    int weekday = 0; ///< 0 is Monday
    int minute = 0;  ///< of the day
};
/// The local time at that many nanoseconds since the epoch.
[[nodiscard]] WallTime local_time(Nanoseconds since_epoch);
/// Whether a moment lies in a window.
[[nodiscard]] bool contains(const HourWindow& window, const WallTime& now);

/// A policy file. What it does not mention is not limited.
struct SitePolicy {
    std::string source; ///< the file's name as given
    std::string text;   ///< as read
    std::optional<Ruled<std::int64_t>> hosts;
    std::optional<Ruled<std::int64_t>> hosts_percent;
    std::optional<Ruled<std::int64_t>> nics_per_host;
    std::optional<Ruled<std::int64_t>> ranks;
    std::optional<Ruled<std::vector<std::string>>> kinds;
    std::optional<Ruled<std::vector<HourWindow>>> hours;
    std::optional<Ruled<Nanoseconds>> max_duration;
    std::optional<Ruled<Nanoseconds>> max_lease;
    std::vector<Ruled<std::string>> never_hosts; ///< patterns of fnmatch(3)
    std::vector<Ruled<std::string>> never_nics;  ///< the same, of "NIC" or "HOST/NIC"
};

/// Reads a policy; what is wrong comes as diagnostics.
[[nodiscard]] Checked<SitePolicy> load_policy(std::string_view text, std::string_view source_name);
/// The same for a file, which must be a regular one of at most kMaxFileBytes.
[[nodiscard]] Checked<SitePolicy> load_policy_file(const std::string& path);

/// The plan against the policy at a moment. A host, NIC or rank counts once when any fault of the plan acts on it, now
/// or later; a fault of a NIC counts for every rank of its host. kRefused, one sentence that begins with FILE:LINE of
/// the rule. A plan without faults is always allowed.
[[nodiscard]] Result<void> check_plan(const SitePolicy& policy, const Plan& plan, const WallTime& now);

/// One order to one host, as its agent sees it.
struct PolicyOrder {
    std::string kind;
    std::string host;
    std::vector<std::string> nics;          ///< that the order acts on
    std::vector<std::string> nics_at_fault; ///< that faults act on already
};
/// The order against the policy. kRefused as check_plan().
[[nodiscard]] Result<void> check_order(const SitePolicy& policy, const PolicyOrder& order, const WallTime& now);
/// A lease against the policy. kRefused as check_plan().
[[nodiscard]] Result<void> check_lease(const SitePolicy& policy, Nanoseconds lease);

} // namespace railbreak::scenarios
