// How long a change of a cap takes to act: from the call to the kernel to the first moment from which on a running TCP
// flow's goodput is what the new rate allows.
//
// Two hosts of a lab, one flow from h0 to h1. The bytes that the receiving socket has taken in (TCP_INFO, so the
// reading process's own delays do not count) are sampled every millisecond. After a change, the new rate is obeyed from
// the first sample on whose window, and every one that starts in the next 50 ms, is within the tolerance of it. A
// window holds at least eight of the largest packets (64 kB before they are cut for the wire). Old goodput of a
// millisecond or two at the start of a window stays within the tolerance, so nothing finer can be told apart. The lab's
// own class is changed directly, and by FaultKeeper (which also checks, writes its journal and reads back).
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/units.hpp"
#include "harness/lab/lab.hpp"
#include "harness/lab/privilege.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/netlink.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/traffic_control.hpp"
#include "tests/bench/received_bytes.hpp"
#include "tests/lab/lab_flow.hpp"

namespace railbreak {
namespace {

using injectors::FaultKeeper;
using injectors::NetlinkChannel;
using std::chrono::milliseconds;

constexpr auto kShortestWindow = milliseconds(10); ///< over which goodput is averaged
constexpr double kLargestPacketBits = 65536 * 8;
constexpr auto kSteady = milliseconds(50);        ///< for how long the new rate must be kept
constexpr auto kObserved = milliseconds(400);     ///< after each change
constexpr double kTolerance = 0.15;               ///< of the new rate, for every window
constexpr double kPayloadShare = 1448.0 / 1514.0; ///< of what the shaper counts, at an MTU of 1500
constexpr std::int32_t kFaultId = 1;

struct Settings {
    std::string rate = "500Mbit/s";
    std::vector<std::string> caps = {"250Mbit/s", "50Mbit/s"};
    int changes = 12; ///< down, and as many up
};

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "cap_bench: %s\n", why.c_str());
    std::fflush(stdout);
    std::_Exit(1); // the lab's keeper and the fault's guard tidy up
}

template <class T> T must(Result<T>&& result) {
    if (!result) {
        give_up(result.error().to_line());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

struct Sample {
    Nanoseconds at{0};
    std::uint64_t bytes = 0;
};

/// Keeps the flow's buffers full at one end and empty at the other, until its end.
class Pump {
public:
    explicit Pump(const lab::Flow& flow)
        : sender_([this, fd = flow.sender.get()] { run(fd, POLLOUT); }),
          receiver_([this, fd = flow.receiver.get()] { run(fd, POLLIN); }) {}
    Pump(const Pump&) = delete;
    Pump& operator=(const Pump&) = delete;
    ~Pump() {
        stop_ = true;
        sender_.join();
        receiver_.join();
    }

private:
    void run(int fd, short events) {
        std::vector<char> block(1 << 18);
        while (!stop_) {
            pollfd waiter{fd, events, 0};
            if (::poll(&waiter, 1, 100) <= 0) {
                continue;
            }
            const ssize_t moved = events == POLLOUT ? ::send(fd, block.data(), block.size(), MSG_NOSIGNAL)
                                                    : ::recv(fd, block.data(), block.size(), 0);
            if (moved < 0 && errno != EAGAIN) {
                give_up("the flow broke off");
            }
        }
    }

    std::atomic<bool> stop_ = false;
    std::thread sender_;
    std::thread receiver_;
};

/// Samples the receiving socket every millisecond for a while.
std::vector<Sample> watch(const lab::Flow& flow, Nanoseconds span) {
    const UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const itimerspec every{{0, 1'000'000}, {0, 1'000'000}};
    if (!timer.valid() || ::timerfd_settime(timer.get(), 0, &every, nullptr) != 0) {
        give_up("cannot make a timer");
    }
    std::vector<Sample> samples;
    const Deadline end = Deadline::after(span);
    while (!end.passed()) {
        const auto bytes = bench::received_bytes(flow.receiver.get());
        if (!bytes) {
            give_up("cannot read TCP_INFO");
        }
        samples.push_back({monotonic_now(), *bytes});
        std::uint64_t ticks = 0;
        static_cast<void>(!::read(timer.get(), &ticks, sizeof ticks));
    }
    return samples;
}

Nanoseconds window_at(BitRate rate) {
    const double packets_s = 8 * kLargestPacketBits / static_cast<double>(rate.bits_per_s());
    return std::max(Nanoseconds(kShortestWindow), Nanoseconds(static_cast<std::int64_t>(packets_s * 1e9)));
}

/// The first sample from which on every window carries what `rate` allows, for as long as kSteady; nullopt when there
/// is none.
std::optional<Nanoseconds> obeyed_at(const std::vector<Sample>& samples, BitRate rate) {
    const double wanted = static_cast<double>(rate.bits_per_s()) * kPayloadShare;
    const Nanoseconds window = window_at(rate);
    std::optional<Nanoseconds> since;
    std::size_t end = 0;
    for (const Sample& start : samples) {
        while (end < samples.size() && samples[end].at < start.at + window) {
            ++end;
        }
        if (end == samples.size()) {
            break;
        }
        const double goodput = static_cast<double>(samples[end].bytes - start.bytes) * 8e9 /
                               static_cast<double>((samples[end].at - start.at).count());
        if (goodput < wanted * (1 - kTolerance) || goodput > wanted * (1 + kTolerance)) {
            since.reset();
        } else if (!since) {
            since = start.at;
        } else if (start.at - *since >= kSteady) {
            return since;
        }
    }
    return std::nullopt;
}

/// What one kind of change took, in milliseconds.
struct Figures {
    std::vector<double> call;   ///< until the call returned
    std::vector<double> effect; ///< until the rate was obeyed
    int never = 0;              ///< changes after which it was not obeyed while observed
};

void print(const std::string& title, Figures figures) {
    const auto spread = [](std::vector<double>& values) {
        if (values.empty()) {
            return std::string("       -        -        -");
        }
        std::sort(values.begin(), values.end());
        return fmt::format("{:8.2f} {:8.2f} {:8.2f}", values.front(), values[values.size() / 2], values.back());
    };
    const std::size_t changes = figures.effect.size() + static_cast<std::size_t>(figures.never);
    fmt::print("   {:<34} {:>7}  {}  {}  {}\n", title, changes, spread(figures.call), spread(figures.effect),
               figures.never == 0 ? "" : fmt::format("({} not obeyed in {})", figures.never, to_string(kObserved)));
}

/// Makes the change `apply` and watches what becomes of the flow.
template <class Apply> void change(const lab::Flow& flow, BitRate rate, const Apply& apply, Figures& figures) {
    const Nanoseconds before = monotonic_now();
    apply();
    const Nanoseconds after = monotonic_now();
    const auto obeyed = obeyed_at(watch(flow, kObserved), rate);
    const auto ms = [before](Nanoseconds when) { return static_cast<double>((when - before).count()) / 1e6; };
    figures.call.push_back(ms(after));
    if (obeyed) {
        figures.effect.push_back(ms(*obeyed));
    } else {
        ++figures.never;
    }
}

class Bench {
public:
    explicit Bench(const Settings& settings) : settings_(settings), full_(must(parse_bit_rate(settings.rate))) {}

    void run() {
        auto lab = must(lab::Lab::up({fmt::format("cap-bench-{}", ::getpid()), 2, 1, full_, 1500}));
        measure(lab); // whatever holds one of the lab's namespaces is gone when it returns
        must(lab.down(Deadline::after(std::chrono::seconds(10))));
    }

private:
    void measure(const lab::Lab& lab) {
        const lab::LabNic& nic = lab.hosts()[0].nics[0];
        auto channel = must(NetlinkChannel::open_in(lab.host_netns_fd(0)));
        auto ops = must(injectors::open_host_ops_in(lab.host_netns_fd(0)));
        const auto folder = std::filesystem::temp_directory_path() / lab.spec().name;
        // Opened while there is one thread only: its guard is a fork of this process.
        auto keeper = must(FaultKeeper::open(
            {.run_id = lab.spec().name, .host_name = "h0", .journal_folder = folder, .lease = std::chrono::minutes(5)},
            *ops));
        const auto flow = lab::connect_flow(lab.host_netns_fd(0), lab.host_netns_fd(1), lab.hosts()[1].nics[0].address);
        if (!flow) {
            give_up("cannot connect two lab hosts");
        }
        print_head();
        {
            const Pump pump(*flow);
            static_cast<void>(watch(*flow, std::chrono::seconds(1))); // until the flow is at its rate
            for (const std::string& text : settings_.caps) {
                const BitRate cap = must(parse_bit_rate(text));
                by_class(*flow, channel, nic.ifindex, cap);
                by_keeper(*flow, keeper, nic.name, cap);
            }
        }
        must(keeper.close());
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
    }

    void print_head() const {
        fmt::print("   NIC at {}, one TCP flow, send side capped. Obeyed: goodput within {:.0f} % of the new rate; "
                   "resolution 2 ms\n",
                   to_string(full_), kTolerance * 100);
        fmt::print("   {:<34} {:>7}  {:>26}  {:>26}\n   {:<34} {:>7}  {:>8} {:>8} {:>8}  {:>8} {:>8} {:>8}\n", "",
                   "changes", "call returned, ms", "rate obeyed, ms", "", "", "min", "median", "max", "min", "median",
                   "max");
    }

    void by_class(const lab::Flow& flow, NetlinkChannel& channel, int ifindex, BitRate cap) const {
        Figures down;
        Figures up;
        const auto set = [&channel, ifindex](BitRate rate) {
            must(change_htb_class(channel, ifindex, injectors::kLabHtbClass,
                                  injectors::make_htb_class(rate, lab::lab_burst(), lab::kLabQuantum)));
        };
        for (int i = 0; i < settings_.changes; ++i) {
            change(
                flow, cap, [&] { set(cap); }, down);
            change(
                flow, full_, [&] { set(full_); }, up);
        }
        print(fmt::format("netlink, down to {}", to_string(cap)), std::move(down));
        print(fmt::format("netlink, up from {}", to_string(cap)), std::move(up));
    }

    void by_keeper(const lab::Flow& flow, FaultKeeper& keeper, const std::string& nic, BitRate cap) {
        Figures down;
        Figures up;
        for (int i = 0; i < settings_.changes; ++i) {
            const std::int32_t id = kFaultId + faults_++;
            change(
                flow, cap,
                [&] {
                    must(keeper.apply({.id = id,
                                       .kind = injectors::FaultKind::kCap,
                                       .nic = nic,
                                       .direction = injectors::Direction::kSend,
                                       .rate = cap}));
                },
                down);
            change(
                flow, full_, [&] { must(keeper.revert(id)); }, up);
        }
        print(fmt::format("fault cap, applied at {}", to_string(cap)), std::move(down));
        print(fmt::format("fault cap, reverted from {}", to_string(cap)), std::move(up));
    }

    Settings settings_;
    BitRate full_;
    std::int32_t faults_ = 0;
};

} // namespace
} // namespace railbreak

int main(int argc, char** argv) {
    railbreak::Settings settings;
    CLI::App app("Measures how long a change of a NIC's rate takes to act");
    app.add_option("--rate", settings.rate, "of the NIC without a cap");
    app.add_option("--caps", settings.caps)->delimiter(',');
    app.add_option("--changes", settings.changes, "down, and as many up")->check(CLI::PositiveNumber);
    CLI11_PARSE(app, argc, argv);
    if (const auto able = railbreak::lab::become_namespace_root(); !able) {
        std::printf("   skipped: %s\n", able.error().to_line().c_str());
        return 0;
    }
    railbreak::Bench(settings).run();
    return 0;
}
