// A file that appears whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>

#include "base/error.hpp"

namespace railbreak {

/// Calls `write` with a stream and puts what it wrote into `path`, replacing a file that is there: it is written beside
/// it under another name, brought to disk, then renamed, so that a reader never sees a part and a failure leaves the
/// former file. A symbolic link is followed; what is no regular file (/dev/stdout, a pipe) is written to directly.
/// Errors: kInput with the path and the reason when it cannot be written; whatever `write` returns.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path,
                                      const std::function<Result<void>(std::ostream&)>& write);

} // namespace railbreak
