#include "collective/transport/shm_ring.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

/// The start of the memory; the data follow at kDataOffset. Each end writes to a cache line of its own.
struct Control {
    alignas(64) std::atomic<std::uint64_t> written;
    std::atomic<std::uint32_t> writer_sleeps;
    alignas(64) std::atomic<std::uint64_t> read;
    std::atomic<std::uint32_t> reader_sleeps;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "only lock-free atomics work between processes");

constexpr std::size_t kDataOffset = 4096;
constexpr std::size_t kSegmentBytes = kDataOffset + kRingBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static_assert(sizeof(Control) <= kDataOffset && kRingBytes % kDataOffset == 0);

Control& control_of(const ShmSegment& segment) {
    return *std::launder(reinterpret_cast<Control*>(segment.base()));
}

Result<std::byte*> map(int descriptor) {
    void* mapped = ::mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        return fail_errno(ErrorKind::kHarness, "map a ring in shared memory", errno);
    }
    return static_cast<std::byte*>(mapped);
}

/// Copies `bytes` to the place of byte number `at`, and round the end of the ring.
void put(const ShmSegment& segment, std::uint64_t at, std::span<const std::byte> bytes) {
    std::byte* data = segment.base() + kDataOffset;
    const auto offset = static_cast<std::size_t>(at % kRingBytes);
    const std::size_t first = std::min(bytes.size(), kRingBytes - offset);
    std::copy_n(bytes.begin(), first, data + offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.size() - first, data);
}

void get(const ShmSegment& segment, std::uint64_t at, std::span<std::byte> bytes) {
    const std::byte* data = segment.base() + kDataOffset;
    const auto offset = static_cast<std::size_t>(at % kRingBytes);
    const std::size_t first = std::min(bytes.size(), kRingBytes - offset);
    std::copy_n(data + offset, first, bytes.begin());
    std::copy_n(data, bytes.size() - first, bytes.begin() + static_cast<std::ptrdiff_t>(first));
}

Result<std::size_t> filled(std::uint64_t written, std::uint64_t read) {
    if (written - read > kRingBytes) {
        return fail(ErrorKind::kOutcome, "the peer's count of a ring in shared memory is impossible");
    }
    return static_cast<std::size_t>(written - read);
}

/// Takes back an announcement of sleep, if there is one.
bool take(std::atomic<std::uint32_t>& announcement) {
    return announcement.load() != 0 && announcement.exchange(0) != 0;
}

} // namespace

ShmSegment::~ShmSegment() {
    if (base_ != nullptr) {
        ::munmap(base_, kSegmentBytes);
    }
}

Result<ShmSegment::Made> ShmSegment::create() {
    UniqueFd descriptor(::memfd_create("railbreak-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!descriptor.valid() || ::ftruncate(descriptor.get(), kSegmentBytes) != 0 ||
        ::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
        return fail_errno(ErrorKind::kHarness, "make shared memory for a ring", errno);
    }
    Result<std::byte*> mapped = map(descriptor.get());
    if (!mapped) {
        return tl::unexpected<Error>(std::move(mapped.error()));
    }
    new (*mapped) Control{};
    return Made{ShmSegment(*mapped), std::move(descriptor)};
}

Result<ShmSegment> ShmSegment::open(int descriptor) {
    struct stat info {};
    if (::fstat(descriptor, &info) != 0 || info.st_size != kSegmentBytes ||
        (::fcntl(descriptor, F_GET_SEALS) & F_SEAL_SHRINK) == 0) {
        return fail(ErrorKind::kOutcome, "the peer handed over something that is no ring");
    }
    Result<std::byte*> mapped = map(descriptor);
    if (!mapped) {
        return tl::unexpected<Error>(std::move(mapped.error()));
    }
    return ShmSegment(*mapped);
}

Result<std::size_t> RingWriter::space() const {
    return filled(written_, control_of(segment_).read.load()).map([](std::size_t used) { return kRingBytes - used; });
}

std::size_t RingWriter::write(std::span<const std::byte> head, std::span<const std::byte> body, std::size_t limit) {
    const std::size_t from_head = std::min(head.size(), limit);
    const std::size_t from_body = std::min(body.size(), limit - from_head);
    put(segment_, written_, head.first(from_head));
    put(segment_, written_ + from_head, body.first(from_body));
    written_ += from_head + from_body;
    control_of(segment_).written.store(written_);
    return from_head + from_body;
}

bool RingWriter::reader_sleeps() {
    return take(control_of(segment_).reader_sleeps);
}

bool RingWriter::prepare_sleep() {
    Control& control = control_of(segment_);
    control.writer_sleeps.store(1);
    if (written_ - control.read.load() >= kRingBytes) {
        return true;
    }
    control.writer_sleeps.store(0);
    return false;
}

Result<std::size_t> RingReader::available() const {
    return filled(control_of(segment_).written.load(), read_);
}

std::size_t RingReader::read(std::span<std::byte> head, std::span<std::byte> body, std::size_t limit) {
    const std::size_t to_head = std::min(head.size(), limit);
    const std::size_t to_body = std::min(body.size(), limit - to_head);
    get(segment_, read_, head.first(to_head));
    get(segment_, read_ + to_head, body.first(to_body));
    read_ += to_head + to_body;
    control_of(segment_).read.store(read_);
    return to_head + to_body;
}

bool RingReader::writer_sleeps() {
    return take(control_of(segment_).writer_sleeps);
}

bool RingReader::prepare_sleep() {
    Control& control = control_of(segment_);
    control.reader_sleeps.store(1);
    if (control.written.load() == read_) {
        return true;
    }
    control.reader_sleeps.store(0);
    return false;
}

} // namespace railbreak::collective
