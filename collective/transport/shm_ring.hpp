// A ring of bytes in memory that two processes share: one writes, one reads, and neither ever waits here.
//
// The memory is a memfd that only its two ends hold, so nothing is left of it when both are gone, however they ended.
// Its size is sealed: an end that maps it never meets memory that is not there any more.
//
// Both ends count the bytes that went through. The writer owns `written`, the reader `read`; each trusts its own copy
// and only looks at the other's count, so that a broken peer can spoil the data but not the memory around it.
//
// Sleep without losing a wake-up: an end that finds nothing to do announces its sleep, then looks once more; an end
// that has moved something looks for the announcement afterwards. All four are sequentially consistent, so at least one
// of the two sees the other. Who is to be woken is the caller's business (see shm_transport.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::collective {

/// Bytes that a ring holds: two of the executor's largest calls, small enough to stay in the second-level cache.
inline constexpr std::size_t kRingBytes = std::size_t{512} * 1024;

/// The mapped memory of one ring. Movable; unmaps at the end of its life.
class ShmSegment {
public:
    struct Made;

    ShmSegment() = default;
    ShmSegment(ShmSegment&& other) noexcept : base_(std::exchange(other.base_, nullptr)) {}
    ShmSegment& operator=(ShmSegment&& other) noexcept {
        std::swap(base_, other.base_);
        return *this;
    }
    ShmSegment(const ShmSegment&) = delete;
    ShmSegment& operator=(const ShmSegment&) = delete;
    ~ShmSegment();

    /// A new, empty ring and the descriptor for the other end. Error (kHarness).
    [[nodiscard]] static Result<Made> create();
    /// Maps a ring made elsewhere. Error (kOutcome) when the descriptor is something else.
    [[nodiscard]] static Result<ShmSegment> open(int descriptor);

    [[nodiscard]] bool valid() const { return base_ != nullptr; }
    [[nodiscard]] std::byte* base() const { return base_; }

private:
    explicit ShmSegment(std::byte* base) : base_(base) {}
    std::byte* base_ = nullptr;
};

struct ShmSegment::Made {
    ShmSegment segment;
    UniqueFd descriptor;
};

/// The writing end of a ring.
class RingWriter {
public:
    RingWriter() = default;
    explicit RingWriter(ShmSegment segment) : segment_(std::move(segment)) {}

    /// Bytes that write() would take now; Error (kOutcome) when the reader's count is impossible.
    [[nodiscard]] Result<std::size_t> space() const;
    /// Appends `head`, then `body`, at most `limit` bytes, which must not be more than space(); returns how many.
    std::size_t write(std::span<const std::byte> head, std::span<const std::byte> body, std::size_t limit);
    /// After write(): whether the reader sleeps and has to be woken. The announcement is taken back.
    [[nodiscard]] bool reader_sleeps();
    /// Announces that the writer is going to sleep until there is space; false (and no announcement) when there is.
    [[nodiscard]] bool prepare_sleep();

private:
    ShmSegment segment_;
    std::uint64_t written_ = 0;
};

/// The reading end of a ring.
class RingReader {
public:
    RingReader() = default;
    explicit RingReader(ShmSegment segment) : segment_(std::move(segment)) {}

    [[nodiscard]] bool valid() const { return segment_.valid(); }
    /// Bytes that can be read now; Error (kOutcome) when the writer's count is impossible.
    [[nodiscard]] Result<std::size_t> available() const;
    /// Takes bytes into `head`, then `body`, at most `limit`, which must not be more than available(); returns how
    /// many.
    std::size_t read(std::span<std::byte> head, std::span<std::byte> body, std::size_t limit);
    /// After read(): whether the writer sleeps and has to be woken. The announcement is taken back.
    [[nodiscard]] bool writer_sleeps();
    /// Announces that the reader is going to sleep until there is data; false (and no announcement) when there is.
    [[nodiscard]] bool prepare_sleep();

private:
    ShmSegment segment_;
    std::uint64_t read_ = 0;
};

} // namespace railbreak::collective
