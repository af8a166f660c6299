#include "tests/lab/datagrams.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "injectors/netns_scope.hpp"
#include "tests/lab/injector_bench.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kArrival = std::chrono::milliseconds(100); ///< a veth pair delivers within microseconds
constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kTries = 3;

} // namespace

DatagramEnd::DatagramEnd(int netns, const std::string& address) {
    sockaddr_in ip4{};
    sockaddr_in6 ip6{};
    const bool is_ip4 = inet_pton(AF_INET, address.c_str(), &ip4.sin_addr) == 1;
    if (is_ip4) {
        ip4.sin_family = AF_INET;
        std::memcpy(&self_, &ip4, size_ = sizeof ip4);
    } else {
        EXPECT_EQ(inet_pton(AF_INET6, address.c_str(), &ip6.sin6_addr), 1) << address;
        ip6.sin6_family = AF_INET6;
        std::memcpy(&self_, &ip6, size_ = sizeof ip6);
    }
    const auto entered = run_in_netns(
        netns, [&] { fd_.reset(socket(is_ip4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); });
    EXPECT_TRUE(entered.has_value());
    auto* raw = reinterpret_cast<sockaddr*>(&self_);
    EXPECT_EQ(bind(fd_.get(), raw, size_), 0) << address << ": " << strerrordesc_np(errno);
    EXPECT_EQ(getsockname(fd_.get(), raw, &size_), 0);
}

void DatagramEnd::send_to(const DatagramEnd& other) const {
    // A refusal of the kernel (no neighbour, no route) is one way not to arrive.
    static_cast<void>(sendto(fd_.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&other.self_), other.size_));
}

void DatagramEnd::drain() const {
    std::array<char, 16> rest{};
    while (recv(fd_.get(), rest.data(), rest.size(), 0) >= 0) {
    }
}

bool DatagramEnd::reaches(DatagramEnd& other) {
    other.drain();
    const Deadline deadline = Deadline::after(kPatience);
    do {
        send_to(other);
        if (readable(other.fd_.get(), kArrival)) {
            return true;
        }
    } while (!deadline.passed());
    return false;
}

bool DatagramEnd::may_send_to(const DatagramEnd& other) const {
    const bool is_ip4 = self_.ss_family == AF_INET;
    const int on = 1;
    EXPECT_EQ(setsockopt(fd_.get(), is_ip4 ? SOL_IP : SOL_IPV6, is_ip4 ? IP_RECVERR : IPV6_RECVERR, &on, sizeof on), 0);
    return sendto(fd_.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&other.self_), other.size_) == 1;
}

bool DatagramEnd::is_cut_off_from(DatagramEnd& other) {
    other.drain();
    for (int i = 0; i < kTries; ++i) {
        send_to(other);
        if (readable(other.fd_.get(), kArrival)) {
            return false;
        }
    }
    return true;
}

} // namespace railbreak::injectors
