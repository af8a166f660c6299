#include "harness/cli/host_choice.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/lab/lab.hpp"

namespace railbreak::cli {

namespace {

using controller::HostChannel;

HostChannel channel_to(const std::string& lab, const std::string& host, const std::string& executable) {
    return {fmt::format("{}:{}", lab, host),
            {executable, "lab", "exec", lab, host, "--", executable, "agent", "--stdio"}};
}

tl::unexpected<Error> no_such_lab(std::string_view name, const std::vector<lab::LabSummary>& labs) {
    std::vector<std::string> names;
    for (const lab::LabSummary& lab : labs) {
        names.push_back(lab.spec.name);
    }
    return fail(Error(ErrorKind::kInput, name == "all" ? "no lab is up" : fmt::format("there is no lab {} up", name))
                    .advise(names.empty() ? "make one with: railbreak lab up NAME"
                                          : fmt::format("labs that are up: {}", fmt::join(names, ", "))));
}

std::vector<std::string> split(std::string_view words) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= words.size();) {
        const std::size_t end = std::min(words.find(',', begin), words.size());
        parts.emplace_back(words.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

} // namespace

Result<std::vector<HostChannel>> choose_hosts(std::string_view words, const std::string& executable) {
    Result<std::vector<lab::LabSummary>> labs = lab::lab_list();
    if (!labs) {
        return fail(std::move(labs.error()));
    }
    std::erase_if(*labs, [](const lab::LabSummary& lab) { return !lab.alive; });
    const std::size_t colon = words.find(':');
    const std::string_view name = words.substr(0, colon);
    std::vector<std::string> wanted;
    if (colon != std::string_view::npos) {
        wanted = split(words.substr(colon + 1));
    }
    const bool every_lab = words == "all";
    std::vector<HostChannel> chosen;
    for (const lab::LabSummary& lab : *labs) {
        if (!every_lab && lab.spec.name != name) {
            continue;
        }
        std::vector<std::string> there;
        for (const lab::LabHost& host : lab::hosts_of(lab.spec)) {
            there.push_back(host.name);
        }
        for (const std::string& host : wanted.empty() ? there : wanted) {
            if (std::ranges::find(there, host) == there.end()) {
                return fail(Error(ErrorKind::kInput, fmt::format("the lab {} has no host \"{}\"", name, host))
                                .advise(fmt::format("its hosts are {}", fmt::join(there, ", "))));
            }
            HostChannel channel = channel_to(lab.spec.name, host, executable);
            if (std::ranges::find(chosen, channel.name, &HostChannel::name) == chosen.end()) {
                chosen.push_back(std::move(channel));
            }
        }
    }
    if (chosen.empty()) {
        return no_such_lab(name, *labs);
    }
    return chosen;
}

} // namespace railbreak::cli
