// Proof, on a fresh connection, that both ends know the run's token, and which link the connection is.
//
//     acceptor  -> connector   hello:   magic, nonce A
//     connector -> acceptor    claim:   link (ranks, lane, ports), nonce B, MAC("claim", A, B, link)
//     acceptor  -> connector   welcome: MAC("welcome", A, B, link)
//
// The MACs are HMAC-SHA256 under the token, which itself never crosses the wire; the nonces make a recorded handshake
// useless. Messages have fixed lengths, so an end never reads a byte beyond its handshake. No input or output happens
// here: the owner moves the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// What a connection is for.
struct LinkClaim {
    Rank source = 0;
    Rank destination = 0;
    Lane lane = 0;
    Port source_port;
    Port destination_port;
    bool operator==(const LinkClaim&) const = default;
};

/// One end's side of the handshake.
class Handshake {
public:
    /// The end that accepted a connection, as rank `self`. Error (kHarness) when the kernel gives no random bytes.
    [[nodiscard]] static Result<Handshake> accepting(std::string token, Rank self);
    /// The end that connected.
    [[nodiscard]] static Result<Handshake> connecting(std::string token, const LinkClaim& claim);

    /// Bytes to write next; call wrote() with how many went out.
    [[nodiscard]] std::span<const std::byte> output() const;
    void wrote(std::size_t count);
    /// Where to read next; never more than the handshake needs. Call read() with how many came in. Empty: nothing.
    [[nodiscard]] std::span<std::byte> input();
    /// Error (kRefused): not a railbreak peer, or one with another token, or one that looks for another rank.
    [[nodiscard]] Result<void> read(std::size_t count);

    /// Both ends are proven and everything is written.
    [[nodiscard]] bool done() const { return phase_ == Phase::kFinal && output().empty(); }
    /// The connection's link; valid when done().
    [[nodiscard]] const LinkClaim& claim() const { return claim_; }

private:
    static constexpr std::size_t kNonceBytes = 16;
    static constexpr std::size_t kMacBytes = 32;
    using Nonce = std::array<std::byte, kNonceBytes>;
    using Mac = std::array<std::byte, kMacBytes>;
    enum class Phase : std::uint8_t { kAwaitHello, kAwaitClaim, kAwaitWelcome, kFinal };

    Handshake(std::string token, Phase phase) : token_(std::move(token)), phase_(phase) {}
    [[nodiscard]] Mac mac(std::string_view purpose) const;
    [[nodiscard]] std::vector<std::byte> packed_claim() const;
    [[nodiscard]] Result<void> message_complete();
    [[nodiscard]] Result<void> take_hello();
    [[nodiscard]] Result<void> take_claim();
    void expect(Phase phase, std::size_t bytes);
    void append_output(std::span<const std::byte> bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }

    std::string token_;
    Phase phase_;
    Rank self_ = 0;
    LinkClaim claim_;
    Nonce acceptor_nonce_{};
    Nonce connector_nonce_{};
    std::vector<std::byte> output_;
    std::size_t written_ = 0;
    std::vector<std::byte> input_;
    std::size_t received_ = 0;
};

} // namespace railbreak::collective
