// A kernel that answers netlink requests from a script of recorded messages, for NICs that are not here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

/// Bytes from hexadecimal digits; everything else in the text is layout.
[[nodiscard]] std::string from_hex(std::string_view text);
/// Groups of four bytes, as in the recorded texts.
[[nodiscard]] std::string to_hex(std::string_view bytes);
/// A message's bytes, sequence number and port id zero.
[[nodiscard]] std::string bytes_of(const NetlinkMessage& message);
[[nodiscard]] std::string bytes_of(NetlinkMessage&& message);
/// A record from bytes; keep the message while its header is used.
[[nodiscard]] NetlinkMessage recorded(std::string_view hex);

/// Whether a result is a success; a failure is printed.
template <class T> testing::AssertionResult done(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}
/// Value of an Error's fact, or "".
[[nodiscard]] std::string fact(const Error& error, std::string_view name);

/// One request that is expected and what the kernel answers to it.
struct Exchange {
    std::string request;              ///< its bytes as bytes_of() gives them; flags are not compared
    std::vector<std::string> records; ///< answered before the acknowledgement
    int error = 0;                    ///< errno of the acknowledgement
};

/// Plays a script, one exchange after another, in a thread of its own. An unexpected request is answered EPROTO.
class ReplayKernel {
public:
    explicit ReplayKernel(std::vector<Exchange> script);
    ReplayKernel(const ReplayKernel&) = delete;
    ReplayKernel& operator=(const ReplayKernel&) = delete;
    ~ReplayKernel();
    [[nodiscard]] NetlinkChannel& channel() { return *channel_; }
    /// Ends the play; empty when the whole script was played and nothing else was asked.
    [[nodiscard]] std::string finish();

private:
    void play();
    std::vector<Exchange> script_;
    std::size_t next_ = 0;
    std::string complaint_;
    UniqueFd kernel_end_;
    std::optional<NetlinkChannel> channel_;
    std::thread thread_;
};

/// A fresh network namespace with a veth pair nic0/peer0, and channels into it. Skips the test where it may not.
class VethNamespace : public testing::Test {
protected:
    static void SetUpTestSuite();
    void SetUp() override;
    UniqueFd namespace_;
    std::optional<NetlinkChannel> route_;
    std::optional<NetlinkChannel> generic_;
    std::int32_t ifindex_ = 0; ///< of nic0
};

} // namespace railbreak::injectors::hardware
