#include "injectors/wire.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace railbreak::injectors {

namespace {
constexpr std::uint32_t kMagic = 0x314a4252; // "RBJ1"
}

void Encoder::put_string(std::string_view value) {
    put(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
}

void Encoder::put_strings(const std::vector<std::string>& values) {
    put(static_cast<std::uint32_t>(values.size()));
    for (const std::string& value : values) {
        put_string(value);
    }
}

std::string_view Decoder::take(std::size_t size) {
    if (!ok_ || size > bytes_.size()) {
        ok_ = false;
        return {};
    }
    const std::string_view head = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return head;
}

std::string Decoder::get_string() {
    const auto size = get<std::uint32_t>();
    return std::string(take(size));
}

std::vector<std::string> Decoder::get_strings() {
    const auto count = get<std::uint32_t>();
    std::vector<std::string> values;
    for (std::uint32_t i = 0; i < count && ok_; ++i) {
        values.push_back(get_string());
    }
    return values;
}

std::string make_frame(std::string_view payload) {
    Encoder head;
    head.put(kMagic);
    head.put(static_cast<std::uint32_t>(payload.size()));
    head.put(static_cast<std::uint64_t>(XXH3_64bits(payload.data(), payload.size())));
    std::string frame = head.take();
    frame.append(payload);
    return frame;
}

FrameView read_frame(std::string_view buffer) {
    if (buffer.size() < kFrameHeaderBytes) {
        return {FrameStatus::kIncomplete, {}, 0};
    }
    Decoder head(buffer.substr(0, kFrameHeaderBytes));
    const auto magic = head.get<std::uint32_t>();
    const auto length = head.get<std::uint32_t>();
    const auto checksum = head.get<std::uint64_t>();
    if (magic != kMagic || length > kMaxFramePayload) {
        return {FrameStatus::kCorrupt, {}, 0};
    }
    if (buffer.size() - kFrameHeaderBytes < length) {
        return {FrameStatus::kIncomplete, {}, 0};
    }
    const std::string_view payload = buffer.substr(kFrameHeaderBytes, length);
    if (XXH3_64bits(payload.data(), payload.size()) != checksum) {
        return {FrameStatus::kCorrupt, {}, 0};
    }
    return {FrameStatus::kWhole, payload, kFrameHeaderBytes + length};
}

} // namespace railbreak::injectors
