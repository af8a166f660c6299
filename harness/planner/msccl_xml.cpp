#include "harness/planner/msccl_xml.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <string>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "harness/planner/message_levels.hpp"
#include "harness/planner/msccl_chunks.hpp"
#include "harness/planner/msccl_program.hpp"

namespace railbreak::planner {

namespace {

constexpr std::size_t kLongestName = 63;                   // that runtimes keep
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40; // "for every size"

/// The text as the value of an attribute.
std::string attribute(std::string_view text) {
    std::string value;
    for (const char c : text) {
        switch (c) {
        case '<': value += "&lt;"; break;
        case '>': value += "&gt;"; break;
        case '&': value += "&amp;"; break;
        case '"': value += "&quot;"; break;
        default: value += c >= ' ' && c <= '~' ? c : '?'; // not an enum
        }
    }
    return value;
}

std::string_view type_text(MscclStep::Type type) {
    switch (type) {
    case MscclStep::Type::kNop: return "nop";
    case MscclStep::Type::kSend: return "s";
    case MscclStep::Type::kReceive: return "r";
    case MscclStep::Type::kReceiveReduce: return "rrc";
    }
    return {};
}

void write_block(std::size_t id, const MscclBlock& block, std::ostream& out) {
    fmt::print(out, "    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", id, block.send_peer, block.receive_peer,
               block.channel);
    std::int64_t number = 0;
    for (const MscclStep& step : block.steps) {
        fmt::print(out,
                   "      <step s=\"{}\" type=\"{}\" srcbuf=\"i\" srcoff=\"{}\" dstbuf=\"i\" dstoff=\"{}\" cnt=\"{}\" "
                   "depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
                   number++, type_text(step.type), step.chunk, step.chunk, step.count, step.wait_block, step.wait_step,
                   step.awaited ? 1 : 0);
    }
    out << "    </tb>\n";
}

void count_blocks(const std::vector<MscclBlock>& blocks, MscclSummary& summary) {
    std::map<collective::Lane, std::int64_t> of_channel;
    for (const MscclBlock& block : blocks) {
        summary.most_blocks = std::max(summary.most_blocks, ++of_channel[block.channel]);
        summary.most_steps = std::max(summary.most_steps, static_cast<std::int64_t>(block.steps.size()));
    }
}

} // namespace

Result<MscclSummary> write_msccl_xml(const collective::Schedule& schedule, std::ostream& out) {
    const Result<std::int64_t> chunk = common_chunk(schedule, kMostMscclChunks);
    if (!chunk) {
        return tl::unexpected(chunk.error());
    }
    const Result<MessageLevels> levels = MessageLevels::of(schedule);
    if (!levels) {
        return tl::unexpected(levels.error());
    }
    MscclSummary summary{.chunks = schedule.elements() / *chunk, .chunk_elements = *chunk};
    fmt::print(out,
               "<algo name=\"{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" "
               "coll=\"allreduce\" inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"{}\">\n",
               attribute(schedule.name().substr(0, kLongestName)), schedule.lanes(), summary.chunks, schedule.ranks(),
               kMostBytes);
    for (collective::Rank rank = 0; rank < schedule.ranks() && out; ++rank) {
        const Result<std::vector<MscclBlock>> blocks = msccl_blocks(schedule, *levels, rank, *chunk, kMscclCount);
        if (!blocks) {
            return tl::unexpected(blocks.error());
        }
        count_blocks(*blocks, summary);
        fmt::print(out, "  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n", rank, summary.chunks,
                   summary.chunks);
        for (std::size_t id = 0; id < blocks->size(); ++id) {
            write_block(id, (*blocks)[id], out);
        }
        out << "  </gpu>\n";
    }
    out << "</algo>\n";
    if (!out) {
        return fail(ErrorKind::kInput, "the program could not be written");
    }
    return summary;
}

} // namespace railbreak::planner
