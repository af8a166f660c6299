#include "collective/execute/probe.hpp"

namespace railbreak::collective {

Step LinkProbe::send_step(Rank rank, Lane, std::int64_t) const {
    return {(rank + 1) % ranks_, {0, elements_}, Stage::kProbe, Combine::kCopy, {}};
}

Step LinkProbe::receive_step(Rank rank, Lane, std::int64_t) const {
    return {(rank + ranks_ - 1) % ranks_, {0, elements_}, Stage::kProbe, Combine::kCopy, {}};
}

BitRate received_goodput(const ExecutionStats& stats) {
    const std::int64_t span = (stats.last_receive_at - stats.first_receive_at).count();
    if (span <= 0) {
        return {};
    }
    const double bits = static_cast<double>(stats.bytes_after_first_read) * 8.0;
    return BitRate::bits_per_s(static_cast<std::uint64_t>(bits * 1e9 / static_cast<double>(span)));
}

} // namespace railbreak::collective
