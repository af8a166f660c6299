// Single UDP datagrams between two network namespaces: do they arrive?
#pragma once

#include <string>

#include <netinet/in.h>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace railbreak::injectors {

/// One end: a UDP socket bound to an address (and a port that the kernel chose) inside a network namespace.
class DatagramEnd {
public:
    /// `address` may be IPv4 or IPv6; a test failure when it cannot be bound.
    DatagramEnd(int netns, const std::string& address);

    /// True when a datagram to `other` gets there. Sent again and again until it does, for as long as that may take a
    /// busy machine.
    [[nodiscard]] bool reaches(DatagramEnd& other);
    /// True when none of a few datagrams to `other` gets there.
    [[nodiscard]] bool is_cut_off_from(DatagramEnd& other);
    /// True when the kernel takes a datagram to `other` without complaint. Complaints are asked for (IP_RECVERR).
    [[nodiscard]] bool may_send_to(const DatagramEnd& other) const;

private:
    void send_to(const DatagramEnd& other) const;
    void drain() const;
    UniqueFd fd_;
    sockaddr_storage self_{};
    socklen_t size_ = 0;
};

} // namespace railbreak::injectors
