// Words to the person at the terminal, on stderr.
#pragma once

#include <string_view>

namespace railbreak {

/// Writes text to stderr as it is. That nobody can read it (a terminal that hung up, a closed pipe, a full disk) is
/// dropped: a run that has faults in force must go on to revert them, whoever listens.
void tell_user(std::string_view text) noexcept;

/// Makes the descriptors 0 to 2 exist: a caller may have closed them, and then the next file opened, a database or a
/// socket, would take the number and receive what is printed. The stand-ins fail when used, as the closed ones would.
void occupy_standard_descriptors() noexcept;

} // namespace railbreak
