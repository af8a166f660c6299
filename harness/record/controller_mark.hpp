// Which process records a run, in a way that survives the reuse of its pid: so that an unfinished run of a controller
// that is gone can be told from one that goes on.
#pragma once

#include <string>
#include <string_view>

namespace railbreak::record {

/// This process: "BOOT_ID PID_NAMESPACE PID START_TICKS". Empty where /proc does not tell.
[[nodiscard]] std::string this_controller();

/// False when the process behind a mark of this_controller() is certainly gone: the machine has been booted since, or
/// no process of that pid and start time runs. An empty mark (a run of an older railbreak) counts as gone. True in
/// doubt: a process of another pid namespace cannot be seen from here.
[[nodiscard]] bool may_be_running(std::string_view mark);

} // namespace railbreak::record
