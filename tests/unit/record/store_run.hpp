// Puts a whole RunData through a recorder, as a controller would do it row by row.
#pragma once

#include "harness/record/recorder.hpp"

namespace railbreak::record {

/// Stores everything of `data` and gives the id of the run.
[[nodiscard]] Result<std::int64_t> store_run(Recorder& recorder, RunData data);

} // namespace railbreak::record
