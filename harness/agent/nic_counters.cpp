#include "harness/agent/nic_counters.hpp"

#include "injectors/host_records.hpp"

namespace railbreak::agent {

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
