#include "injectors/hardware/refusal.hpp"

#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr int kKernelNotSupported = 524; // ENOTSUPP of include/linux/errno.h, not meant for user space

Error rephrased(const Error& error, ErrorKind kind, std::string message) {
    Error other(kind, std::move(message));
    for (const auto& [name, value] : error.facts()) {
        other.add_fact(name, value);
    }
    return error.advice().empty() ? other : std::move(other).advise(error.advice());
}

} // namespace

bool says_unsupported(const Error& error) {
    const int code = kernel_errno(error);
    return code == EOPNOTSUPP || code == kKernelNotSupported;
}

Error name_missing(Error error, std::string_view nic, std::string_view mechanism) {
    if (!says_unsupported(error)) {
        return error;
    }
    return rephrased(error, ErrorKind::kRefused, fmt::format("{}: the driver has no {}", nic, mechanism))
        .with("nic", std::string(nic));
}

Error as_teardown(const Error& error) {
    return rephrased(error, ErrorKind::kTeardown, error.message());
}

} // namespace railbreak::injectors::hardware
