#include "injectors/hardware/qp_error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "injectors/hardware/sysfs.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::uint32_t kMostHandles = 65536; // objects of all kinds share the numbers; a query of a wrong one is cheap
constexpr std::uint32_t kMostDrivers = 64;    // far above the last enum rdma_driver_id
constexpr std::uint32_t kStateBit = 1;        // IB_QP_STATE, enum ib_qp_attr_mask
constexpr std::uint32_t kErrorState = 6;      // IBV_QPS_ERR
constexpr std::string_view kNodePrefix = "/dev/infiniband/uverbs";

/// A verbs descriptor of another process, and the driver behind it.
struct BorrowedVerbs {
    int descriptor = -1; ///< number in that process
    std::string node;
    UniqueFd fd;
    std::uint32_t driver = 0;
};

/// Attribute data of up to eight bytes travels in the attribute itself, more by address.
template <class T> std::uint64_t attribute_data(const T& value) {
    std::uint64_t data = 0;
    if constexpr (sizeof value <= sizeof data) {
        std::memcpy(&data, &value, sizeof value);
    } else {
        data = reinterpret_cast<std::uintptr_t>(&value);
    }
    return data;
}

constexpr std::size_t kMostAttributes = 3;

/// One verbs command by UVERBS_METHOD_INVOKE_WRITE: 0 or an errno.
template <class In, class Out> int invoke(int fd, std::uint32_t driver, std::uint32_t command, const In& in, Out* out) {
    std::array<ib_uverbs_attr, kMostAttributes> attributes{};
    std::size_t count = 0;
    const auto add = [&](std::uint16_t id, std::size_t size, std::uint64_t data) {
        ib_uverbs_attr& attribute = attributes[count++];
        attribute.attr_id = id;
        attribute.len = static_cast<std::uint16_t>(size);
        attribute.flags = UVERBS_ATTR_F_MANDATORY;
        attribute.data = data;
    };
    add(UVERBS_ATTR_WRITE_CMD, sizeof(std::uint64_t), command);
    add(UVERBS_ATTR_CORE_IN, sizeof in, attribute_data(in));
    if (out != nullptr) {
        add(UVERBS_ATTR_CORE_OUT, sizeof *out, reinterpret_cast<std::uintptr_t>(out));
    }
    ib_uverbs_ioctl_hdr header{};
    header.length = static_cast<std::uint16_t>(sizeof header + count * sizeof attributes[0]);
    header.object_id = UVERBS_OBJECT_DEVICE;
    header.method_id = UVERBS_METHOD_INVOKE_WRITE;
    header.num_attrs = static_cast<std::uint16_t>(count);
    header.driver_id = driver;
    // The attributes follow the header in one piece of memory.
    alignas(ib_uverbs_ioctl_hdr) std::array<char, sizeof header + sizeof attributes> request{};
    std::memcpy(request.data(), &header, sizeof header);
    std::memcpy(request.data() + sizeof header, attributes.data(), sizeof attributes);
    return ::ioctl(fd, RDMA_VERBS_IOCTL, request.data()) == 0 ? 0 : errno;
}

/// The state of the queue pair with that handle, or nullopt when the handle is none.
std::optional<QueuePair> query(const BorrowedVerbs& verbs, std::uint32_t handle) {
    ib_uverbs_query_qp in{};
    in.qp_handle = handle;
    in.attr_mask = kStateBit;
    ib_uverbs_query_qp_resp out{};
    if (invoke(verbs.fd.get(), verbs.driver, IB_USER_VERBS_CMD_QUERY_QP, in, &out) != 0) {
        return std::nullopt;
    }
    return QueuePair{verbs.descriptor, verbs.node, handle, static_cast<QueuePairState>(out.qp_state), out.dest_qp_num};
}

/// The driver's number, which every request must name: the one with which the kernel answers.
std::optional<std::uint32_t> find_driver(int fd) {
    for (std::uint32_t driver = 0; driver < kMostDrivers; ++driver) {
        ib_uverbs_query_port in{};
        in.port_num = 1;
        ib_uverbs_query_port_resp out{};
        if (invoke(fd, driver, IB_USER_VERBS_CMD_QUERY_PORT, in, &out) == 0) {
            return driver;
        }
    }
    return std::nullopt;
}

std::string link_target(const std::string& path) {
    std::array<char, 256> text{};
    const ssize_t got = ::readlink(path.c_str(), text.data(), text.size());
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

tl::unexpected<Error> cannot_borrow(pid_t process, int error) {
    const bool gone = error == ESRCH || error == ENOENT || error == EINVAL;
    auto failure =
        fail_errno(gone ? ErrorKind::kInput : ErrorKind::kRefused, fmt::format("look into process {}", process), error);
    if (!gone) {
        return fail(
            std::move(failure.value()).advise("run as the process's user and as its ancestor, or with CAP_SYS_PTRACE"));
    }
    return failure;
}

/// Copies of the process's verbs descriptors on the node (all nodes when empty), by number.
Result<std::vector<BorrowedVerbs>> borrow(pid_t process, const std::string& node) {
    const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0U)));
    if (!handle.valid()) {
        return cannot_borrow(process, errno);
    }
    const Sysfs folder(fmt::format("/proc/{}/fd", process));
    if (::access(folder.root().c_str(), R_OK | X_OK) != 0) {
        return cannot_borrow(process, errno);
    }
    std::vector<BorrowedVerbs> borrowed;
    for (const std::string& name : folder.list(".")) {
        BorrowedVerbs verbs;
        verbs.node = link_target(folder.root() + "/" + name);
        if (!verbs.node.starts_with(kNodePrefix) || (!node.empty() && verbs.node != node)) {
            continue;
        }
        std::from_chars(name.data(), name.data() + name.size(), verbs.descriptor);
        verbs.fd.reset(static_cast<int>(::syscall(SYS_pidfd_getfd, handle.get(), verbs.descriptor, 0U)));
        if (!verbs.fd.valid() && errno == EBADF) {
            continue; // closed meanwhile
        }
        if (!verbs.fd.valid()) {
            return cannot_borrow(process, errno);
        }
        if (const auto driver = find_driver(verbs.fd.get())) {
            verbs.driver = *driver;
            borrowed.push_back(std::move(verbs));
        }
    }
    std::sort(borrowed.begin(), borrowed.end(),
              [](const BorrowedVerbs& a, const BorrowedVerbs& b) { return a.descriptor < b.descriptor; });
    return borrowed;
}

} // namespace

std::string_view to_string(QueuePairState state) {
    switch (state) {
    case QueuePairState::kReset: return "reset";
    case QueuePairState::kInit: return "init";
    case QueuePairState::kReadyToReceive: return "rtr";
    case QueuePairState::kReadyToSend: return "rts";
    case QueuePairState::kSendQueueDrain: return "sqd";
    case QueuePairState::kSendQueueError: return "sqe";
    case QueuePairState::kError: return "error";
    }
    return "?";
}

Result<std::vector<QueuePair>> list_queue_pairs(pid_t process) {
    const auto borrowed = borrow(process, "");
    if (!borrowed) {
        return fail(Error(borrowed.error()));
    }
    std::vector<QueuePair> pairs;
    for (const BorrowedVerbs& verbs : *borrowed) {
        for (std::uint32_t handle = 0; handle < kMostHandles; ++handle) {
            if (auto pair = query(verbs, handle)) {
                pairs.push_back(std::move(*pair));
            }
        }
    }
    return pairs;
}

Result<std::size_t> force_queue_pairs_to_error(pid_t process, const std::string& node) {
    const auto borrowed = borrow(process, node);
    if (!borrowed) {
        return fail(Error(borrowed.error()));
    }
    std::size_t changed = 0;
    for (const BorrowedVerbs& verbs : *borrowed) {
        for (std::uint32_t handle = 0; handle < kMostHandles; ++handle) {
            const auto pair = query(verbs, handle);
            if (!pair || pair->state == QueuePairState::kError) {
                continue;
            }
            ib_uverbs_modify_qp in{};
            in.qp_handle = handle;
            in.attr_mask = kStateBit;
            in.qp_state = kErrorState;
            const int error = invoke<ib_uverbs_modify_qp, char>(verbs.fd.get(), verbs.driver,
                                                                IB_USER_VERBS_CMD_MODIFY_QP, in, nullptr);
            const auto now = query(verbs, handle);
            if (!now) {
                continue; // destroyed meanwhile
            }
            if (error != 0 || now->state != QueuePairState::kError) {
                return fail_errno(ErrorKind::kHarness,
                                  fmt::format("take a queue pair of process {} to the error state", process),
                                  error != 0 ? error : EPROTO);
            }
            ++changed;
        }
    }
    return changed;
}

} // namespace railbreak::injectors::hardware
