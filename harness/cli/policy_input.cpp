#include "harness/cli/policy_input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <unistd.h>

#include <fmt/format.h>

#include "base/console.hpp"
#include "harness/agent/safeguard.hpp"

namespace railbreak::cli {

std::optional<std::vector<scenarios::SitePolicy>> read_policies(const CommonOptions& common, const std::string& given) {
    std::vector<std::string> paths;
    const char* chosen = std::getenv("RAILBREAK_POLICY"); // NOLINT(concurrency-mt-unsafe): read at start
    // One that may not be looked at is told as such: it holds all the same.
    const bool host_policy_there = ::access(agent::kHostPolicy, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
    for (const std::string& path : {given, std::string(chosen != nullptr ? chosen : ""),
                                    std::string(host_policy_there ? agent::kHostPolicy : "")}) {
        if (!path.empty() && std::ranges::find(paths, path) == paths.end()) {
            paths.push_back(path);
        }
    }
    std::vector<scenarios::SitePolicy> policies;
    for (const std::string& path : paths) {
        scenarios::Checked<scenarios::SitePolicy> policy = scenarios::load_policy_file(path);
        if (policy) {
            policies.push_back(std::move(*policy));
            continue;
        }
        for (const scenarios::Diagnostic& diagnostic : policy.error()) {
            tell_user(fmt::format("{}\n", diagnostic.to_line()));
        }
        if (common.json) {
            print_error_json(Error(ErrorKind::kInput, fmt::format("{} is no valid site policy", path)));
        }
        return std::nullopt;
    }
    return policies;
}

} // namespace railbreak::cli
