// Faults under RDMA over Soft-RoCE, inside the guest: between rxe0 and rxe1, which soft_roce.sh makes. Its packets pass
// through the kernel's queues, so what acts on a NIC acts on it; on a NIC that builds its packets itself it would not.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>

#include "base/clock.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/real_host_ops.hpp"

namespace railbreak::injectors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPatience = seconds(20);
constexpr std::uint8_t kPort = 1;
constexpr std::uint32_t kQueueDepth = 64;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::uint32_t kMessageBytes = 1U << 14;
/// First packet number of every connection.
constexpr std::uint32_t kFirstPacket = 0x1234;

/// Frees what a verbs call made.
template <auto kFree> struct Freed {
    template <class Object> void operator()(Object* object) const { kFree(object); }
};
template <class Object, auto kFree> using Owned = std::unique_ptr<Object, Freed<kFree>>;

/// One device with one reliable queue pair and a registered buffer.
class VerbsEnd {
public:
    /// Opens the device and makes its objects; false when anything is missing.
    [[nodiscard]] bool open(const std::string& device, const std::string& address);
    /// RESET, INIT, RTR and RTS, whatever state the queue pair is in. Gives the first errno, 0 when all went well.
    [[nodiscard]] int connect_to(const VerbsEnd& peer);
    /// Into the error state, as a driver would after a fatal event.
    [[nodiscard]] int force_error() { return modify({.qp_state = IBV_QPS_ERR}, IBV_QP_STATE); }
    [[nodiscard]] ibv_qp_state state() const;

    /// Posts an RDMA write of `bytes` at `offset` of both buffers.
    [[nodiscard]] int write_to(const VerbsEnd& peer, std::size_t offset, std::uint32_t bytes);
    [[nodiscard]] int post_receive();
    /// The next completion, none when the deadline passes first.
    [[nodiscard]] std::optional<ibv_wc> next_completion(Deadline deadline);

    [[nodiscard]] std::vector<std::uint8_t>& buffer() { return buffer_; }
    /// One of the device's counters (out_of_seq_request, ...), 0 when there is none.
    [[nodiscard]] std::uint64_t counter(const std::string& name) const;

private:
    [[nodiscard]] int modify(ibv_qp_attr attributes, int mask) { return ibv_modify_qp(pair_.get(), &attributes, mask); }

    std::string device_;
    int gid_index_ = -1;
    ibv_gid gid_{};
    std::vector<std::uint8_t> buffer_;
    Owned<ibv_context, ibv_close_device> context_;
    Owned<ibv_pd, ibv_dealloc_pd> domain_;
    Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
    Owned<ibv_cq, ibv_destroy_cq> completions_;
    Owned<ibv_qp, ibv_destroy_qp> pair_;
    Owned<ibv_mr, ibv_dereg_mr> region_;
};

bool VerbsEnd::open(const std::string& device, const std::string& address) {
    device_ = device;
    int count = 0;
    const Owned<ibv_device*, ibv_free_device_list> devices(ibv_get_device_list(&count));
    for (int i = 0; i < count; ++i) {
        if (device == ibv_get_device_name(devices.get()[i])) {
            context_.reset(ibv_open_device(devices.get()[i]));
        }
    }
    if (!context_) {
        return false;
    }
    // By value: an index moves when addresses come and go.
    in_addr wanted{};
    inet_pton(AF_INET, address.c_str(), &wanted);
    for (std::uint32_t index = 0; index < 16; ++index) {
        ibv_gid_entry entry{};
        if (ibv_query_gid_ex(context_.get(), kPort, index, &entry, 0) == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            entry.gid.raw[10] == 0xff && std::memcmp(&entry.gid.raw[12], &wanted, sizeof wanted) == 0) {
            gid_index_ = static_cast<int>(index);
            gid_ = entry.gid;
        }
    }
    domain_.reset(ibv_alloc_pd(context_.get()));
    channel_.reset(ibv_create_comp_channel(context_.get()));
    completions_.reset(ibv_create_cq(context_.get(), 2 * kQueueDepth, nullptr, channel_.get(), 0));
    buffer_.resize(kBufferBytes);
    region_.reset(
        ibv_reg_mr(domain_.get(), buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    ibv_qp_init_attr wish{};
    wish.send_cq = completions_.get();
    wish.recv_cq = completions_.get();
    wish.cap = {.max_send_wr = kQueueDepth, .max_recv_wr = kQueueDepth, .max_send_sge = 1, .max_recv_sge = 1};
    wish.qp_type = IBV_QPT_RC;
    wish.sq_sig_all = 1;
    pair_.reset(ibv_create_qp(domain_.get(), &wish));
    return gid_index_ >= 0 && pair_ && region_;
}

int VerbsEnd::connect_to(const VerbsEnd& peer) {
    if (const int error = modify({.qp_state = IBV_QPS_RESET}, IBV_QP_STATE)) {
        return error;
    }
    ibv_qp_attr init{.qp_state = IBV_QPS_INIT};
    init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    init.port_num = kPort;
    if (const int error = modify(init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        return error;
    }
    ibv_qp_attr receive{.qp_state = IBV_QPS_RTR};
    receive.path_mtu = IBV_MTU_1024;
    receive.dest_qp_num = peer.pair_->qp_num;
    receive.rq_psn = kFirstPacket;
    receive.max_dest_rd_atomic = 1;
    receive.min_rnr_timer = 12; // 0.64 ms
    receive.ah_attr.is_global = 1;
    receive.ah_attr.port_num = kPort;
    receive.ah_attr.grh.dgid = peer.gid_;
    receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    receive.ah_attr.grh.hop_limit = 64;
    if (const int error = modify(receive, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
        return error;
    }
    ibv_qp_attr send{.qp_state = IBV_QPS_RTS};
    send.sq_psn = kFirstPacket;
    send.max_rd_atomic = 1;
    send.timeout = 16; // 4.096 us * 2^16 = 0.27 s
    send.retry_cnt = 7;
    send.rnr_retry = 7;
    return modify(send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC);
}

ibv_qp_state VerbsEnd::state() const {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr ignored{};
    return ibv_query_qp(pair_.get(), &attributes, IBV_QP_STATE, &ignored) == 0 ? attributes.qp_state : IBV_QPS_UNKNOWN;
}

int VerbsEnd::write_to(const VerbsEnd& peer, std::size_t offset, std::uint32_t bytes) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(buffer_.data() + offset), bytes, region_->lkey};
    ibv_send_wr work{};
    work.wr_id = offset;
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(peer.buffer_.data() + offset);
    work.wr.rdma.rkey = peer.region_->rkey;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(pair_.get(), &work, &bad);
}

int VerbsEnd::post_receive() {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(buffer_.data()), kMessageBytes, region_->lkey};
    ibv_recv_wr work{};
    work.sg_list = &piece;
    work.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(pair_.get(), &work, &bad);
}

std::optional<ibv_wc> VerbsEnd::next_completion(Deadline deadline) {
    ibv_wc completion{};
    for (;;) {
        if (ibv_poll_cq(completions_.get(), 1, &completion) > 0) {
            return completion;
        }
        // Armed first and then looked at once more, or one that comes in between would be missed.
        if (ibv_req_notify_cq(completions_.get(), 0) != 0 || ibv_poll_cq(completions_.get(), 1, &completion) > 0) {
            return completion;
        }
        pollfd waiter{channel_->fd, POLLIN, 0};
        if (poll(&waiter, 1, deadline.poll_timeout_ms()) <= 0) {
            return std::nullopt;
        }
        ibv_cq* ready = nullptr;
        void* ignored = nullptr;
        if (ibv_get_cq_event(channel_.get(), &ready, &ignored) == 0) {
            ibv_ack_cq_events(ready, 1);
        }
    }
}

std::uint64_t VerbsEnd::counter(const std::string& name) const {
    const std::string path = "/sys/class/infiniband/" + device_ + "/ports/1/hw_counters/" + name;
    const std::unique_ptr<std::FILE, Freed<std::fclose>> file(std::fopen(path.c_str(), "re"));
    unsigned long long value = 0;
    return file && std::fscanf(file.get(), "%llu", &value) == 1 ? value : 0;
}

class SoftRoce : public ::testing::Test {
protected:
    void SetUp() override {
        if (if_nametoindex("roce0") == 0 || !std::filesystem::exists("/sys/class/infiniband/rxe1")) {
            GTEST_SKIP() << "no Soft-RoCE devices: this test runs in the guest, through soft_roce.sh";
        }
        ASSERT_TRUE(sender_.open("rxe0", "10.20.0.1"));
        ASSERT_TRUE(receiver_.open("rxe1", "10.20.0.2"));
        connect();
        auto ops = open_host_ops();
        ASSERT_TRUE(ops.has_value()) << ops.error().to_line();
        ops_ = std::move(*ops);
        std::string pattern = ::testing::TempDir() + "railbreak-rxe-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        KeeperOptions options;
        options.run_id = "rxe";
        options.host_name = "guest";
        options.journal_folder = folder_;
        options.lease = std::chrono::minutes(10);
        auto keeper = FaultKeeper::open(options, *ops_);
        ASSERT_TRUE(keeper.has_value()) << keeper.error().to_line();
        keeper_.emplace(std::move(*keeper));
    }
    void TearDown() override {
        if (keeper_) {
            EXPECT_TRUE(keeper_->close().has_value());
        }
        if (!folder_.empty()) {
            std::filesystem::remove_all(folder_);
        }
    }

    void connect() {
        ASSERT_EQ(receiver_.connect_to(sender_), 0);
        ASSERT_EQ(sender_.connect_to(receiver_), 0);
    }
    /// Writes random bytes over the whole buffer and compares the two.
    void expect_data_arrives();
    /// Payload rate of RDMA writes over `span`, after `settle`.
    double goodput_mbit(Nanoseconds settle, Nanoseconds span);
    /// Shortest time from posting a small write to its completion.
    Nanoseconds round_trip();
    void apply(const FaultRequest& request) {
        const auto applied = keeper_->apply(request);
        ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    }
    void revert(std::int32_t id) {
        const auto reverted = keeper_->revert(id);
        ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    }

    VerbsEnd sender_;
    VerbsEnd receiver_;
    std::unique_ptr<HostOps> ops_;
    std::string folder_;
    std::optional<FaultKeeper> keeper_;
};

void SoftRoce::expect_data_arrives() {
    std::uint32_t value = 1;
    for (std::uint8_t& byte : sender_.buffer()) {
        value = value * 1664525U + 1013904223U;
        byte = static_cast<std::uint8_t>(value >> 24U);
    }
    std::ranges::fill(receiver_.buffer(), std::uint8_t{0});
    for (std::size_t offset = 0; offset < kBufferBytes; offset += kMessageBytes) {
        ASSERT_EQ(sender_.write_to(receiver_, offset, kMessageBytes), 0);
    }
    const Deadline deadline = Deadline::after(kPatience);
    for (std::size_t done = 0; done < kBufferBytes / kMessageBytes; ++done) {
        const auto completion = sender_.next_completion(deadline);
        ASSERT_TRUE(completion.has_value()) << "no completion after " << done;
        ASSERT_EQ(completion->status, IBV_WC_SUCCESS) << ibv_wc_status_str(completion->status);
    }
    EXPECT_EQ(sender_.buffer(), receiver_.buffer());
}

double SoftRoce::goodput_mbit(Nanoseconds settle, Nanoseconds span) {
    constexpr std::size_t kWindow = 8;
    std::size_t outstanding = 0;
    const Nanoseconds start = monotonic_now() + settle;
    Nanoseconds first{0};
    Nanoseconds last{0};
    std::uint64_t bytes = 0;
    for (;;) {
        const bool over = monotonic_now() >= start + span;
        for (; !over && outstanding < kWindow; ++outstanding) {
            EXPECT_EQ(sender_.write_to(receiver_, outstanding * kMessageBytes, kMessageBytes), 0);
        }
        if (outstanding == 0) {
            break;
        }
        const auto completion = sender_.next_completion(Deadline::after(kPatience));
        if (!completion || completion->status != IBV_WC_SUCCESS) {
            ADD_FAILURE() << (completion ? ibv_wc_status_str(completion->status) : "no completion");
            return 0;
        }
        --outstanding;
        const Nanoseconds now = monotonic_now();
        if (first.count() != 0) { // the first completion only starts the clock
            bytes += kMessageBytes;
            last = now;
        } else if (now >= start) {
            first = now;
        }
    }
    return last > first ? static_cast<double>(bytes) * 8e3 / static_cast<double>((last - first).count()) : 0;
}

Nanoseconds SoftRoce::round_trip() {
    Nanoseconds shortest = kPatience;
    for (int i = 0; i < 5; ++i) {
        const Nanoseconds posted = monotonic_now();
        EXPECT_EQ(sender_.write_to(receiver_, 0, 64), 0);
        const auto completion = sender_.next_completion(Deadline::after(kPatience));
        EXPECT_TRUE(completion && completion->status == IBV_WC_SUCCESS);
        shortest = std::min(shortest, monotonic_now() - posted);
    }
    return shortest;
}

TEST_F(SoftRoce, MovesBytesUndamaged) {
    expect_data_arrives();
}

TEST_F(SoftRoce, ACapOfTheSendingNicLimitsIt) {
    const BitRate rate = BitRate::bits_per_s(16'000'000);
    const double before = goodput_mbit(milliseconds(100), milliseconds(500));
    apply({1, FaultKind::kCap, "roce0", Direction::kSend, rate});
    const double during = goodput_mbit(milliseconds(500), milliseconds(1500));
    revert(1);
    const double after = goodput_mbit(milliseconds(100), milliseconds(500));
    std::printf("RDMA goodput in Mbit/s: %.1f, send capped at 16: %.1f, then %.1f\n", before, during, after);
    EXPECT_LT(during, 16.0);
    EXPECT_GT(during, 1.0);
    EXPECT_GT(before, 2 * during);
    EXPECT_GT(after, 2 * during);
    expect_data_arrives();
}

TEST_F(SoftRoce, ACapOfTheReceivingNicLimitsIt) {
    const BitRate rate = BitRate::bits_per_s(16'000'000);
    apply({1, FaultKind::kCap, "roce1", Direction::kReceive, rate});
    const double during = goodput_mbit(milliseconds(500), milliseconds(1500));
    revert(1);
    const double after = goodput_mbit(milliseconds(100), milliseconds(500));
    std::printf("RDMA goodput in Mbit/s: receive capped at 16: %.1f, then %.1f\n", during, after);
    EXPECT_LT(during, 16.0);
    EXPECT_GT(during, 1.0);
    EXPECT_GT(after, 2 * during);
    expect_data_arrives();
}

TEST_F(SoftRoce, ALinkThatIsDownEndsItsWorkWithAnErrorAndServesAgainAfterwards) {
    apply({1, FaultKind::kLinkDown, "roce0", Direction::kBoth, {}});
    ASSERT_EQ(sender_.write_to(receiver_, 0, kMessageBytes), 0);
    const auto completion = sender_.next_completion(Deadline::after(kPatience));
    ASSERT_TRUE(completion.has_value()) << "no completion";
    std::printf("a write over the link that is down: %s\n", ibv_wc_status_str(completion->status));
    EXPECT_NE(completion->status, IBV_WC_SUCCESS);
    EXPECT_EQ(sender_.state(), IBV_QPS_ERR);
    revert(1);
    connect();
    expect_data_arrives();
}

TEST_F(SoftRoce, AQueuePairInErrorFlushesWhatWasPostedAndCanBeRevived) {
    // Slow enough that nothing can have been sent whole.
    apply({1, FaultKind::kCap, "roce0", Direction::kSend, BitRate::bits_per_s(8'000)});
    constexpr int kPosted = 4;
    for (int i = 0; i < kPosted; ++i) {
        ASSERT_EQ(sender_.write_to(receiver_, 0, kBufferBytes), 0);
        ASSERT_EQ(receiver_.post_receive(), 0);
    }
    for (VerbsEnd* end : {&sender_, &receiver_}) {
        ASSERT_EQ(end->force_error(), 0);
        EXPECT_EQ(end->state(), IBV_QPS_ERR);
        for (int i = 0; i < kPosted; ++i) {
            const auto completion = end->next_completion(Deadline::after(kPatience));
            ASSERT_TRUE(completion.has_value()) << "no completion after " << i;
            EXPECT_EQ(completion->status, IBV_WC_WR_FLUSH_ERR) << ibv_wc_status_str(completion->status);
        }
    }
    revert(1);
    connect();
    EXPECT_EQ(sender_.state(), IBV_QPS_RTS);
    expect_data_arrives();
}

TEST_F(SoftRoce, ADelayHoldsEveryPacketBack) {
    const Nanoseconds before = round_trip();
    apply({.id = 1,
           .kind = FaultKind::kDelay,
           .nic = "roce0",
           .direction = Direction::kSend,
           .packets = {.delay = milliseconds(80)}});
    const Nanoseconds during = round_trip();
    revert(1);
    const Nanoseconds after = round_trip();
    std::printf("RDMA round trip in ms: %.2f, delayed by 80 ms: %.2f, then %.2f\n",
                static_cast<double>(before.count()) / 1e6, static_cast<double>(during.count()) / 1e6,
                static_cast<double>(after.count()) / 1e6);
    EXPECT_GE(during, milliseconds(80));
    EXPECT_LT(before, during);
    EXPECT_LT(after, during);
}

TEST_F(SoftRoce, LossMakesItSendAgainAndTheDataIsStillWhole) {
    const std::uint64_t before = receiver_.counter("out_of_seq_request");
    apply({.id = 1,
           .kind = FaultKind::kLoss,
           .nic = "roce0",
           .direction = Direction::kSend,
           .packets = {.loss = kMillion / 50}});
    expect_data_arrives();
    revert(1);
    EXPECT_GT(receiver_.counter("out_of_seq_request"), before);
}

TEST_F(SoftRoce, ABlackholeHoldsItUpUntilItEnds) {
    apply({.id = 1, .kind = FaultKind::kBlackhole, .nic = "roce0", .direction = Direction::kBoth});
    ASSERT_EQ(sender_.write_to(receiver_, 0, 64), 0);
    EXPECT_FALSE(sender_.next_completion(Deadline::after(milliseconds(400))).has_value());
    revert(1);
    const auto completion = sender_.next_completion(Deadline::after(kPatience));
    ASSERT_TRUE(completion.has_value());
    EXPECT_EQ(completion->status, IBV_WC_SUCCESS) << ibv_wc_status_str(completion->status);
    expect_data_arrives();
}

} // namespace
} // namespace railbreak::injectors
