// Byte-exact encoding of what the journal stores and what agent and guard say to each other.
//
// A frame is {magic, payload length, XXH3 of the payload, payload}, little endian. The checksum lets a reader tell a
// torn or flipped tail from a record, so that everything before it still counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace railbreak::injectors {

/// Appends integers (little endian, fixed width) and length-prefixed strings to a byte string.
class Encoder {
public:
    template <class Integer> void put(Integer value) {
        static_assert(std::is_integral_v<Integer>);
        auto rest = static_cast<std::uint64_t>(value);
        for (std::size_t i = 0; i < sizeof(Integer); ++i) {
            bytes_.push_back(static_cast<char>(rest & 0xff));
            rest >>= 8;
        }
    }
    void put_string(std::string_view value);
    void put_strings(const std::vector<std::string>& values);
    [[nodiscard]] std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

/// Reads what Encoder wrote. Reading past the end yields zeros and makes ok() false for good.
class Decoder {
public:
    explicit Decoder(std::string_view bytes) : bytes_(bytes) {}
    template <class Integer> [[nodiscard]] Integer get() {
        static_assert(std::is_integral_v<Integer>);
        const std::string_view raw = take(sizeof(Integer));
        std::uint64_t value = 0;
        for (std::size_t i = raw.size(); i > 0; --i) {
            value = (value << 8) | static_cast<unsigned char>(raw[i - 1]);
        }
        return static_cast<Integer>(value);
    }
    [[nodiscard]] std::string get_string();
    [[nodiscard]] std::vector<std::string> get_strings();
    /// True while nothing was read past the end.
    [[nodiscard]] bool ok() const { return ok_; }
    /// True when ok() and everything was read.
    [[nodiscard]] bool finished() const { return ok_ && bytes_.empty(); }

private:
    [[nodiscard]] std::string_view take(std::size_t size);
    std::string_view bytes_;
    bool ok_ = true;
};

/// Bytes in front of every payload.
inline constexpr std::size_t kFrameHeaderBytes = 16;
/// Largest payload a reader accepts; a longer length is taken for corruption.
inline constexpr std::size_t kMaxFramePayload = std::size_t{16} << 20;

/// Wraps a payload in a frame.
[[nodiscard]] std::string make_frame(std::string_view payload);

/// What stands at the start of a buffer.
enum class FrameStatus : std::uint8_t {
    kWhole,      ///< a complete frame with the right checksum
    kIncomplete, ///< the start of a frame; more bytes may complete it
    kCorrupt,    ///< no frame
};

/// One look at the start of a buffer. `payload` points into the buffer; `size` is the frame's whole length.
struct FrameView {
    FrameStatus status = FrameStatus::kCorrupt;
    std::string_view payload;
    std::size_t size = 0;
};
[[nodiscard]] FrameView read_frame(std::string_view buffer);

} // namespace railbreak::injectors
