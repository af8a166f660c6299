#include "collective/cost_model.hpp"

#include <algorithm>

namespace railbreak::collective {

double ring_cost_ns(const CostInput& input) {
    const double section = input.vector_ns / input.ranks;
    const double hop =
        std::max(input.slowdown * section + input.overhead_ns, section + input.overhead_ns + input.latency_ns);
    return 2 * (input.ranks - 1) * hop;
}

} // namespace railbreak::collective
