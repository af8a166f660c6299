// The file half of HostOps on the running system: journal files, small kernel files, cgroup folders, ballast.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors::host_files {

/// As the functions of the same name of HostOps.
[[nodiscard]] Result<void> make_folder(const std::string& path);
[[nodiscard]] Result<UniqueFd> create_file(const std::string& folder);
[[nodiscard]] Result<void> publish_file(int fd, const std::string& path);
[[nodiscard]] Result<void> append_to_file(int fd, std::string_view bytes);
[[nodiscard]] Result<void> sync_file(int fd);
[[nodiscard]] Result<void> sync_folder(const std::string& path);
[[nodiscard]] Result<void> truncate_file(int fd, std::uint64_t size);
[[nodiscard]] Result<void> remove_file(const std::string& path);
[[nodiscard]] Result<std::string> read_file(const std::string& path);
[[nodiscard]] Result<std::vector<std::string>> list_folder(const std::string& path);
[[nodiscard]] Result<void> write_file(const std::string& path, std::string_view text);
[[nodiscard]] Result<void> make_cgroup(const std::string& path);
[[nodiscard]] Result<void> remove_cgroup(const std::string& path);
[[nodiscard]] Result<FileSystemRecord> file_system(const std::string& path);
[[nodiscard]] Result<bool> may_write(const std::string& path);
[[nodiscard]] Result<bool> wait_file(const std::string& path, std::string_view text, Deadline deadline);
[[nodiscard]] Result<std::optional<ByteCount>> allocated(const std::string& path);
[[nodiscard]] Result<void> may_allocate(const std::string& folder);
[[nodiscard]] Result<void> make_ballast(const std::string& path, ByteCount size);

} // namespace railbreak::injectors::host_files
