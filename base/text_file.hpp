// Small files of /proc and the like, whole.
#pragma once

#include <string>

namespace railbreak {

/// The bytes of a file; empty when it cannot be read. A process that ends while its /proc file is read fails the read,
/// which is no exception here: to the caller it has been gone all along.
[[nodiscard]] std::string read_small_file(const std::string& path);

} // namespace railbreak
