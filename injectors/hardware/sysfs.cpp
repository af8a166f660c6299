#include "injectors/hardware/sysfs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::size_t kLargestAttribute = 4096; // a page: sysfs shows no more

ErrorKind kind_of(int error) {
    return error == EPERM || error == EACCES ? ErrorKind::kRefused : ErrorKind::kHarness;
}

std::string full_path(const std::string& root, std::string_view path) {
    return fmt::format("{}/{}", root, path);
}

} // namespace

bool Sysfs::exists(std::string_view path) const {
    return ::access(full_path(root_, path).c_str(), F_OK) == 0;
}

Result<std::string> Sysfs::read(std::string_view path) const {
    const std::string full = full_path(root_, path);
    const UniqueFd fd(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, kLargestAttribute> buffer{};
    const ssize_t got = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
    if (got < 0) {
        return fail_errno(kind_of(errno), "read " + full, errno);
    }
    std::string text(buffer.data(), static_cast<std::size_t>(got));
    constexpr std::string_view kSpace = " \t\n";
    const auto first = text.find_first_not_of(kSpace);
    return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Result<std::uint64_t> Sysfs::read_number(std::string_view path) const {
    const auto text = read(path);
    if (!text) {
        return fail(Error(text.error()));
    }
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text->data() + text->size()) {
        return fail(Error(ErrorKind::kHarness, fmt::format("{}/{} holds no number", root_, path)).with("text", *text));
    }
    return value;
}

Result<void> Sysfs::write(std::string_view path, std::string_view value) const {
    const std::string full = full_path(root_, path);
    const UniqueFd fd(::open(full.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!fd.valid() || ::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
        return fail_errno(kind_of(errno), fmt::format("write \"{}\" to {}", value, full), errno);
    }
    return {};
}

std::vector<std::string> Sysfs::list(std::string_view path) const {
    std::vector<std::string> names;
    const auto close = [](DIR* folder) { ::closedir(folder); };
    const std::unique_ptr<DIR, decltype(close)> folder(::opendir(full_path(root_, path).c_str()), close);
    if (folder == nullptr) {
        return names;
    }
    while (const dirent* entry = ::readdir(folder.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string Sysfs::real_path(std::string_view path) const {
    const auto release = [](char* text) { std::free(text); };
    const std::unique_ptr<char, decltype(release)> real(::realpath(full_path(root_, path).c_str(), nullptr), release);
    return real != nullptr ? std::string(real.get()) : std::string();
}

std::string_view last_part(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

} // namespace railbreak::injectors::hardware
