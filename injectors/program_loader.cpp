#include "injectors/program_loader.hpp"

namespace railbreak::injectors {

namespace {
tl::unexpected<Error> none() {
    return fail(ErrorKind::kRefused, "this build has no packet program");
}
} // namespace

Result<void> attach_packet_program(NetlinkChannel&, int, TcDirection, std::uint16_t, const PacketProgram&) {
    return none();
}
Result<void> change_packet_program(NetlinkChannel&, int, TcDirection, std::uint16_t, const PacketProgram&) {
    return none();
}
Result<std::optional<PacketProgramRecord>> read_packet_program(NetlinkChannel&, int, TcDirection, std::uint16_t) {
    return none();
}
Result<void> delete_packet_program(NetlinkChannel&, int, TcDirection, std::uint16_t) {
    return none();
}

} // namespace railbreak::injectors
