#include "collective/execute/send_engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "collective/execute/links.hpp"

namespace railbreak::collective {

namespace {

/// Trailing empty receive steps bring no data: waiting for them is waiting for the last non-empty one, whose arriving
/// part may be forwarded.
std::int64_t without_empty_tail(const RunContext& context, Lane lane, std::int64_t after) {
    while (after > 0 && context.schedule.receive_step(context.self, lane, after - 1).slice.count == 0) {
        --after;
    }
    return after;
}

} // namespace

SendEngine::SendEngine(const RunContext& context, Lane lane)
    : context_(context), lane_(lane), count_(context.schedule.send_count(context.self, lane)),
      ordinals_(static_cast<std::size_t>(context.schedule.ranks())) {}

Result<void> SendEngine::load() {
    while (completed_ < count_) {
        step_ = context_.schedule.send_step(context_.self, lane_, completed_);
        if (step_.slice.count > 0) {
            break;
        }
        ++completed_;
    }
    header_sent_ = 0;
    payload_sent_ = 0;
    released_ = 0;
    if (done()) {
        step_ = Step{};
        return {};
    }
    const LinkSpec spec = link_of(context_.schedule, context_.self, Direction::kOutgoing, step_.peer, lane_);
    const auto link = context_.transport.find_link(spec);
    if (!link) {
        return fail(ErrorKind::kHarness, fmt::format("rank {} has no link {}", context_.self, to_string(spec)));
    }
    link_ = *link;
    for (Lane lane = 0; lane < context_.schedule.lanes(); ++lane) {
        auto& after = step_.after[static_cast<std::size_t>(lane)];
        after = without_empty_tail(context_, lane, after);
    }
    header_ = pack({context_.run, ordinals_[static_cast<std::size_t>(step_.peer)], step_.slice.offset,
                    static_cast<std::uint64_t>(step_.slice.count * context_.element_bytes), lane_, step_.stage,
                    step_.combine});
    return {};
}

std::uint64_t SendEngine::valid_bytes(const ReceiveProgress& receives) const {
    const std::int64_t start = step_.slice.offset;
    std::int64_t end = step_.slice.end();
    for (std::size_t lane = 0; lane < step_.after.size(); ++lane) {
        const std::int64_t lacking = step_.after[lane] - receives.completed[lane];
        if (lacking <= 0) {
            continue;
        }
        if (lacking > 1) {
            return 0;
        }
        // Only the step in progress is lacking: everything outside its missing range is valid. A step is sent from its
        // start on, so what lies behind a gap has to wait.
        const Slice& missing = receives.missing[lane];
        if (missing.offset < end && missing.end() > start) {
            end = std::max(start, missing.offset);
        }
    }
    return static_cast<std::uint64_t>((end - start) * context_.element_bytes);
}

Result<bool> SendEngine::pump(const ReceiveProgress& receives) {
    if (done()) {
        return false;
    }
    const auto total = static_cast<std::uint64_t>(step_.slice.count * context_.element_bytes);
    if (released_ < total) {
        const std::uint64_t valid = valid_bytes(receives);
        if (valid == total || valid - released_ >= context_.options.forward_bytes) {
            released_ = valid;
        }
    }
    if (payload_sent_ == released_) {
        return false;
    }
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(released_ - payload_sent_, context_.options.call_bytes));
    const auto payload = std::span<const std::byte>(context_.bytes_of(step_.slice))
                             .subspan(static_cast<std::size_t>(payload_sent_), length);
    const auto sent = context_.transport.send_some(link_, std::span(header_).subspan(header_sent_), payload);
    if (!sent) {
        return tl::unexpected<Error>(sent.error());
    }
    const std::size_t of_header = std::min(*sent, kHeaderBytes - header_sent_);
    header_sent_ += of_header;
    payload_sent_ += *sent - of_header;
    bytes_ += *sent - of_header;
    if (payload_sent_ == total) {
        ++ordinals_[static_cast<std::size_t>(step_.peer)];
        ++completed_;
        if (Result<void> loaded = load(); !loaded) {
            return tl::unexpected<Error>(loaded.error());
        }
    }
    return *sent > 0;
}

bool SendEngine::owes(Rank peer) const {
    for (std::int64_t index = completed_; index < count_; ++index) {
        const Step step = context_.schedule.send_step(context_.self, lane_, index);
        if (step.peer == peer && step.slice.count > 0) {
            return true;
        }
    }
    return false;
}

} // namespace railbreak::collective
