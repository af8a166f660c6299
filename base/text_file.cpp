#include "base/text_file.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace railbreak {

std::string read_small_file(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    std::array<char, 4096> piece{};
    while (file.valid()) {
        const ssize_t length = ::read(file.get(), piece.data(), piece.size());
        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length < 0) {
            return {};
        }
        if (length == 0) {
            break;
        }
        text.append(piece.data(), static_cast<std::size_t>(length));
    }
    return text;
}

} // namespace railbreak
