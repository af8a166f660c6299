// A private pair of network namespaces with two veth pairs between them, for tests that break NICs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "injectors/host_ops.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors {

/// Waits until the descriptor is readable; false when it is not within `patience`.
[[nodiscard]] bool readable(int fd, Nanoseconds patience);
/// Waits until a process has ended and reaps it when it is a child of ours. Gives its wait status (0 for what is no
/// child), or -1 with a test failure.
int wait_ended(pid_t pid, Nanoseconds patience);

/// After SetUp the test is in the host namespace: nic0 (10.9.0.1/24, fd09::1/64) and nic1 (10.10.0.1/24, fd10::1/64)
/// are up, with routes, multipath routes and permanent neighbours over them; their peers are in the peer namespace.
class InjectorBench : public ::testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    /// For suites that need more than two: called before the host is filled with routes.
    virtual void make_more_nics() {}
    /// Everything that a fault could change in the host namespace, one line a thing, sorted.
    [[nodiscard]] virtual std::vector<std::string> snapshot() const;
    /// Waits until the kernel has finished with new addresses by itself.
    void settle();
    /// Interface index in the host namespace, 0 when there is none.
    [[nodiscard]] std::int32_t index_of(const std::string& name) const;
    /// Puts the lab's htb, class and bfifo on nic0.
    void shape_like_the_lab(std::uint64_t bits_per_s);
    /// One more veth pair, both ends up, with 10.<net>.0.1/24 and fd<net>::1/64 here and .2 and ::2 there. nic0 has the
    /// net 9, nic1 10.
    void make_pair_of_nics(const char* name, const char* peer, int net);
    void send(NetlinkMessage& message, const char* what);
    void add_route(int family, const std::string& to, int prefix, const std::string& via, std::uint32_t table,
                   std::uint32_t ifindex);

    std::unique_ptr<HostOps> ops_;
    std::unique_ptr<NetlinkChannel> channel_;
    UniqueFd host_netns_;
    UniqueFd peer_netns_;
    std::int32_t nic_ = 0; ///< nic0
    std::int32_t nic1_ = 0;
    std::string folder_; ///< for journals

private:
    void add_address(NetlinkChannel& channel, std::int32_t ifindex, int family, const std::string& text, int prefix,
                     std::uint32_t flags);
    void add_multipath(int family, const std::string& to, int prefix, const std::string& via0, const std::string& via1);
    void add_neighbour(int family, const std::string& address);
    void fill_host();
};

} // namespace railbreak::injectors
