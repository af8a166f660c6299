// The chunk is the greatest common divisor of all borders. A plan cuts the vector into equal parts, and parts of parts;
// where the length is no multiple of their number the borders are off by a few elements and the divisor falls to 1 or
// so. Then the parts can still be guessed: the smallest number of equal parts that has a border near every border of
// the plan. A vector whose length is a multiple of that number is cut exactly.
#include "harness/planner/msccl_chunks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace railbreak::planner {

namespace {

using collective::Lane;
using collective::Rank;
using collective::Schedule;
using collective::Slice;

constexpr std::int64_t kNear = 2;       // elements that a border of nested parts may be off
constexpr std::int64_t kLeastPart = 16; // elements of a part, so that "near" tells parts apart

void for_each_slice(const Schedule& schedule, const std::function<void(const Slice&)>& visit) {
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            for (std::int64_t i = 0; i < schedule.send_count(rank, lane); ++i) {
                if (const Slice slice = schedule.send_step(rank, lane, i).slice; slice.count > 0) {
                    visit(slice);
                }
            }
        }
    }
}

std::vector<std::int64_t> borders_of(const Schedule& schedule) {
    std::vector<std::int64_t> borders;
    for_each_slice(schedule, [&](const Slice& slice) {
        borders.push_back(slice.offset);
        borders.push_back(slice.end());
        if (borders.size() > 1U << 20U) {
            std::ranges::sort(borders);
            borders.erase(std::ranges::unique(borders).begin(), borders.end());
        }
    });
    std::ranges::sort(borders);
    borders.erase(std::ranges::unique(borders).begin(), borders.end());
    return borders;
}

/// The smallest number of equal parts with a border near every border; 0 when there is none up to `most`.
std::int64_t guess_parts(const std::vector<std::int64_t>& borders, std::int64_t elements, std::int64_t most) {
    for (std::int64_t parts = 1; parts <= std::min(most, elements / kLeastPart); ++parts) {
        const double part = static_cast<double>(elements) / static_cast<double>(parts);
        const bool fits = std::ranges::all_of(borders, [&](std::int64_t border) {
            const double nearest = std::round(static_cast<double>(border) / part) * part;
            return std::fabs(static_cast<double>(border) - nearest) <= static_cast<double>(kNear);
        });
        if (fits) {
            return parts;
        }
    }
    return 0;
}

} // namespace

Result<std::int64_t> common_chunk(const Schedule& schedule, std::int64_t most_chunks) {
    const std::int64_t elements = schedule.elements();
    std::int64_t chunk = elements;
    for_each_slice(schedule, [&](const Slice& slice) { chunk = std::gcd(std::gcd(chunk, slice.offset), slice.count); });
    if (elements / chunk <= most_chunks) {
        return chunk;
    }
    const std::int64_t parts = guess_parts(borders_of(schedule), elements, most_chunks);
    std::string advice;
    if (parts > 0) {
        const std::int64_t shorter = elements / parts * parts;
        advice = fmt::format("this plan cuts a vector into {} equal chunks when its length is a multiple of {}: take "
                             "{} or {} elements",
                             parts, parts, shorter, shorter + parts);
    } else {
        advice = fmt::format("take a vector of at most {} elements, or a plan with fewer parts", most_chunks);
    }
    return fail(Error(ErrorKind::kInput,
                      fmt::format("{} does not cut its vector of {} elements into equal chunks: the largest chunk that "
                                  "fits all slices has {} elements, which makes {} chunks; MSCCL gets at most {}",
                                  schedule.name(), elements, chunk, elements / chunk, most_chunks))
                    .advise(std::move(advice)));
}

} // namespace railbreak::planner
