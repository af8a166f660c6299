// Assertions for programmer errors. They stay on in release builds: a broken invariant in a tool that acts as
// root on other people's hosts must stop it, not be optimised away.
#pragma once

namespace railbreak::detail {
/// Prints file, line, condition and why to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);
} // namespace railbreak::detail

/// Aborts with a message unless `condition` holds. `why` is a string literal that names the broken invariant.
#define RB_CHECK(condition, why)                                                                                       \
    (static_cast<bool>(condition) ? static_cast<void>(0)                                                               \
                                  : ::railbreak::detail::check_failed(__FILE__, __LINE__, #condition, why))
