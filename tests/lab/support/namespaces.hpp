// Network namespaces of a run, and who is inside them.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace railbreak::tests {

/// A network namespace. The kernel gives the lowest free number to the next namespace that anybody makes, so the number
/// alone may soon be that of a stranger's.
struct NetworkNamespace {
    std::string link;         ///< "net:[4026532247]"
    std::uint64_t cookie = 0; ///< never used twice; 0 when it cannot be read
    auto operator<=>(const NetworkNamespace&) const = default;
};

/// Namespaces that the processes of a run are in, apart from this process's own.
[[nodiscard]] std::set<NetworkNamespace> namespaces_of(const std::filesystem::path& home);
/// Waits until no process of the machine is in any of them. A killed process stays inside for a while after its memory,
/// and with it all that tells whose it is, has gone. Gives one line about each that is still there.
[[nodiscard]] std::vector<std::string> wait_until_uninhabited(const std::set<NetworkNamespace>& namespaces,
                                                              Nanoseconds patience);

} // namespace railbreak::tests
