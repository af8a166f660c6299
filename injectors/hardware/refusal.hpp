// How a missing mechanism is told apart from a mechanism that failed.
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

/// True when the Error carries the errno by which drivers say that they lack an operation (EOPNOTSUPP; some drivers
/// let the kernel's internal ENOTSUPP, 524, through).
[[nodiscard]] bool says_unsupported(const Error& error);

/// An unsupported operation becomes a refusal "<nic>: the driver has no <mechanism>" with the facts kept; every other
/// Error is given back as it is.
[[nodiscard]] Error name_missing(Error error, std::string_view nic, std::string_view mechanism);

/// The failure of an undo: kind kTeardown, the same words, facts and advice.
[[nodiscard]] Error as_teardown(const Error& error);

} // namespace railbreak::injectors::hardware
