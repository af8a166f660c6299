// One builder a plan; then, for all of them, what waits for what.
#include "collective/algorithms/optcc_program.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

using Program = OptccProgram;

std::vector<Program::Range> equal_ranges(std::int64_t parts, std::int64_t width) {
    std::vector<Program::Range> ranges;
    ranges.reserve(at(parts));
    for (std::int64_t i = 0; i < parts; ++i) {
        ranges.push_back({i * width, (i + 1) * width});
    }
    return ranges;
}

/// Phase b reduces and downloads segment b, gathers and uploads segment b-1.
Program uniform(std::int64_t segments, bool late_first_link) {
    Program program;
    program.scale = segments;
    program.units = program.segments = equal_ranges(segments, 1);
    program.late_first_link = late_first_link;
    program.phases.resize(at(segments + (late_first_link ? 2 : 1)));
    for (std::int64_t b = 0; b < segments; ++b) {
        program.phases[at(b)].streams[0] = {b, false};
        program.phases[at(b)].down = b;
        program.phases[at(b + 1)].streams[1] = {b, true};
        program.phases[at(b + 1)].up = b;
    }
    return program;
}

/// k+1 ring slices, two of them in every phase, and k straggler segments.
Program balanced(std::int64_t segments) {
    Program program;
    program.scale = segments * (segments + 1);
    program.units = equal_ranges(segments + 1, segments);
    program.segments = equal_ranges(segments, segments + 1);
    program.phases.resize(at(segments + 1));
    for (std::int64_t unit = 0; unit <= segments; ++unit) {
        program.phases[at(std::max<std::int64_t>(unit - 1, 0))].streams[unit == 1 ? 1 : 0] = {unit, false};
        // The last two slices are gathered in the last phase.
        program.phases[at(std::min(unit + 1, segments))].streams[unit == segments - 1 ? 0 : 1] = {unit, true};
    }
    for (std::int64_t b = 0; b < segments; ++b) {
        program.phases[at(b)].down = b;
        program.phases[at(b + 1)].up = b;
    }
    return program;
}

/// Ranges of the given sizes, one behind the other.
std::vector<Program::Range> ranges_of(const std::vector<std::int64_t>& sizes) {
    std::vector<Program::Range> ranges;
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) {
        ranges.push_back({end, end + size});
        end += size;
    }
    return ranges;
}

/// The stragglers' side of a plan that lags: phase b+1 brings segment b down and, one window later, up. Of several
/// stragglers only the slowest lags by a window, the others by a phase.
Program lag_visits(const std::vector<std::int64_t>& weights, bool several) {
    Program program;
    program.segments = ranges_of(weights);
    program.scale = program.segments.back().end;
    program.late_first_link = true;
    program.late_others = several;
    program.phases.resize(weights.size() + (several ? 3 : 2));
    for (std::size_t b = 0; b < weights.size(); ++b) {
        program.phases[b + 1].down = program.phases[b + 1].up = static_cast<std::int64_t>(b);
    }
    return program;
}

/// Phase b reduces segment b, downloads and uploads segment b-1, gathers segment b-2.
Program lagged(const std::vector<std::int64_t>& weights, bool several) {
    Program program = lag_visits(weights, several);
    program.units = program.segments;
    for (std::size_t b = 0; b < weights.size(); ++b) {
        program.phases[b].streams[0] = {static_cast<std::int64_t>(b), false};
        program.phases[b + 2].streams[1] = {static_cast<std::int64_t>(b), true};
    }
    return program;
}

/// The ring reduces ahead as fast as a straggler at half speed leaves it time, and at least the segment that comes
/// next. Gathering is the mirror image of that: what phase f reduces, phase k+1-f gathers from the other end.
Program ramp(const std::vector<std::int64_t>& weights, bool several) {
    Program program = lag_visits(weights, several);
    const std::size_t last = weights.size() + 1;
    std::vector<std::int64_t> reduced = {weights[0]}; // in each phase
    std::int64_t done = weights[0];
    for (std::size_t f = 1; f <= last; ++f) {
        const std::int64_t due = f < weights.size() ? program.segments[f].end - done : 0;
        reduced.push_back(std::max(due, std::min(program.scale - done, f <= weights.size() ? 2 * weights[f - 1] : 0)));
        done += reduced.back();
    }
    const std::vector<std::int64_t> gathered(reduced.rbegin(), reduced.rend());
    for (const bool gather : {false, true}) {
        const std::vector<Program::Range> ranges = ranges_of(gather ? gathered : reduced);
        for (std::size_t f = 0; f <= last; ++f) {
            if (ranges[f].end > ranges[f].begin) {
                program.phases[f].streams[gather ? 1 : 0] = {static_cast<std::int64_t>(program.units.size()), gather};
                program.units.push_back(ranges[f]);
            }
        }
    }
    return program;
}

/// Four segments a group, five phases a group, the fifth of which is the first of the next group. Two of the segments
/// pass the straggler after their reduce-scatter (it adds), two before (its values are added). Pattern by pattern the
/// phases of reduce-scatter, download, upload and allgather.
Program four_patterns(std::int64_t segments) {
    struct Pattern {
        std::int64_t reduce, down, up, gather;
    };
    constexpr std::array<Pattern, 4> kPatterns = {{{0, 2, 1, 3}, {1, 0, 3, 2}, {1, 3, 2, 4}, {2, 1, 4, 3}}};
    Program program;
    program.scale = segments;
    program.units = program.segments = equal_ranges(segments, 1);
    program.phases.resize(at(segments + 1));
    const auto append = [&](std::int64_t phase, Program::Stream stream) {
        std::array<Program::Stream, kOptccStreams>& streams = program.phases[at(phase)].streams;
        streams[streams[0].unit == kOptccNone ? 0 : 1] = stream;
    };
    for (const bool gather : {false, true}) { // in a phase that does both, the reduce-scatter comes first
        for (std::int64_t j = 0; j < segments; ++j) {
            const Pattern& pattern = kPatterns[at(j % 4)];
            append(j / 4 * 4 + (gather ? pattern.gather : pattern.reduce), {j, gather});
        }
    }
    for (std::int64_t j = 0; j < segments; ++j) {
        const Pattern& pattern = kPatterns[at(j % 4)];
        program.phases[at(j / 4 * 4 + pattern.down)].down = j;
        program.phases[at(j / 4 * 4 + pattern.up)].up = j;
        program.adds_at_straggler.push_back(pattern.up < pattern.down);
    }
    return program;
}

/// Finds for every unit and segment the reduce-scatter and the download that its owner needs before it passes it on.
class Waits {
public:
    explicit Waits(Program& program) : program_(program) {}

    void find() {
        collect();
        program_.adds_at_straggler.resize(program_.segments.size(), false);
        for (const Program::Range& unit : program_.units) {
            program_.gather_ready.push_back(ready(unit.end, false));
            program_.last_segment.push_back(containing(downs_, unit.end).number);
        }
        for (const Program::Range& segment : program_.segments) {
            program_.up_ready.push_back(ready(segment.end, true));
        }
        for (std::size_t u = 0; u < program_.units.size(); ++u) {
            const std::int64_t up = program_.up_phase[at(program_.last_segment[u])];
            const std::int64_t gathered = program_.gathered[u].phase;
            program_.finished.push_back(gathered == kOptccNone ? kOptccNone
                                                               : std::max(gathered, up + program_.up_delay()));
        }
        for (const Event& down : downs_) { // a straggler may hand out its values before the ring uses them
            std::int64_t& from = program_.reduced_from[at(program_.up_ready[at(down.number)].unit)];
            from = std::min(from, down.phase);
        }
    }

private:
    /// Something that happens to the part of every section that ends at `end`.
    struct Event {
        std::int64_t end;
        std::int64_t phase;
        std::int64_t stream;
        std::int64_t number; ///< unit or segment
        bool operator<(const Event& other) const { return end < other.end; }
    };

    void collect() {
        program_.up_phase.assign(program_.segments.size(), kOptccNone);
        program_.gathered.resize(program_.units.size());
        program_.reduced_from.assign(program_.units.size(), kOptccNone);
        for (std::size_t f = 0; f < program_.phases.size(); ++f) {
            const Program::Phase& phase = program_.phases[f];
            const auto number = static_cast<std::int64_t>(f);
            for (std::int64_t s = 0; s < kOptccStreams; ++s) {
                const Program::Stream& stream = phase.streams[at(s)];
                if (stream.unit != kOptccNone && stream.gather) {
                    program_.gathered[at(stream.unit)] = {number, s};
                } else if (stream.unit != kOptccNone) {
                    reductions_.push_back({program_.units[at(stream.unit)].end, number, s, stream.unit});
                    program_.reduced_from[at(stream.unit)] = number;
                }
            }
            if (phase.down != kOptccNone) {
                downs_.push_back({program_.segments[at(phase.down)].end, number, 0, phase.down});
            }
            if (phase.up != kOptccNone) {
                program_.up_phase[at(phase.up)] = number;
            }
        }
        std::sort(reductions_.begin(), reductions_.end());
        std::sort(downs_.begin(), downs_.end());
    }

    /// Ranges of one kind follow each other, in the vector as in time: the one that contains the end is the last.
    [[nodiscard]] static const Event& containing(const std::vector<Event>& events, std::int64_t end) {
        return *std::lower_bound(events.begin(), events.end(), Event{end, 0, 0, 0});
    }

    [[nodiscard]] Program::Ready ready(std::int64_t end, bool upload) const {
        const Event& reduced = containing(reductions_, end);
        const Event& down = containing(downs_, end);
        const bool none = upload && program_.adds_at_straggler[at(down.number)];
        return {{reduced.phase, reduced.stream}, reduced.number, none ? kOptccNone : down.phase};
    }

    Program& program_;
    std::vector<Event> reductions_;
    std::vector<Event> downs_;
};

} // namespace

OptccProgram make_program(const OptccParameters& parameters) {
    const bool several = parameters.stragglers.size() > 1;
    OptccProgram program;
    switch (parameters.plan) {
    case OptccPlan::kUniform:
    case OptccPlan::kStar: program = uniform(parameters.segments, parameters.late_first_link); break;
    case OptccPlan::kBalanced: program = balanced(parameters.segments); break;
    case OptccPlan::kLag:
    case OptccPlan::kLagStar: program = lagged(parameters.weights, several); break;
    case OptccPlan::kRamp: program = ramp(parameters.weights, several); break;
    case OptccPlan::kPatterns: program = four_patterns(parameters.segments); break;
    }
    Waits(program).find();
    return program;
}

} // namespace railbreak::collective
