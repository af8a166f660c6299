#include "tests/unit/injectors/hardware/replay_kernel.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace railbreak::injectors::hardware {
namespace {

/// The bytes with flags, sequence number and port id zero.
std::string comparable(std::string bytes) {
    std::memset(bytes.data() + offsetof(nlmsghdr, nlmsg_flags), 0, NLMSG_HDRLEN - offsetof(nlmsghdr, nlmsg_flags));
    return bytes;
}

void send_record(int fd, std::string bytes, std::uint32_t sequence) {
    std::memcpy(bytes.data() + offsetof(nlmsghdr, nlmsg_seq), &sequence, sizeof sequence);
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

/// NLMSG_ERROR without the echoed request, or NLMSG_DONE for a dump.
std::string closing_record(int error, bool dump) {
    NetlinkMessage message(dump ? NLMSG_DONE : NLMSG_ERROR, NLM_F_CAPPED);
    const int code = -error;
    if (dump) {
        message.append_header(code);
    } else {
        nlmsgerr body{};
        body.error = code;
        message.append_header(body);
    }
    return bytes_of(message);
}

} // namespace

std::string from_hex(std::string_view text) {
    std::string digits;
    for (const char c : text) {
        if (std::isxdigit(static_cast<unsigned char>(c)) != 0) {
            digits += c;
        }
    }
    std::string bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

std::string to_hex(std::string_view bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        text += fmt::format("{}{:02x}", i != 0 && i % 4 == 0 ? " " : "", static_cast<unsigned char>(bytes[i]));
    }
    return text;
}

std::string bytes_of(const NetlinkMessage& message) {
    std::string bytes(reinterpret_cast<const char*>(message.header()), message.header()->nlmsg_len);
    std::memset(bytes.data() + offsetof(nlmsghdr, nlmsg_seq), 0, NLMSG_HDRLEN - offsetof(nlmsghdr, nlmsg_seq));
    return bytes;
}

std::string bytes_of(NetlinkMessage&& message) {
    return bytes_of(static_cast<const NetlinkMessage&>(message));
}

NetlinkMessage recorded(std::string_view hex) {
    return NetlinkMessage(from_hex(hex));
}

std::string fact(const Error& error, std::string_view name) {
    for (const auto& [key, value] : error.facts()) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

ReplayKernel::ReplayKernel(std::vector<Exchange> script) : script_(std::move(script)) {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    kernel_end_.reset(ends[0]);
    channel_.emplace(NetlinkChannel::adopt(UniqueFd(ends[1])));
    thread_ = std::thread([this] { play(); });
}

ReplayKernel::~ReplayKernel() {
    EXPECT_EQ(finish(), "");
}

std::string ReplayKernel::finish() {
    if (thread_.joinable()) {
        channel_.reset(); // the end of the connection ends the thread
        thread_.join();
        if (complaint_.empty() && next_ != script_.size()) {
            complaint_ = fmt::format("{} of {} requests came", next_, script_.size());
        }
    }
    return complaint_;
}

void ReplayKernel::play() {
    std::array<char, 16384> buffer{};
    for (;;) {
        const ssize_t got = ::recv(kernel_end_.get(), buffer.data(), buffer.size(), 0);
        if (got < static_cast<ssize_t>(NLMSG_HDRLEN)) {
            return;
        }
        const std::string request(buffer.data(), static_cast<std::size_t>(got));
        nlmsghdr header{};
        std::memcpy(&header, request.data(), sizeof header);
        const bool dump = (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
        if (next_ == script_.size() || comparable(request) != comparable(script_[next_].request)) {
            complaint_ += fmt::format("unexpected request {}: {}\n", next_, to_hex(request));
            send_record(kernel_end_.get(), closing_record(EPROTO, false), header.nlmsg_seq);
            continue;
        }
        const Exchange& exchange = script_[next_++];
        for (const std::string& record : exchange.records) {
            send_record(kernel_end_.get(), record, header.nlmsg_seq);
        }
        send_record(kernel_end_.get(), closing_record(exchange.error, dump), header.nlmsg_seq);
    }
}

void VethNamespace::SetUpTestSuite() {
    // A normal user gets the capabilities by a user namespace, where those are allowed.
    if (::geteuid() != 0) {
        static_cast<void>(::unshare(CLONE_NEWUSER));
    }
}

void VethNamespace::SetUp() {
    std::thread([this] {
        if (::unshare(CLONE_NEWNET) == 0) {
            namespace_.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        }
    }).join();
    if (!namespace_.valid()) {
        GTEST_SKIP() << "network namespaces need CAP_SYS_ADMIN here";
    }
    auto route = NetlinkChannel::open_in(namespace_.get());
    auto generic = NetlinkChannel::open_in(namespace_.get(), NETLINK_GENERIC);
    ASSERT_TRUE(done(route));
    ASSERT_TRUE(done(generic));
    route_.emplace(std::move(*route));
    generic_.emplace(std::move(*generic));
    NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, "nic0");
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "veth");
    nlattr* data = message.begin_nest(IFLA_INFO_DATA);
    nlattr* peer = message.begin_nest(VETH_INFO_PEER);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, "peer0");
    message.end_nest(peer);
    message.end_nest(data);
    message.end_nest(info);
    ASSERT_TRUE(done(route_->request(message, "make a veth pair")));
    const auto index = interface_index(*route_, "nic0");
    ASSERT_TRUE(done(index));
    ifindex_ = *index;
}

} // namespace railbreak::injectors::hardware
