// A process loses its RDMA connections: its queue pairs go to the error state, without its help.
//
// The agent borrows the process's verbs descriptors (pidfd_getfd) and modifies every queue pair behind them by the
// ioctl form of MODIFY_QP (rdma/ib_user_verbs.h); the older write form looks at who opened the descriptor and refuses.
// It takes the permission to trace the process: same user and dumpable (under Yama an ancestor of it), or
// CAP_SYS_PTRACE. Posted work ends with IBV_WC_WR_FLUSH_ERR. There is no undo: the process has to connect anew. Queues
// made past the kernel's verbs (mlx5 DevX) are not seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

/// enum ibv_qp_state.
enum class QueuePairState : std::uint8_t {
    kReset,
    kInit,
    kReadyToReceive,
    kReadyToSend,
    kSendQueueDrain,
    kSendQueueError,
    kError,
};
/// "reset", "init", "rtr", "rts", "sqd", "sqe", "error".
[[nodiscard]] std::string_view to_string(QueuePairState state);

/// A queue pair of a process.
struct QueuePair {
    int descriptor = -1;      ///< the process's number of the verbs descriptor
    std::string node;         ///< "/dev/infiniband/uverbs0"
    std::uint32_t handle = 0; ///< the kernel's number of the object in that descriptor's context
    QueuePairState state = QueuePairState::kReset;
    std::uint32_t peer = 0; ///< number of the queue pair at the other end
    bool operator==(const QueuePair&) const = default;
};

/// All queue pairs of the process, by descriptor and handle; empty when it uses no verbs. kInput when there is no such
/// process, kRefused when it may not be looked into.
[[nodiscard]] Result<std::vector<QueuePair>> list_queue_pairs(pid_t process);

/// Takes every queue pair of the process on that node ("" for all nodes) to the error state and proves it by query;
/// gives how many there were. Those that are in the error state already are left alone. Errors as above.
[[nodiscard]] Result<std::size_t> force_queue_pairs_to_error(pid_t process, const std::string& node = "");

} // namespace railbreak::injectors::hardware
