#include "injectors/netfilter.hpp"

#include <cstdlib>
#include <cstring>

#include <linux/netlink.h>

#include "base/check.hpp"
#include "injectors/netlink.hpp"
#include "injectors/nft_messages.hpp"

namespace railbreak::injectors {

Result<void> commit_nft(int netns_fd, const std::vector<std::string>& messages, std::string_view what) {
    std::vector<std::string> batch;
    if (messages.empty() || !is_nft_begin(messages.front())) {
        batch.push_back(nft_begin());
    }
    batch.insert(batch.end(), messages.begin(), messages.end());
    if (batch.size() == 1) {
        return {}; // nothing to do
    }
    // Older kernels do not acknowledge the end of a batch, so the last message in it is.
    nlmsghdr last{};
    RB_CHECK(batch.back().size() >= sizeof last, "a raw netlink message holds at least its header");
    std::memcpy(&last, batch.back().data(), sizeof last);
    last.nlmsg_flags |= NLM_F_ACK;
    std::memcpy(batch.back().data(), &last, sizeof last);
    batch.push_back(nft_end());
    auto channel = NetlinkChannel::open_in(netns_fd, NETLINK_NETFILTER);
    if (!channel) {
        return fail(std::move(channel.error()));
    }
    auto done = channel->transact(batch, what);
    if (done) {
        return done;
    }
    Error error = std::move(done.error());
    std::string name;
    for (const auto& [fact, value] : error.facts()) {
        if (fact == "message") {
            name = nft_message_name(batch.at(static_cast<std::size_t>(std::atoi(value.c_str()))));
        }
    }
    if (!name.empty()) {
        error.add_fact("nft", std::move(name));
    }
    return fail(std::move(error));
}

Result<std::vector<std::string>> list_nft(int netns_fd, std::string_view request) {
    auto channel = NetlinkChannel::open_in(netns_fd, NETLINK_NETFILTER);
    if (!channel) {
        return fail(std::move(channel.error()));
    }
    std::vector<std::string> found;
    const auto keep = [&](const nlmsghdr& each) {
        found.emplace_back(reinterpret_cast<const char*>(&each), each.nlmsg_len);
    };
    NetlinkMessage message(request);
    const bool dump = (message.header()->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    auto done = dump ? channel->dump(message, "list nftables", keep, [&] { found.clear(); })
                     : channel->query(message, "read nftables", keep);
    if (!done) {
        return fail(std::move(done.error()));
    }
    return found;
}

} // namespace railbreak::injectors
