#include "injectors/process_control.hpp"

namespace railbreak::injectors {

Result<std::optional<ProcessRecord>> read_process(std::int32_t) {
    return fail(ErrorKind::kRefused, "this build cannot look at processes");
}

Result<void> send_signal(const ProcessIdentity&, int) {
    return fail(ErrorKind::kRefused, "this build cannot signal processes");
}

} // namespace railbreak::injectors
