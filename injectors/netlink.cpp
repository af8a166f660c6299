#include "injectors/netlink.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "injectors/netns_scope.hpp"

namespace railbreak::injectors {
namespace {

constexpr std::size_t kRoom = std::size_t{16} * 1024; ///< of a message: far above any request that railbreak builds
constexpr auto kAnswerBudget = std::chrono::seconds(5);
constexpr int kDumpAttempts = 8;
constexpr int kLargestErrno = 4095;

/// The failure of a netlink request, with the kernel's own words where it gave some.
tl::unexpected<Error> kernel_failure(std::string_view what, int errno_value, const std::string& words) {
    const bool refused = errno_value == EPERM || errno_value == EACCES;
    const ErrorKind kind = refused ? ErrorKind::kRefused : ErrorKind::kHarness;
    const char* name = ::strerrorname_np(errno_value);
    const char* description = ::strerrordesc_np(errno_value);
    Error error(kind, fmt::format("cannot {}: {}{}", what, description != nullptr ? description : "unknown error",
                                  words.empty() ? std::string() : fmt::format(" ({})", words)));
    error.add_fact("errno", name != nullptr ? name : std::to_string(errno_value));
    if (!words.empty()) {
        error.add_fact("kernel", words);
    }
    return fail(std::move(error));
}

/// Text of NLMSGERR_ATTR_MSG among the attributes that start `offset` bytes into the record, or "".
std::string words_at(const nlmsghdr& record, std::size_t offset) {
    const std::size_t start = NLMSG_ALIGN(offset);
    if ((record.nlmsg_flags & NLM_F_ACK_TLVS) == 0 || record.nlmsg_len <= start) {
        return {};
    }
    const auto* bytes = reinterpret_cast<const char*>(&record);
    const auto* attribute = nla_find(reinterpret_cast<const nlattr*>(bytes + start),
                                     static_cast<int>(record.nlmsg_len - start), NLMSGERR_ATTR_MSG);
    if (attribute == nullptr || nla_len(attribute) <= 0) {
        return {};
    }
    const char* text = static_cast<const char*>(nla_data(attribute));
    return std::string(text, ::strnlen(text, static_cast<std::size_t>(nla_len(attribute))));
}

/// What a closing record (NLMSG_ERROR or NLMSG_DONE) says: errno 0 is success.
struct Closing {
    int errno_value = 0;
    std::string words;
};

/// Reads a closing record; nullopt for any other record.
std::optional<Closing> read_closing(const nlmsghdr& record) {
    if (record.nlmsg_type == NLMSG_ERROR) {
        if (record.nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr))) {
            return Closing{EBADMSG, "truncated acknowledgement"};
        }
        const auto* body = static_cast<const nlmsgerr*>(NLMSG_DATA(&record));
        // The echoed request stands between the code and the attributes, unless the kernel left its payload out.
        std::size_t offset = NLMSG_LENGTH(sizeof(nlmsgerr));
        if ((record.nlmsg_flags & NLM_F_CAPPED) == 0) {
            offset += body->msg.nlmsg_len - NLMSG_HDRLEN;
        }
        return Closing{-body->error, words_at(record, offset)};
    }
    if (record.nlmsg_type == NLMSG_DONE) {
        int code = 0;
        if (record.nlmsg_len >= NLMSG_LENGTH(sizeof code)) {
            std::memcpy(&code, NLMSG_DATA(&record), sizeof code);
        }
        return Closing{-code, words_at(record, NLMSG_LENGTH(sizeof code))};
    }
    return std::nullopt;
}

/// Waits for one datagram from the kernel and reads all of it.
Result<void> receive_datagram(int fd, std::string_view what, const Deadline& deadline, std::vector<char>& buffer) {
    while (true) {
        pollfd waiter{fd, POLLIN, 0};
        const int ready = ::poll(&waiter, 1, deadline.poll_timeout_ms());
        if (ready == 0 || (ready < 0 && errno == EINTR && deadline.passed())) {
            return fail(Error(ErrorKind::kHarness, fmt::format("cannot {}: the kernel did not answer in time", what))
                            .with("errno", "ETIMEDOUT"));
        }
        if (ready < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "wait for a netlink answer", errno);
        }
        if (ready < 0) {
            continue;
        }
        const ssize_t size = ::recv(fd, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (size >= 0) {
            buffer.resize(static_cast<std::size_t>(size));
            sockaddr_nl sender{};
            socklen_t sender_size = sizeof sender;
            const ssize_t got = ::recvfrom(fd, buffer.data(), buffer.size(), MSG_DONTWAIT,
                                           reinterpret_cast<sockaddr*>(&sender), &sender_size);
            if (got >= 0 && sender.nl_pid == 0) {
                buffer.resize(static_cast<std::size_t>(got));
                return {};
            }
        } else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
            return fail_errno(ErrorKind::kHarness, "read a netlink answer", errno);
        }
        // Lost notifications (ENOBUFS) or a datagram of another sender: the answer itself may still come.
    }
}

/// A bound socket of a NETLINK_* protocol in the calling thread's network namespace.
Result<UniqueFd> open_socket(int protocol) {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "open a netlink socket", errno);
    }
    const int on = 1;
    for (const int option : {NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK}) {
        if (::setsockopt(fd.get(), SOL_NETLINK, option, &on, sizeof on) != 0) {
            return fail_errno(ErrorKind::kHarness, "set up a netlink socket", errno);
        }
    }
    sockaddr_nl self{};
    self.nl_family = AF_NETLINK;
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&self), sizeof self) != 0) {
        return fail_errno(ErrorKind::kHarness, "bind a netlink socket", errno);
    }
    return fd;
}

} // namespace

void NetlinkMessage::Free::operator()(nl_msg* message) const {
    nlmsg_free(message);
}

NetlinkMessage::NetlinkMessage(int type, int flags) : message_(nlmsg_alloc_size(kRoom)) {
    RB_CHECK(message_ != nullptr, "out of memory for a netlink message");
    RB_CHECK(nlmsg_put(message_.get(), 0, 0, type, 0, flags) != nullptr, "a netlink header always fits");
}

NetlinkMessage::NetlinkMessage(std::string_view raw) : message_(nlmsg_alloc_size(raw.size() + kRoom)) {
    RB_CHECK(message_ != nullptr, "out of memory for a netlink message");
    RB_CHECK(raw.size() >= NLMSG_HDRLEN, "a raw netlink message holds at least its header");
    std::memcpy(header(), raw.data(), raw.size());
    RB_CHECK(header()->nlmsg_len >= NLMSG_HDRLEN && header()->nlmsg_len <= raw.size(),
             "a raw netlink message is as long as its header says");
}

nlmsghdr* NetlinkMessage::header() const {
    return nlmsg_hdr(message_.get());
}

void NetlinkMessage::append_raw(const void* data, std::size_t size) {
    RB_CHECK(nlmsg_append(message_.get(), const_cast<void*>(data), size, NLMSG_ALIGNTO) == 0,
             "a netlink request fits its buffer");
}

void NetlinkMessage::put_u8(int attribute, std::uint8_t value) {
    put_bytes(attribute, &value, sizeof value);
}

void NetlinkMessage::put_u16(int attribute, std::uint16_t value) {
    put_bytes(attribute, &value, sizeof value);
}

void NetlinkMessage::put_u32(int attribute, std::uint32_t value) {
    put_bytes(attribute, &value, sizeof value);
}

void NetlinkMessage::put_u64(int attribute, std::uint64_t value) {
    put_bytes(attribute, &value, sizeof value);
}

void NetlinkMessage::put_string(int attribute, std::string_view value) {
    const std::string terminated(value);
    put_bytes(attribute, terminated.c_str(), terminated.size() + 1);
}

void NetlinkMessage::put_bytes(int attribute, const void* data, std::size_t size) {
    RB_CHECK(nla_put(message_.get(), attribute, static_cast<int>(size), data) == 0,
             "a netlink request fits its buffer");
}

nlattr* NetlinkMessage::begin_nest(int attribute) {
    nlattr* nest = nla_nest_start(message_.get(), attribute);
    RB_CHECK(nest != nullptr, "a netlink request fits its buffer");
    return nest;
}

// It changes the message behind the pointer, so it is not const.
// NOLINTNEXTLINE(readability-make-member-function-const)
void NetlinkMessage::end_nest(nlattr* nest) {
    // nla_nest_end() drops an empty nest; kernels read an empty one as "present", so it is closed by hand.
    const auto* end = reinterpret_cast<const char*>(header()) + NLMSG_ALIGN(header()->nlmsg_len);
    const auto length = end - reinterpret_cast<const char*>(nest);
    RB_CHECK(length >= NLA_HDRLEN && length <= UINT16_MAX, "a nested attribute has at most 64 KiB");
    nest->nla_len = static_cast<std::uint16_t>(length);
}

Result<NetlinkChannel> NetlinkChannel::open(int protocol) {
    auto fd = open_socket(protocol);
    if (!fd) {
        return fail(std::move(fd.error()));
    }
    return NetlinkChannel(std::move(*fd));
}

Result<NetlinkChannel> NetlinkChannel::open_in(int netns_fd, int protocol) {
    Result<UniqueFd> fd = fail(ErrorKind::kInternal, "the helper thread did not run");
    if (auto entered = run_in_netns(netns_fd, [&fd, protocol] { fd = open_socket(protocol); }); !entered) {
        return fail(std::move(entered.error()));
    }
    if (!fd) {
        return fail(std::move(fd.error()));
    }
    return NetlinkChannel(std::move(*fd));
}

Result<void> NetlinkChannel::send(NetlinkMessage& message, std::string_view what) {
    nlmsghdr* header = message.header();
    header->nlmsg_seq = ++sequence_;
    header->nlmsg_pid = 0;
    header->nlmsg_flags = static_cast<std::uint16_t>(header->nlmsg_flags | NLM_F_REQUEST);
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    const ssize_t sent =
        ::sendto(fd_.get(), header, header->nlmsg_len, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
    if (sent < 0) {
        return kernel_failure(what, errno, {});
    }
    return {};
}

Result<bool> NetlinkChannel::receive(std::string_view what, const std::function<void(const nlmsghdr&)>& each) {
    const Deadline deadline = Deadline::after(kAnswerBudget);
    std::vector<char> buffer;
    bool inconsistent = false;
    while (true) {
        if (auto got = receive_datagram(fd_.get(), what, deadline, buffer); !got) {
            return fail(std::move(got.error()));
        }
        auto left = static_cast<int>(buffer.size());
        const auto* record = reinterpret_cast<const nlmsghdr*>(buffer.data());
        for (; NLMSG_OK(record, static_cast<unsigned>(left)); record = NLMSG_NEXT(record, left)) {
            if (record->nlmsg_seq != sequence_) {
                continue; // a notification, or the late answer to a request that timed out
            }
            inconsistent = inconsistent || (record->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
            if (const auto closing = read_closing(*record)) {
                if (closing->errno_value != 0) {
                    return kernel_failure(what, closing->errno_value, closing->words);
                }
                return inconsistent;
            }
            if (each && record->nlmsg_type >= NLMSG_MIN_TYPE) {
                each(*record);
            }
        }
    }
}

Result<void> NetlinkChannel::request(NetlinkMessage& message, std::string_view what) {
    return query(message, what, {});
}

Result<void> NetlinkChannel::query(NetlinkMessage& message, std::string_view what,
                                   const std::function<void(const nlmsghdr&)>& each) {
    message.header()->nlmsg_flags = static_cast<std::uint16_t>(message.header()->nlmsg_flags | NLM_F_ACK);
    if (auto sent = send(message, what); !sent) {
        return sent;
    }
    if (auto answer = receive(what, each); !answer) {
        return fail(std::move(answer.error()));
    }
    return {};
}

Result<void> NetlinkChannel::dump(NetlinkMessage& message, std::string_view what,
                                  const std::function<void(const nlmsghdr&)>& each,
                                  const std::function<void()>& restart) {
    message.header()->nlmsg_flags = static_cast<std::uint16_t>(message.header()->nlmsg_flags | NLM_F_DUMP);
    for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
        if (attempt > 0 && restart) {
            restart();
        }
        if (auto sent = send(message, what); !sent) {
            return sent;
        }
        const auto inconsistent = receive(what, each);
        if (!inconsistent) {
            return fail(Error(inconsistent.error()));
        }
        if (!*inconsistent) {
            return {};
        }
    }
    return fail(Error(ErrorKind::kHarness, fmt::format("cannot {}: the kernel's tables kept changing", what))
                    .with("errno", "EAGAIN"));
}

Result<void> NetlinkChannel::transact(const std::vector<std::string>& messages, std::string_view what) {
    const std::uint32_t first = sequence_ + 1;
    std::uint32_t awaited = first;
    std::string batch;
    for (const std::string& each : messages) {
        RB_CHECK(each.size() >= NLMSG_HDRLEN, "a raw netlink message holds at least its header");
        nlmsghdr header{};
        std::memcpy(&header, each.data(), sizeof header);
        header.nlmsg_seq = ++sequence_;
        header.nlmsg_pid = 0;
        header.nlmsg_flags |= NLM_F_REQUEST;
        awaited = (header.nlmsg_flags & NLM_F_ACK) != 0 ? header.nlmsg_seq : awaited;
        batch.append(reinterpret_cast<const char*>(&header), sizeof header);
        batch.append(each, sizeof header, std::string::npos);
        batch.append(NLMSG_ALIGN(batch.size()) - batch.size(), '\0');
    }
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::sendto(fd_.get(), batch.data(), batch.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) <
        0) {
        return kernel_failure(what, errno, {});
    }
    return receive_verdict(first, awaited, what);
}

Result<void> NetlinkChannel::receive_verdict(std::uint32_t first, std::uint32_t awaited, std::string_view what) {
    const Deadline deadline = Deadline::after(kAnswerBudget);
    std::vector<char> buffer;
    std::optional<Error> failure;
    while (true) {
        if (auto got = receive_datagram(fd_.get(), what, deadline, buffer); !got) {
            return got;
        }
        auto left = static_cast<int>(buffer.size());
        const auto* record = reinterpret_cast<const nlmsghdr*>(buffer.data());
        for (; NLMSG_OK(record, static_cast<unsigned>(left)); record = NLMSG_NEXT(record, left)) {
            const auto closing = read_closing(*record);
            if (!closing || record->nlmsg_seq < first || record->nlmsg_seq > awaited) {
                continue;
            }
            if (closing->errno_value != 0 && !failure) {
                failure = kernel_failure(what, closing->errno_value, closing->words)
                              .value()
                              .with("message", std::to_string(record->nlmsg_seq - first));
            }
            // An error of the first message is about the whole transaction, and may be the only answer.
            if (record->nlmsg_seq == awaited || (record->nlmsg_seq == first && closing->errno_value != 0)) {
                return failure ? fail(std::move(*failure)) : Result<void>();
            }
        }
    }
}

Result<int> interface_index(NetlinkChannel& channel, std::string_view name) {
    ifreq request{};
    const std::size_t length = std::min(name.size(), sizeof request.ifr_name - 1);
    std::memcpy(request.ifr_name, name.data(), length);
    // The ioctl acts in the namespace of the socket, not in that of the caller.
    if (length != name.size() || ::ioctl(channel.fd(), SIOCGIFINDEX, &request) != 0) {
        const int error = length != name.size() ? ENODEV : errno;
        return fail_errno(error == ENODEV ? ErrorKind::kInput : ErrorKind::kHarness,
                          fmt::format("find the interface {}", name), error);
    }
    return request.ifr_ifindex;
}

int kernel_errno(const Error& error) {
    for (const auto& [name, value] : error.facts()) {
        if (name != "errno") {
            continue;
        }
        for (int number = 1; number <= kLargestErrno; ++number) {
            const char* known = ::strerrorname_np(number);
            if ((known != nullptr && value == known) || value == std::to_string(number)) {
                return number;
            }
        }
    }
    return 0;
}

} // namespace railbreak::injectors
