#include "scenarios/suite_summary.hpp"

#include <fmt/format.h>

#include "base/units.hpp"
#include "scenarios/summary.hpp"

namespace railbreak::scenarios {

Nanoseconds estimate_run_time(const SuitePlan& plan) {
    Nanoseconds total{0};
    for (const SuiteItem& item : plan.items) {
        total += estimate_run_time(item.scenario);
    }
    return total;
}

std::string to_text(const SuitePlan& plan) {
    constexpr std::size_t kHashDigits = 12;
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(estimate_run_time(plan));
    std::string text = fmt::format("suite: {}\n", plan.name);
    if (!plan.description.empty()) {
        text += fmt::format("description: {}\n", one_line(plan.description));
    }
    text += fmt::format("items: {}, {} (seed {}), plan {}\n", plan.items.size(), to_string(plan.order), plan.seed,
                        plan.hash.substr(0, kHashDigits));
    text += fmt::format("iterations: about {} s if every algorithm were a ring; building the cluster and measuring its "
                        "ports come on top\n",
                        whole.count());
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
        const SuiteItem& item = plan.items[i];
        text += fmt::format("{:>5}  {}  seed {}  plan {}  on failure {}\n", i + 1, item.name, item.seed,
                            item.plan_hash.substr(0, kHashDigits), to_string(item.on_failure));
    }
    return text;
}

} // namespace railbreak::scenarios
