// The exact optimum of the exclusive model for any set of stragglers, by linear programming in exact fractions.
#pragma once

#include <vector>

#include "base/rational.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective::bounds {

/// T/n of the best possible AllReduce with many segments: the smallest largest weighted degree of a fractional
/// spanning tree. `stragglers`: slowdowns >= 1 of 0..6 stragglers (the program doubles with each); at least one of the
/// `ranks` is healthy.
[[nodiscard]] Rational exact_optimum(Rank ranks, const std::vector<Rational>& stragglers);

} // namespace railbreak::collective::bounds
