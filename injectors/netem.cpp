#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

Result<void> add_netem(NetlinkChannel&, int, TcHandle, TcHandle, const NetemShape&) {
    return fail(ErrorKind::kRefused, "this build has no netem");
}
Result<void> change_netem(NetlinkChannel&, int, TcHandle, TcHandle, const NetemShape&) {
    return fail(ErrorKind::kRefused, "this build has no netem");
}

} // namespace railbreak::injectors
