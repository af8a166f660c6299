#include "collective/execute/receive_engine.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "collective/execute/links.hpp"
#include "kernels/reduce.hpp"

namespace railbreak::collective {

ReceiveEngine::ReceiveEngine(const RunContext& context, Lane lane)
    : context_(context), lane_(lane), count_(context.schedule.receive_count(context.self, lane)),
      staging_(std::max<std::size_t>(context.options.staging_bytes, 64)),
      ordinals_(static_cast<std::size_t>(context.schedule.ranks())) {}

Result<void> ReceiveEngine::load() {
    while (completed_ < count_) {
        step_ = context_.schedule.receive_step(context_.self, lane_, completed_);
        if (step_.slice.count > 0) {
            break;
        }
        ++completed_;
    }
    header_received_ = 0;
    payload_received_ = 0;
    arrived_ = 0;
    staged_ = 0;
    if (done()) {
        step_ = Step{};
        return {};
    }
    const LinkSpec spec = link_of(context_.schedule, context_.self, Direction::kIncoming, step_.peer, lane_);
    const auto link = context_.transport.find_link(spec);
    if (!link) {
        return fail(ErrorKind::kHarness, fmt::format("rank {} has no link {}", context_.self, to_string(spec)));
    }
    link_ = *link;
    return {};
}

bool ReceiveEngine::may_write(const PrefixCounts& sends_complete) const {
    for (std::size_t lane = 0; lane < sends_complete.size(); ++lane) {
        if (sends_complete[lane] < step_.after[lane]) {
            return false;
        }
    }
    return true;
}

std::span<std::byte> ReceiveEngine::destination() {
    const std::uint64_t total = static_cast<std::uint64_t>(step_.slice.count * context_.element_bytes);
    const auto left =
        static_cast<std::size_t>(std::min<std::uint64_t>(total - payload_received_, context_.options.call_bytes));
    if (step_.combine == Combine::kReduce) {
        return std::span(staging_).subspan(staged_, std::min(left, staging_.size() - staged_));
    }
    return context_.bytes_of(step_.slice).subspan(static_cast<std::size_t>(payload_received_), left);
}

Result<bool> ReceiveEngine::pump(const PrefixCounts& sends_complete) {
    if (done() || !may_write(sends_complete)) {
        return false;
    }
    const std::size_t header_before = header_received_;
    const auto received =
        context_.transport.receive_some(link_, std::span(header_).subspan(header_received_), destination());
    if (!received) {
        return tl::unexpected<Error>(received.error());
    }
    if (*received == 0) {
        return false;
    }
    header_received_ += std::min(*received, kHeaderBytes - header_before);
    if (header_received_ == kHeaderBytes && header_before < kHeaderBytes) {
        if (Result<void> checked = check_header(); !checked) {
            return tl::unexpected<Error>(checked.error());
        }
    }
    take_payload(*received - (header_received_ - header_before));
    if (arrived_ == step_.slice.count) {
        totals_.last_flow.last_read_at = monotonic_now();
        ++ordinals_[static_cast<std::size_t>(step_.peer)];
        ++completed_;
        // The next step's place among `after` counts must be visible at once, so empty steps are counted here.
        if (Result<void> loaded = load(); !loaded) {
            return tl::unexpected<Error>(loaded.error());
        }
    }
    return true;
}

Result<void> ReceiveEngine::check_header() const {
    const StepHeader expected{context_.run,
                              ordinals_[static_cast<std::size_t>(step_.peer)],
                              step_.slice.offset,
                              static_cast<std::uint64_t>(step_.slice.count * context_.element_bytes),
                              lane_,
                              step_.stage,
                              step_.combine};
    const std::string difference = mismatch(expected, header_);
    if (difference.empty()) {
        return {};
    }
    return fail(Error(ErrorKind::kOutcome, fmt::format("rank {} and rank {} are out of step on lane {}: {}",
                                                       context_.self, step_.peer, lane_, difference))
                    .with("rank", std::to_string(context_.self))
                    .with("peer", std::to_string(step_.peer))
                    .with("lane", std::to_string(lane_))
                    .with("step", std::to_string(completed_)));
}

void ReceiveEngine::take_payload(std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    if (payload_received_ == 0) {
        totals_.last_flow = {.first_read_at = monotonic_now()};
        if (totals_.bytes == 0) {
            totals_.first_read_at = totals_.last_flow.first_read_at;
        }
    } else {
        totals_.last_flow.bytes_after_first_read += bytes;
    }
    totals_.bytes += bytes;
    payload_received_ += bytes;
    const auto size = static_cast<std::size_t>(context_.element_bytes);
    if (step_.combine == Combine::kCopy) {
        arrived_ = static_cast<std::int64_t>(payload_received_ / size);
        return;
    }
    staged_ += bytes;
    const std::size_t whole = staged_ / size * size;
    const std::span<std::byte> into =
        context_.bytes_of(step_.slice).subspan(static_cast<std::size_t>(arrived_) * size, whole);
    kernels::reduce_sum(into, std::span(staging_).first(whole), context_.dtype);
    arrived_ += static_cast<std::int64_t>(whole / size);
    staged_ -= whole;
    std::memmove(staging_.data(), staging_.data() + whole, staged_); // the start of an element that is still to come
}

std::uint64_t ReceiveEngine::bytes_owed_by(Rank peer) const {
    std::uint64_t owed = 0;
    for (std::int64_t index = completed_; index < count_; ++index) {
        const Step step = context_.schedule.receive_step(context_.self, lane_, index);
        if (step.peer == peer && step.slice.count > 0) {
            owed += kHeaderBytes + static_cast<std::uint64_t>(step.slice.count * context_.element_bytes);
        }
    }
    const bool in_progress = !done() && step_.peer == peer;
    return owed - (in_progress ? header_received_ + payload_received_ : 0);
}

} // namespace railbreak::collective
