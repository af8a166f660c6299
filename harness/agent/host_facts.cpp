#include "harness/agent/host_facts.hpp"

#include <array>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "injectors/host_records.hpp"

namespace railbreak::agent {

std::string host_name() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

std::string netns_inode() {
    struct stat info {};
    return ::stat("/proc/self/ns/net", &info) == 0 ? std::to_string(info.st_ino) : "";
}

std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string line;
    std::getline(file, line);
    return line;
}

Result<launch::Json> nic_counters() {
    Result<injectors::NetlinkChannel> channel = injectors::NetlinkChannel::open();
    if (!channel) {
        return fail(std::move(channel.error()));
    }
    const Result<std::vector<injectors::LinkRecord>> links = injectors::list_links(*channel);
    if (!links) {
        return fail(Error(links.error()));
    }
    launch::Json nics = launch::Json::array();
    for (const injectors::LinkRecord& link : *links) {
        nics.push_back({{"name", link.name}, {"tx_bytes", link.sent_bytes}, {"rx_bytes", link.received_bytes}});
    }
    return launch::Json{{"nics", std::move(nics)}};
}

} // namespace railbreak::agent
