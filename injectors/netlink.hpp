// A request/acknowledge channel to the kernel's netlink, on raw sockets with libnl-3's message builder.
//
// libnl 3.7 folds errno into its own codes, drops the extended acknowledgement, and its tbf setter wraps at 34 Gbit/s
// while reporting success. So messages are built with libnl (nl_msg, nla_*) and sent here: the kernel's errno and its
// own words reach the user, and strict checking of dump requests is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/netlink.h>
#include <netlink/msg.h>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::injectors {

/// Owns a libnl message.
class NetlinkMessage {
public:
    /// An empty message of `type` (RTM_NEWLINK, ...) with NLM_F_* `flags`; REQUEST and ACK are added by the channel.
    NetlinkMessage(int type, int flags);
    /// A message from raw bytes (for example a journalled dump record), copied.
    explicit NetlinkMessage(std::string_view raw);
    [[nodiscard]] nl_msg* get() const { return message_.get(); }
    [[nodiscard]] nlmsghdr* header() const;
    /// Appends a fixed-size family header (ifinfomsg, tcmsg, rtmsg ...).
    template <class Header> void append_header(const Header& header) { append_raw(&header, sizeof header); }
    void put_u8(int attribute, std::uint8_t value);
    void put_u16(int attribute, std::uint16_t value);
    void put_u32(int attribute, std::uint32_t value);
    void put_u64(int attribute, std::uint64_t value);
    void put_string(int attribute, std::string_view value);
    void put_bytes(int attribute, const void* data, std::size_t size);
    /// Opens a nested attribute; close it with end_nest.
    [[nodiscard]] nlattr* begin_nest(int attribute);
    void end_nest(nlattr* nest);

private:
    void append_raw(const void* data, std::size_t size);
    struct Free {
        void operator()(nl_msg* message) const;
    };
    std::unique_ptr<nl_msg, Free> message_;
};

/// One netlink socket, bound to the network namespace that the calling thread was in when it was opened.
class NetlinkChannel {
public:
    /// Opens a socket of the NETLINK_* `protocol` in the present network namespace, with extended ack and strict
    /// checking.
    [[nodiscard]] static Result<NetlinkChannel> open(int protocol = NETLINK_ROUTE);
    /// The same inside the network namespace that `netns_fd` refers to; the calling thread stays in its own.
    [[nodiscard]] static Result<NetlinkChannel> open_in(int netns_fd, int protocol = NETLINK_ROUTE);
    /// Over a socket that is set up already: for example one end of a SOCK_SEQPACKET pair whose other end answers with
    /// recorded messages.
    [[nodiscard]] static NetlinkChannel adopt(UniqueFd fd) { return NetlinkChannel(std::move(fd)); }

    /// Sends one request and waits for its acknowledgement. On failure the Error carries the kernel's errno (fact
    /// "errno"), its extended-ack text if any, and `what` ("set eth0 down") in the sentence. EPERM maps to kRefused.
    [[nodiscard]] Result<void> request(NetlinkMessage& message, std::string_view what);
    /// Sends one get request (RTM_GETLINK by name, ...) and calls `each` for every answer before the acknowledgement.
    /// Errors as request().
    [[nodiscard]] Result<void> query(NetlinkMessage& message, std::string_view what,
                                     const std::function<void(const nlmsghdr&)>& each);
    /// Sends a dump request and calls `each` for every record; repeats the dump when the kernel marks it inconsistent
    /// (NLM_F_DUMP_INTR), up to eight times, in which case `restart` is called first.
    [[nodiscard]] Result<void> dump(NetlinkMessage& message, std::string_view what,
                                    const std::function<void(const nlmsghdr&)>& each,
                                    const std::function<void()>& restart);
    /// Sends the messages (raw, complete) in one datagram, as protocols with transactions need them (nfnetlink), and
    /// waits for the acknowledgement of the last one that carries NLM_F_ACK. The messages' sequence numbers are set
    /// here. The Error is that of the message that failed first, as in request(), with its place among them as the fact
    /// "message" (0: the transaction as a whole).
    [[nodiscard]] Result<void> transact(const std::vector<std::string>& messages, std::string_view what);
    /// The descriptor, for joining multicast groups and for poll.
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    explicit NetlinkChannel(UniqueFd fd) : fd_(std::move(fd)) {}
    /// Stamps a sequence number on the message and sends it.
    [[nodiscard]] Result<void> send(NetlinkMessage& message, std::string_view what);
    /// Hands every record that answers the last request to `each` until its end (ACK, error or DONE). Gives true when
    /// the kernel marked any record as part of an inconsistent dump.
    [[nodiscard]] Result<bool> receive(std::string_view what, const std::function<void(const nlmsghdr&)>& each);
    /// Reads the acknowledgements of a transaction: its messages are numbered from `first`; that of `awaited` ends it.
    [[nodiscard]] Result<void> receive_verdict(std::uint32_t first, std::uint32_t awaited, std::string_view what);
    UniqueFd fd_;
    std::uint32_t sequence_ = 0;
};

/// Index of the interface `name` in the channel's network namespace. Error kInput with errno=ENODEV when there is none.
[[nodiscard]] Result<int> interface_index(NetlinkChannel& channel, std::string_view name);

/// errno as sent by the kernel in an Error made by NetlinkChannel, or 0 when the Error has none ("ENOENT" -> ENOENT).
[[nodiscard]] int kernel_errno(const Error& error);

} // namespace railbreak::injectors
