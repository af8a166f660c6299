// Work that a process does under another identity and never comes back from: another user's, or that of a user
// namespace. So a forked child does it.
#pragma once

#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace railbreak::injectors {

/// Called by the child from time to time: it is at work, and may go on for as long again.
using Progress = std::function<void()>;

/// Runs `body` in a forked child, which has one thread and ends with it, and gives the bytes that it returns. A child
/// that is silent for longer than `patience` is killed. kHarness when it gave no whole answer.
[[nodiscard]] Result<std::string> run_in_child(const std::function<std::string(const Progress&)>& body,
                                               Nanoseconds patience);

} // namespace railbreak::injectors
