// One builder a plan; then, for all of them, what waits for what.
#include "collective/algorithms/optcc_program.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

using Program = OptccProgram;

std::size_t at(std::int64_t index) {
    return static_cast<std::size_t>(index);
}

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
    OptccProgram program;
    switch (parameters.plan) {
    case OptccPlan::kUniform:
    case OptccPlan::kStar: program = uniform(parameters.segments, parameters.late_first_link); break;
    case OptccPlan::kBalanced: program = balanced(parameters.segments); break;
    }
    Waits(program).find();
    return program;
}

} // namespace railbreak::collective
