#include "harness/agent/fault_watch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.hpp"

namespace railbreak::agent {

void FaultWatch::applied(std::int32_t id, std::vector<std::string> nics, Nanoseconds now,
                         std::optional<Nanoseconds> longest) {
    faults_[id] = {std::move(nics), now + kConfirmTimeout,
                   longest ? std::optional(now + std::min(*longest, Nanoseconds::max() - now)) : std::nullopt};
}

void FaultWatch::confirmed(std::int32_t id) {
    if (const auto found = faults_.find(id); found != faults_.end()) {
        found->second.confirm_by.reset();
    }
}

std::optional<Nanoseconds> FaultWatch::next() const {
    std::optional<Nanoseconds> earliest;
    for (const auto& [id, fault] : faults_) {
        for (const std::optional<Nanoseconds>& time : {fault.confirm_by, fault.over_by}) {
            if (time && (!earliest || *time < *earliest)) {
                earliest = time;
            }
        }
    }
    return earliest;
}

std::optional<std::string> FaultWatch::overdue(Nanoseconds now) const {
    for (const auto& [id, fault] : faults_) {
        if (fault.confirm_by && now >= *fault.confirm_by) {
            return fmt::format("the controller did not answer within {} of fault {}: the fault may have cut it off",
                               to_string(kConfirmTimeout), id);
        }
        if (fault.over_by && now >= *fault.over_by) {
            return fmt::format("fault {} has been in force for as long as the site policy allows", id);
        }
    }
    return std::nullopt;
}

std::vector<std::string> FaultWatch::nics() const {
    std::vector<std::string> names;
    for (const auto& [id, fault] : faults_) {
        names.insert(names.end(), fault.nics.begin(), fault.nics.end());
    }
    return names;
}

} // namespace railbreak::agent
