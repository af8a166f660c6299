// Many steps of an OptCC plan at a time: between two pauses of a link nothing changes from one hop of a ring stream to
// the next but the section and the step that brought it, so all else is looked up once.
#include "collective/algorithms/optcc_rail.hpp"

namespace railbreak::collective {

namespace {

/// The two runs of hops of a phase, before and after the pauses of the link over which a node receives: hop r of a
/// stream stands at twice r plus one of two constants.
struct HopIndex {
    std::int64_t pause;  ///< hops before the pauses
    std::int64_t before; ///< index of hop 0, were there no pauses before it
    std::int64_t after;  ///< index of hop 0, were there all pauses before it
    [[nodiscard]] std::int64_t of(std::int64_t hop) const { return (hop < pause ? before : after) + 2 * hop; }
};

} // namespace

void OptccRail::fill_hops(std::int64_t node, bool send, const OptccPlace& first, std::span<Step> steps) const {
    const std::int64_t link = send ? wrap(node + 1) : node;
    const Rank peer = rank_of(send ? link : wrap(node - 1));
    const OptccLinkQueue queue = receives(node, 0);
    const std::size_t size = steps.size();
    for (std::size_t at_first = 0; at_first < 2 && at_first < size; ++at_first) {
        const std::int64_t entry = first.entry ^ static_cast<std::int64_t>(at_first);
        std::int64_t hop = first.number + (entry < first.entry ? 1 : 0);
        const OptccProgram::Stream stream = program_.phase(first.phase).streams[static_cast<std::size_t>(entry)];
        const Stage stage = stream.gather ? Stage::kAllGather : Stage::kReduceScatter;
        const Combine combine = stream.gather ? Combine::kCopy : Combine::kReduce;
        if (stream.unit == kOptccNone) {
            const Step nothing{peer, {}, stage, combine, {}};
            for (std::size_t i = at_first; i < size; i += 2) {
                steps[i] = nothing;
            }
            continue;
        }
        const OptccLayout::UnitParts parts = layout_.unit_parts(stream.unit);
        const std::int64_t healthy = healthy_;
        const std::int64_t last = healthy - 2;
        const HopIndex received{queue.hops_before_pause(), queue.hop_index(first.phase, entry, -1) + 2,
                                queue.hop_index(first.phase, entry, last) - 2 * last};
        std::int64_t section = wrap(stream.gather ? link - hop : link - 1 - hop);
        for (std::size_t i = at_first; i < size; i += 2) {
            steps[i] = {peer, parts.part(section), stage, combine, {send ? received.of(hop - 1) + 1 : 0, 0, 0, 0}};
            ++hop;
            section = section == 0 ? healthy - 1 : section - 1;
        }
    }
}

void OptccRail::send_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const {
    const std::int64_t node = this->node(rank);
    for (std::size_t done = 0; done < steps.size();) {
        const std::int64_t index = first + static_cast<std::int64_t>(done);
        if (node >= 0 && lane == 0) {
            const OptccLinkQueue queue = sends(node, lane);
            const OptccPlace place = queue.locate(index);
            if (place.kind == Kind::kHop && place.number > 0) {
                const auto run = static_cast<std::size_t>(queue.hops_from(index));
                const std::span<Step> hops = steps.subspan(done, std::min(run, steps.size() - done));
                fill_hops(node, true, place, hops);
                done += hops.size();
                continue;
            }
        }
        steps[done++] = send_step(rank, lane, index);
    }
}

void OptccRail::receive_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const {
    const std::int64_t node = this->node(rank);
    for (std::size_t done = 0; done < steps.size();) {
        const std::int64_t index = first + static_cast<std::int64_t>(done);
        if (node >= 0 && lane == 0) {
            const OptccLinkQueue queue = receives(node, lane);
            const OptccPlace place = queue.locate(index);
            if (place.kind == Kind::kHop) {
                const auto run = static_cast<std::size_t>(queue.hops_from(index));
                const std::span<Step> hops = steps.subspan(done, std::min(run, steps.size() - done));
                fill_hops(node, false, place, hops);
                done += hops.size();
                continue;
            }
        }
        steps[done++] = receive_step(rank, lane, index);
    }
}

} // namespace railbreak::collective
