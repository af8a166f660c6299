#include "injectors/composer.hpp"

#include <algorithm>

namespace railbreak::injectors {

namespace {
void lower(std::optional<BitRate>& rate, BitRate other) {
    rate = rate ? std::min(*rate, other) : other;
}
} // namespace

WantedState compose(std::span<const ActiveFault> faults) {
    WantedState wanted;
    for (const ActiveFault& fault : faults) {
        switch (fault.kind) {
        case FaultKind::kCap:
            if (fault.direction != Direction::kReceive) {
                lower(wanted.send, fault.rate);
            }
            if (fault.direction != Direction::kSend) {
                lower(wanted.receive, fault.rate);
            }
            break;
        case FaultKind::kLinkDown: wanted.down = true; break;
        }
    }
    return wanted;
}

} // namespace railbreak::injectors
