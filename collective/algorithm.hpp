// An algorithm turns a topology and a message into a schedule, says when it applies and what time it predicts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "collective/schedule.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {

/// What an algorithm may know when it plans.
struct PlanRequest {
    Topology topology;
    std::int64_t elements = 0; ///< of the vector, > 0
    std::uint32_t element_bytes = 4;
    BitRate healthy_goodput;      ///< measured payload rate of a healthy port, one direction
    Nanoseconds flow_overhead{0}; ///< port occupancy added to each flow (o in the cost model)
    Nanoseconds flow_latency{0};  ///< from the end of a flow to usable data (L in the cost model)
    /// Plan parameters forced by the user, for example {"plan","bs"}, {"k","4"}; empty means: choose.
    std::vector<std::pair<std::string, std::string>> options;
};

/// A schedule and what its maker expects of it.
struct Plan {
    std::unique_ptr<const Schedule> schedule;
    Nanoseconds predicted{0}; ///< time predicted by the cost model
    std::string reason;       ///< one line: why this plan and these parameters
};

/// A plan parameter that an algorithm takes, for help texts and error messages.
struct OptionHelp {
    std::string_view name;   ///< "k"
    std::string_view values; ///< "1..1048576"
    std::string_view what;   ///< "number of segments"
};

/// One way of doing AllReduce.
class Algorithm {
public:
    virtual ~Algorithm() = default;
    /// Name in scenarios, on the command line and in the database: "ring", "optcc", "r2ccl", ...
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// One line for people.
    [[nodiscard]] virtual std::string_view summary() const = 0;
    /// The names that PlanRequest::options may have for this algorithm.
    [[nodiscard]] virtual std::vector<OptionHelp> options() const { return {}; }
    /// The schedule for this request, or an Error (kInput) that says why the algorithm does not apply.
    [[nodiscard]] virtual Result<Plan> plan(const PlanRequest& request) const = 0;
};

/// All algorithms of this build, in a fixed order. The objects live as long as the program.
[[nodiscard]] const std::vector<const Algorithm*>& algorithms();
/// The algorithm of that name, or an Error (kInput) that lists the names there are.
[[nodiscard]] Result<const Algorithm*> find_algorithm(std::string_view name);

} // namespace railbreak::collective
