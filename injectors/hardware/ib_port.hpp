// Faults of an InfiniBand port by subnet management packets, through libibumad (loaded at run time).
//
// They act on the port itself: all its traffic, kernel bypass included. Sending needs read and write access to the
// node infiniband/umadN; where the fabric is protected by M_Keys a Set without the key times out. Disable the port of
// the switch rather than the victim's own: but then enable it again from a node that does not reach the switch through
// that port. After an enable or a retrain the subnet manager must bring the port from Initialize to Active: seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "injectors/hardware/ib_mad.hpp"

namespace railbreak::injectors::hardware {

/// Which port is meant: seen from one port of this host, along a route.
struct IbPortAddress {
    std::string device;              ///< RDMA device of this host to send from: "mlx5_0"
    int device_port = 1;             ///< its port, from 1
    std::vector<std::uint8_t> route; ///< output port at each hop; empty: the device itself
    std::uint8_t port = 1;           ///< port of the node at the route's end
    bool operator==(const IbPortAddress&) const = default;
};

/// A way to the management agent of one port. Not for several threads at once.
class IbPort {
public:
    /// Opens the device's management node. kRefused without libibumad or without access to the node, or when there is
    /// no such device or port.
    [[nodiscard]] static Result<IbPort> open(IbPortAddress address, std::uint64_t management_key = 0);
    IbPort(IbPort&&) noexcept;
    IbPort& operator=(IbPort&&) noexcept;
    ~IbPort();

    [[nodiscard]] const IbPortAddress& address() const { return address_; }
    /// Reads the port. errno=ETIMEDOUT when no answer came before the deadline.
    [[nodiscard]] Result<IbPortInfo> query(Deadline deadline);
    /// Reads the port, then sets what the change names. Proof is the caller's or the functions' below.
    [[nodiscard]] Result<void> set(const IbPortChange& change, Deadline deadline);
    /// The far end of this port's cable: one hop further. Needs the link up.
    [[nodiscard]] Result<IbPortAddress> far_end(Deadline deadline);

private:
    struct Library;
    IbPort(std::shared_ptr<const Library> library, IbPortAddress address, std::uint64_t management_key);
    [[nodiscard]] Result<SmpData> exchange(SmpRequest request, Deadline deadline);
    [[nodiscard]] Result<SmpData> receive(std::uint32_t transaction, Deadline deadline);
    void close();
    std::shared_ptr<const Library> library_;
    IbPortAddress address_;
    std::uint64_t management_key_ = 0;
    std::uint32_t transaction_ = 1;
    int handle_ = -1; ///< libibumad's port id
    int agent_ = -1;
};

/// What may be done to a port that no subnet manager has configured: see IbPortChange::lid_when_none.
struct IbFaultOptions {
    std::optional<std::uint16_t> lid_when_none;
};

/// Disables the port and proves by read-back that its physical state is Disabled.
[[nodiscard]] Result<void> disable_ib_port(IbPort& port, const IbFaultOptions& options, Deadline deadline);
/// Allows only the widths of the mask, proves the mask by read-back and retrains the link. kInput for a mask with bits
/// that the port does not support, or none. What the link runs at afterwards is in width_active, once it is up.
[[nodiscard]] Result<void> set_ib_width(IbPort& port, std::uint8_t mask, const IbFaultOptions& options,
                                        Deadline deadline);
/// The same for the speeds; `extended` is the mask of the extended ones or kIbExtendedSpeedsOff, ignored where the port
/// has none.
[[nodiscard]] Result<void> set_ib_speed(IbPort& port, std::uint8_t mask, std::uint8_t extended,
                                        const IbFaultOptions& options, Deadline deadline);
/// Puts the enabled widths and speeds of an earlier query() back, enables and retrains the port (disables it again if
/// it was disabled then), and proves the masks and whether it is disabled; kTeardown otherwise. Whether it is Active
/// again (ib_port_as_before) takes the subnet manager some seconds.
[[nodiscard]] Result<void> restore_ib_port(IbPort& port, const IbPortInfo& former, const IbFaultOptions& options,
                                           Deadline deadline);
/// True when state, masks and active width and speed are those of `former`.
[[nodiscard]] bool ib_port_as_before(const IbPortInfo& now, const IbPortInfo& former);

} // namespace railbreak::injectors::hardware
