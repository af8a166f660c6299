// One TCP connection between two network namespaces, with its sender bound to an address.
#pragma once

#include <cstddef>
#include <string>

#include "base/fd.hpp"

namespace railbreak::injectors {

class Stream {
public:
    /// Connects `near` (an address in the namespace `near_netns`) to `far`; a test failure when that does not work.
    Stream(int near_netns, const std::string& near, int far_netns, const std::string& far);

    /// Sends so many bytes from near to far and reads them there. False when they do not all get there.
    [[nodiscard]] bool carry(std::size_t bytes);

private:
    UniqueFd near_;
    UniqueFd far_;
};

} // namespace railbreak::injectors
