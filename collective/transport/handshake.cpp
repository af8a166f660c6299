#include "collective/transport/handshake.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <fmt/format.h>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

constexpr std::array<std::byte, 8> kMagic{std::byte{'r'}, std::byte{'b'}, std::byte{'l'}, std::byte{'i'},
                                          std::byte{'n'}, std::byte{'k'}, std::byte{'0'}, std::byte{'2'}};
constexpr std::size_t kClaimWords = 7;
constexpr std::size_t kClaimBytes = kClaimWords * sizeof(std::int32_t);

/// Nonces are the one place where railbreak wants real randomness instead of a seed: they must not be guessable.
template <class Nonce> Result<void> randomise(Nonce& nonce) {
    if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) != 1) {
        return fail(ErrorKind::kHarness, "cannot get random bytes for a handshake");
    }
    return {};
}

void put_big_endian(std::vector<std::byte>& out, std::int32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        out.push_back(static_cast<std::byte>(static_cast<std::uint32_t>(value) >> shift));
    }
}

std::int32_t get_big_endian(std::span<const std::byte> from) {
    std::uint32_t value = 0;
    for (const std::byte byte : from.first(4)) {
        value = (value << 8) | std::to_integer<std::uint32_t>(byte);
    }
    return static_cast<std::int32_t>(value);
}

} // namespace

Result<Handshake> Handshake::accepting(std::string token, Rank self) {
    Handshake made(std::move(token), Phase::kAwaitClaim);
    made.self_ = self;
    if (Result<void> random = randomise(made.acceptor_nonce_); !random) {
        return tl::unexpected<Error>(random.error());
    }
    made.append_output(kMagic);
    made.append_output(made.acceptor_nonce_);
    made.expect(Phase::kAwaitClaim, kClaimBytes + kNonceBytes + kMacBytes);
    return made;
}

Result<Handshake> Handshake::connecting(std::string token, const LinkClaim& claim) {
    Handshake made(std::move(token), Phase::kAwaitHello);
    made.claim_ = claim;
    if (Result<void> random = randomise(made.connector_nonce_); !random) {
        return tl::unexpected<Error>(random.error());
    }
    made.expect(Phase::kAwaitHello, kMagic.size() + kNonceBytes);
    return made;
}

std::span<const std::byte> Handshake::output() const {
    return std::span(output_).subspan(written_);
}

void Handshake::wrote(std::size_t count) {
    RB_CHECK(count <= output_.size() - written_, "wrote more than there was");
    written_ += count;
}

std::span<std::byte> Handshake::input() {
    return std::span(input_).subspan(received_);
}

Result<void> Handshake::read(std::size_t count) {
    RB_CHECK(count <= input_.size() - received_, "read more than was asked for");
    received_ += count;
    if (count == 0 || received_ < input_.size()) {
        return {};
    }
    return message_complete();
}

void Handshake::expect(Phase phase, std::size_t bytes) {
    phase_ = phase;
    input_.assign(bytes, std::byte{0});
    received_ = 0;
}

Handshake::Mac Handshake::mac(std::string_view purpose) const {
    std::vector<std::byte> message;
    for (const char letter : purpose) {
        message.push_back(static_cast<std::byte>(letter));
    }
    message.push_back(std::byte{0});
    message.insert(message.end(), acceptor_nonce_.begin(), acceptor_nonce_.end());
    message.insert(message.end(), connector_nonce_.begin(), connector_nonce_.end());
    const std::vector<std::byte> claim = packed_claim();
    message.insert(message.end(), claim.begin(), claim.end());
    Mac mac{};
    unsigned int size = 0;
    const unsigned char* made = ::HMAC(EVP_sha256(), token_.data(), static_cast<int>(token_.size()),
                                       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                       reinterpret_cast<unsigned char*>(mac.data()), &size);
    RB_CHECK(made != nullptr && size == kMacBytes, "HMAC-SHA256 failed");
    return mac;
}

std::vector<std::byte> Handshake::packed_claim() const {
    std::vector<std::byte> packed;
    put_big_endian(packed, claim_.source);
    put_big_endian(packed, claim_.destination);
    put_big_endian(packed, claim_.lane);
    for (const Port& port : {claim_.source_port, claim_.destination_port}) {
        put_big_endian(packed, static_cast<std::int32_t>(port.kind));
        put_big_endian(packed, port.nic);
    }
    return packed;
}

Result<void> Handshake::message_complete() {
    switch (phase_) {
    case Phase::kAwaitHello: return take_hello();
    case Phase::kAwaitClaim: return take_claim();
    case Phase::kAwaitWelcome:
        if (CRYPTO_memcmp(input_.data(), mac("welcome").data(), kMacBytes) != 0) {
            return fail(ErrorKind::kRefused, "the other end does not know the run's token");
        }
        expect(Phase::kFinal, 0);
        return {};
    case Phase::kFinal: break;
    }
    RB_CHECK(false, "a finished handshake read something");
}

Result<void> Handshake::take_hello() {
    if (!std::equal(kMagic.begin(), kMagic.end(), input_.begin())) {
        return fail(ErrorKind::kRefused, "the other end does not speak railbreak's link protocol");
    }
    std::copy_n(input_.begin() + kMagic.size(), kNonceBytes, acceptor_nonce_.begin());
    append_output(packed_claim());
    append_output(connector_nonce_);
    append_output(mac("claim"));
    expect(Phase::kAwaitWelcome, kMacBytes);
    return {};
}

Result<void> Handshake::take_claim() {
    const std::span<const std::byte> claim(input_);
    std::array<std::int32_t, kClaimWords> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = get_big_endian(claim.subspan(i * sizeof(std::int32_t)));
    }
    const auto port = [&](std::size_t at) {
        return Port{words[at] == 0 ? PortKind::kNic : PortKind::kLocal, words[at + 1]};
    };
    claim_ = {words[0], words[1], words[2], port(3), port(5)};
    std::copy_n(input_.begin() + kClaimBytes, kNonceBytes, connector_nonce_.begin());
    const std::span<const std::byte> shown = claim.subspan(kClaimBytes + kNonceBytes);
    if (CRYPTO_memcmp(shown.data(), mac("claim").data(), kMacBytes) != 0) {
        return fail(ErrorKind::kRefused, "the other end does not know the run's token");
    }
    if (claim_.destination != self_) {
        return fail(ErrorKind::kRefused,
                    fmt::format("rank {} looks for rank {}, this is {}", claim_.source, claim_.destination, self_));
    }
    append_output(mac("welcome"));
    expect(Phase::kFinal, 0);
    return {};
}

} // namespace railbreak::collective
