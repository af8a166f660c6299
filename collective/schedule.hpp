// The schedule: what every rank sends and receives, in which order, waiting for what.
//
// A rank has one or more *lanes*. A lane is a pair of engines on one of the rank's ports: one that works through a list
// of send steps strictly in order, one that works through a list of receive steps strictly in order. With one lane on a
// port the port carries at most one flow a side at a time (the exclusive port model of the OptCC paper). A plan with
// two lanes on a port lets, for example, a ring flow and a straggler flow share it (the fluid model).
//
// A port is a NIC of the rank's server, or the rank's own intra-host port (shared memory here, NVLink on a GPU server),
// which leads to the other ranks of its server only. Ranks are numbered server by server: with g ranks a server,
// server s has the ranks g s .. g s + g-1.
//
// The k-th step that rank a sends to rank b on a lane is the k-th step that b receives from a on that lane.
//
// A send step names, per lane, how many leading receive steps must have arrived before its data is valid ("after").
// Because engines work in order, one count a lane says everything. The last of those receive steps may still be in
// progress: an executor may forward the part that has arrived (cut-through), as long as every element it sends lies
// outside the range that this step has yet to receive. Receive steps name send steps in the same way, for the rare
// case in which an element must have left before it may be overwritten and causality alone does not ensure it.
//
// Receive steps of different lanes may add to the same range at the same time, in either order (two lanes: the last
// ring hop of a section and the straggler's part of it). An executor must not lose an addition: one thread per rank
// applies what arrives. All ranks still end with the same bits, since one rank computes a sum and all others copy it,
// but rounding may then differ from run to run; with one lane the order of additions is fixed.
//
// The same object is verified, simulated and executed. Every step is computed on its own in O(1): a rank can start
// before it knows its last step, and no rank builds another rank's list.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace railbreak::collective {

/// A member of the collective, 0 <= rank < ranks().
using Rank = std::int32_t;

/// Index of a lane of a rank.
using Lane = std::int32_t;

inline constexpr Lane kMaxLanes = 4;

/// What a lane is attached to.
enum class PortKind : std::uint8_t {
    kNic,   ///< a NIC of the rank's server
    kLocal, ///< the rank's intra-host port
};

/// A port as the rank sees it.
struct Port {
    PortKind kind = PortKind::kNic;
    std::int32_t nic = 0; ///< NIC of the rank's server, from 0; 0 for an intra-host port, of which a rank has one
    auto operator<=>(const Port&) const = default;
};

/// A contiguous range of the vector, in elements.
struct Slice {
    std::int64_t offset = 0;
    std::int64_t count = 0;
    [[nodiscard]] std::int64_t end() const { return offset + count; }
    bool operator==(const Slice&) const = default;
};

/// What a step is for. Labels for people, traces and statistics; correctness never depends on them.
enum class Stage : std::uint8_t {
    kReduceScatter, ///< S1: ring hop, the receiver adds
    kUpload,        ///< S2: healthy rank to straggler
    kDownload,      ///< S3: straggler to healthy rank ("download" from the straggler, as in the paper's stage 3)
    kAllGather,     ///< S4: ring hop, the receiver overwrites
    kStarUp,        ///< bubble-filling chunk, own values of a healthy rank to the straggler, which adds
    kStarDown,      ///< bubble-filling chunk, finished sum from the straggler to a healthy rank
    kStarExchange,  ///< bubble-filling chunk between two stragglers
    kLocalReduce,   ///< N1, N3: between ranks of a server, before a phase: the receiver adds
    kLocalGather,   ///< N2, N4: between ranks of a server, after a phase: the receiver overwrites
    kReduce,        ///< towards the root of a tree, or pairwise halving: the receiver adds
    kBroadcast,     ///< from the root of a tree, or pairwise doubling: the receiver overwrites
    kExchange,      ///< pairwise with a late or slow rank: both ends add
    kProbe,         ///< bandwidth measurement, not part of a collective
};

/// What the receiver does with the data.
enum class Combine : std::uint8_t { kCopy, kReduce };

/// For each lane, how many leading steps of the opposite queues of the same rank must be complete.
using PrefixCounts = std::array<std::int64_t, kMaxLanes>;

/// One entry of a send queue or of a receive queue.
struct Step {
    Rank peer = 0; ///< the other end
    Slice slice;   ///< elements carried; an empty slice is skipped by both ends, without a message
    Stage stage = Stage::kReduceScatter;
    Combine combine = Combine::kCopy; ///< equal at both ends
    PrefixCounts after{}; ///< send step: leading receive steps of each lane; receive step: leading send steps
    bool operator==(const Step&) const = default;
};

/// An immutable plan for all ranks. Thread-safe: const member functions only.
class Schedule {
public:
    Schedule() = default;
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;
    virtual ~Schedule() = default;

    /// Short name of plan and parameters, for example "optcc-bs(k=4,straggler=3)".
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual Rank ranks() const = 0;
    /// Lanes of every rank, 1 <= lanes() <= kMaxLanes.
    [[nodiscard]] virtual Lane lanes() const = 0;
    /// Ranks of one server, >= 1; ranks() is a multiple of it.
    [[nodiscard]] virtual Rank ranks_per_server() const { return 1; }
    /// What a lane of a rank is attached to. Both ends of every message on the lane have a port of the same kind; the
    /// NIC numbers may differ. The lane number is the same at both ends.
    [[nodiscard]] virtual Port port(Rank /*rank*/, Lane /*lane*/) const { return {}; }
    /// Elements of the vector.
    [[nodiscard]] virtual std::int64_t elements() const = 0;
    /// Length of a send queue and of a receive queue. O(1).
    [[nodiscard]] virtual std::int64_t send_count(Rank rank, Lane lane) const = 0;
    [[nodiscard]] virtual std::int64_t receive_count(Rank rank, Lane lane) const = 0;
    /// Entry `index` of a queue, 0 <= index < count. O(1), no allocation.
    [[nodiscard]] virtual Step send_step(Rank rank, Lane lane, std::int64_t index) const = 0;
    [[nodiscard]] virtual Step receive_step(Rank rank, Lane lane, std::int64_t index) const = 0;
    /// Entries first, first+1, .. of a queue, as many as `steps` has room for, 0 <= first <= first + size <= count: the
    /// same as one by one, but cheaper for a whole queue where a schedule overrides it. No allocation.
    virtual void send_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const;
    virtual void receive_steps(Rank rank, Lane lane, std::int64_t first, std::span<Step> steps) const;
};

/// Whether two schedules are the same plan: a name tells the queues, but not the ports that the lanes are attached to,
/// and a ring that moved to backup NICs is still called as it was. O(ranks * lanes).
[[nodiscard]] bool same_plan(const Schedule& a, const Schedule& b);

/// "reduce-scatter", "upload", "download", "allgather", "star-up", "star-down", "star-exchange", "local-reduce",
/// "local-gather", "reduce", "broadcast", "exchange", "probe".
[[nodiscard]] std::string_view to_string(Stage stage);

} // namespace railbreak::collective
