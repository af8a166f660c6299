// Reads an MSCCL program and proves that it is an AllReduce, from the XML alone.
#pragma once

#include <string>

namespace railbreak::planner::test {

/// Empty when the program is proven: well-formed and numbered as runtimes want it; every connection in one thread block
/// a side; each send matched by a receive of the same chunks, in order; no deadlock when a connection buffers one chunk
/// and a longer message waits for its receiver; every two accesses to a chunk of which one changes it ordered by steps,
/// waits and messages; every rank's values added once, only complete sums copied, all sums complete in the end.
/// Otherwise what is wrong. At most 64 ranks.
[[nodiscard]] std::string what_is_wrong_with_program(const std::string& xml);

} // namespace railbreak::planner::test
