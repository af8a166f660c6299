#include "injectors/hardware/ib_port.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <infiniband/umad.h>

#include "injectors/hardware/loaded_library.hpp"
#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr int kDirectedRouteClass = 0x81;
constexpr int kClassVersion = 1;
constexpr int kPermissiveLid = 0xffff;
constexpr int kRetries = 2; // of the kernel, each waiting its share of the time

std::string to_line(const IbPortInfo& info) {
    return fmt::format("{}, {}, width {}/{}, speed {}/{}, extended {}/{} (enabled/active)", to_string(info.state),
                       to_string(info.physical_state), info.width_enabled, info.width_active, info.speed_enabled,
                       info.speed_active, info.extended_speed_enabled, info.extended_speed_active);
}

tl::unexpected<Error> differs(const IbPort& port, std::string_view wanted, const IbPortInfo& seen) {
    return fail(Error(ErrorKind::kHarness, fmt::format("port {} of {} does not show what was set", port.address().port,
                                                       port.address().device))
                    .with("wanted", std::string(wanted))
                    .with("read", to_line(seen)));
}

Result<void> check_mask(std::string_view what, std::uint8_t mask, std::uint8_t supported) {
    if (mask != 0 && (mask & ~supported) == 0) {
        return {};
    }
    return fail(Error(ErrorKind::kInput, fmt::format("the port does not support these {}", what))
                    .with("asked", std::to_string(mask))
                    .with("supported", std::to_string(supported)));
}

/// Trains the link anew with the masks that are set.
Result<void> retrain(IbPort& port, const IbFaultOptions& options, Deadline deadline) {
    IbPortChange change;
    change.physical_state = IbPhysicalState::kPolling;
    change.lid_when_none = options.lid_when_none;
    return port.set(change, deadline);
}

/// Writes masks one Set each (an agent may refuse one and have taken another), then reads the port.
Result<IbPortInfo> write_masks(IbPort& port, const IbPortInfo& masks, bool extended, const IbFaultOptions& options,
                               Deadline deadline) {
    IbPortChange width;
    width.width_enabled = masks.width_enabled;
    IbPortChange speed;
    speed.speed_enabled = masks.speed_enabled;
    IbPortChange extension;
    extension.extended_speed_enabled = masks.extended_speed_enabled;
    std::vector<IbPortChange> changes{width, speed};
    if (extended) {
        changes.push_back(extension);
    }
    for (IbPortChange& change : changes) {
        change.lid_when_none = options.lid_when_none;
        if (auto done = port.set(change, deadline); !done) {
            return fail(std::move(done.error()));
        }
    }
    return port.query(deadline);
}

bool same_masks(const IbPortInfo& a, const IbPortInfo& b) {
    return a.width_enabled == b.width_enabled && a.speed_enabled == b.speed_enabled &&
           a.extended_speed_enabled == b.extended_speed_enabled;
}

/// Writes masks, proves them and retrains.
Result<void> apply_masks(IbPort& port, const IbPortInfo& wanted, const IbFaultOptions& options, Deadline deadline) {
    const auto seen = write_masks(port, wanted, wanted.extended_speed_supported != 0, options, deadline);
    if (!seen) {
        return fail(Error(seen.error()));
    }
    if (!same_masks(*seen, wanted)) {
        return differs(port, to_line(wanted), *seen);
    }
    return retrain(port, options, deadline);
}

} // namespace

/// The functions of libibumad.
struct IbPort::Library {
    decltype(&umad_init) init = nullptr;
    decltype(&umad_open_port) open_port = nullptr;
    decltype(&umad_close_port) close_port = nullptr;
    decltype(&umad_register) register_agent = nullptr;
    decltype(&umad_unregister) unregister_agent = nullptr;
    decltype(&umad_size) size = nullptr;
    decltype(&umad_get_mad) get_mad = nullptr;
    decltype(&umad_status) status = nullptr;
    decltype(&umad_set_addr) set_addr = nullptr;
    decltype(&umad_send) send = nullptr;
    decltype(&umad_recv) recv = nullptr;

    static Result<std::shared_ptr<const Library>> load() {
        auto loaded = LoadedLibrary::load("libibumad.so.3", "install it with: apt-get install libibumad3");
        if (!loaded) {
            return fail(std::move(loaded.error()));
        }
        auto library = std::make_shared<Library>();
        loaded->require("umad_init", library->init);
        loaded->require("umad_open_port", library->open_port);
        loaded->require("umad_close_port", library->close_port);
        loaded->require("umad_register", library->register_agent);
        loaded->require("umad_unregister", library->unregister_agent);
        loaded->require("umad_size", library->size);
        loaded->require("umad_get_mad", library->get_mad);
        loaded->require("umad_status", library->status);
        loaded->require("umad_set_addr", library->set_addr);
        loaded->require("umad_send", library->send);
        loaded->require("umad_recv", library->recv);
        if (auto complete = loaded->check(); !complete) {
            return fail(std::move(complete.error()));
        }
        return library;
    }
};

IbPort::IbPort(std::shared_ptr<const Library> library, IbPortAddress address, std::uint64_t management_key)
    : library_(std::move(library)), address_(std::move(address)), management_key_(management_key) {}

IbPort::IbPort(IbPort&& other) noexcept
    : library_(std::move(other.library_)), address_(std::move(other.address_)), management_key_(other.management_key_),
      transaction_(other.transaction_), handle_(std::exchange(other.handle_, -1)),
      agent_(std::exchange(other.agent_, -1)) {}

IbPort& IbPort::operator=(IbPort&& other) noexcept {
    if (this != &other) {
        close();
        library_ = std::move(other.library_);
        address_ = std::move(other.address_);
        management_key_ = other.management_key_;
        transaction_ = other.transaction_;
        handle_ = std::exchange(other.handle_, -1);
        agent_ = std::exchange(other.agent_, -1);
    }
    return *this;
}

IbPort::~IbPort() {
    close();
}

void IbPort::close() {
    if (agent_ >= 0) {
        library_->unregister_agent(handle_, agent_);
    }
    if (handle_ >= 0) {
        library_->close_port(handle_);
    }
    agent_ = -1;
    handle_ = -1;
}

Result<IbPort> IbPort::open(IbPortAddress address, std::uint64_t management_key) {
    auto library = Library::load();
    if (!library) {
        return fail(std::move(library.error()));
    }
    (*library)->init();
    IbPort port(std::move(*library), std::move(address), management_key);
    const IbPortAddress& at = port.address_;
    const std::string what = fmt::format("open the management node of {} port {}", at.device, at.device_port);
    port.handle_ = port.library_->open_port(at.device.c_str(), at.device_port);
    if (port.handle_ < 0) {
        // The library gives -errno, or a code of its own for a device that it does not find.
        const int error = -port.handle_;
        port.handle_ = -1;
        return fail_errno(ErrorKind::kRefused, what, ::strerrorname_np(error) != nullptr ? error : ENODEV);
    }
    port.agent_ = port.library_->register_agent(port.handle_, kDirectedRouteClass, kClassVersion, 0, nullptr);
    if (port.agent_ < 0) {
        return fail_errno(ErrorKind::kRefused, what, -std::exchange(port.agent_, -1));
    }
    return port;
}

Result<SmpData> IbPort::exchange(SmpRequest request, Deadline deadline) {
    request.route = address_.route;
    request.transaction = ++transaction_;
    request.management_key = management_key_;
    const auto packet = encode_smp(request);
    if (!packet) {
        return fail(Error(packet.error()));
    }
    const std::size_t header = library_->size();
    std::vector<std::uint8_t> buffer(header + packet->size(), 0);
    std::memcpy(library_->get_mad(buffer.data()), packet->data(), packet->size());
    library_->set_addr(buffer.data(), kPermissiveLid, 0, 0, 0);
    const int patience = std::max(1, deadline.poll_timeout_ms() / (kRetries + 1));
    if (library_->send(handle_, agent_, buffer.data(), static_cast<int>(packet->size()), patience, kRetries) < 0) {
        return fail_errno(ErrorKind::kHarness, "send a management packet", errno);
    }
    return receive(request.transaction, deadline);
}

Result<SmpData> IbPort::receive(std::uint32_t transaction, Deadline deadline) {
    const std::size_t header = library_->size();
    while (true) {
        std::vector<std::uint8_t> buffer(header + kSmpBytes, 0);
        int length = static_cast<int>(kSmpBytes);
        const int got = library_->recv(handle_, buffer.data(), &length, deadline.poll_timeout_ms());
        // The kernel hands an unanswered request back with a status when its retries are used up.
        const int status = got < 0 ? -got : library_->status(buffer.data());
        SmpBytes packet{};
        std::memcpy(packet.data(), library_->get_mad(buffer.data()), packet.size());
        const bool ours = got >= 0 && smp_transaction(packet) == transaction;
        if (status != 0 && (got < 0 || ours)) {
            return fail_errno(ErrorKind::kHarness, "reach the port's management agent",
                              status == EWOULDBLOCK ? ETIMEDOUT : status);
        }
        if (ours) {
            return decode_smp_answer(packet);
        }
        if (deadline.passed()) {
            return fail_errno(ErrorKind::kHarness, "reach the port's management agent", ETIMEDOUT);
        }
    }
}

Result<IbPortInfo> IbPort::query(Deadline deadline) {
    SmpRequest request;
    request.attribute = kSmpPortInfo;
    request.modifier = address_.port;
    const auto data = exchange(request, deadline);
    if (!data) {
        return fail(Error(data.error()));
    }
    return decode_port_info(*data);
}

Result<void> IbPort::set(const IbPortChange& change, Deadline deadline) {
    SmpRequest request;
    request.attribute = kSmpPortInfo;
    request.modifier = address_.port;
    const auto read = exchange(request, deadline);
    if (!read) {
        return fail(Error(read.error()));
    }
    auto wanted = encode_port_change(*read, change);
    if (!wanted) {
        return fail(std::move(wanted.error()));
    }
    request.set = true;
    request.data = *wanted;
    if (auto done = exchange(request, deadline); !done) {
        return fail(std::move(done.error()));
    }
    return {};
}

Result<IbPortAddress> IbPort::far_end(Deadline deadline) {
    IbPortAddress far = address_;
    far.route.push_back(address_.port);
    std::swap(address_, far);
    SmpRequest request;
    request.attribute = kSmpNodeInfo;
    const auto node = exchange(request, deadline);
    std::swap(address_, far);
    if (!node) {
        return fail(Error(node.error()));
    }
    far.port = node_info_local_port(*node);
    return far;
}

Result<void> disable_ib_port(IbPort& port, const IbFaultOptions& options, Deadline deadline) {
    IbPortChange change;
    change.physical_state = IbPhysicalState::kDisabled;
    change.lid_when_none = options.lid_when_none;
    if (auto done = port.set(change, deadline); !done) {
        return done;
    }
    const auto seen = port.query(deadline);
    if (!seen) {
        return fail(Error(seen.error()));
    }
    return seen->physical_state == IbPhysicalState::kDisabled ? Result<void>() : differs(port, "disabled", *seen);
}

Result<void> set_ib_width(IbPort& port, std::uint8_t mask, const IbFaultOptions& options, Deadline deadline) {
    auto wanted = port.query(deadline);
    if (!wanted) {
        return fail(std::move(wanted.error()));
    }
    if (auto sound = check_mask("widths", mask, wanted->width_supported); !sound) {
        return sound;
    }
    wanted->width_enabled = mask;
    return apply_masks(port, *wanted, options, deadline);
}

Result<void> set_ib_speed(IbPort& port, std::uint8_t mask, std::uint8_t extended, const IbFaultOptions& options,
                          Deadline deadline) {
    auto wanted = port.query(deadline);
    if (!wanted) {
        return fail(std::move(wanted.error()));
    }
    if (auto sound = check_mask("speeds", mask, wanted->speed_supported); !sound) {
        return sound;
    }
    if (wanted->extended_speed_supported != 0) {
        auto sound = check_mask("extended speeds", extended, wanted->extended_speed_supported);
        if (!sound && extended != kIbExtendedSpeedsOff) {
            return sound;
        }
        wanted->extended_speed_enabled = extended;
    }
    wanted->speed_enabled = mask;
    return apply_masks(port, *wanted, options, deadline);
}

Result<void> restore_ib_port(IbPort& port, const IbPortInfo& former, const IbFaultOptions& options, Deadline deadline) {
    const bool was_disabled = former.physical_state == IbPhysicalState::kDisabled;
    auto done = apply_masks(port, former, options, deadline);
    if (done && was_disabled) {
        done = disable_ib_port(port, options, deadline);
    }
    if (done) {
        const auto seen = port.query(deadline);
        if (!seen) {
            done = fail(Error(seen.error()));
        } else if ((seen->physical_state == IbPhysicalState::kDisabled) != was_disabled || !same_masks(*seen, former)) {
            done = differs(port, to_line(former), *seen);
        }
    }
    return done ? done : fail(as_teardown(done.error()));
}

bool ib_port_as_before(const IbPortInfo& now, const IbPortInfo& former) {
    return now.state == former.state && now.physical_state == former.physical_state && same_masks(now, former) &&
           now.width_active == former.width_active && now.speed_active == former.speed_active &&
           now.extended_speed_active == former.extended_speed_active;
}

} // namespace railbreak::injectors::hardware
