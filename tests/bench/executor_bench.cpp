// Times the executor on real sockets: ranks as processes, each in its own network namespace when some are given, all
// running one schedule many times. Prints, per phase, the time over what the measured goodput allows.
//
//     executor_bench --ranks 4 --bytes 64MiB                          over the loopback interface
//     executor_bench --namespaces h0,h1,h2 --addresses 10.0.0.1,...   between namespaces that exist already
//     executor_bench --lab NAME --ranks 4                             between the first hosts of a lab that is up
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/units.hpp"
#include "collective/algorithm.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/execute/executor.hpp"
#include "collective/execute/links.hpp"
#include "collective/execute/probe.hpp"
#include "collective/transport/rank_transport.hpp"
#include "harness/lab/lab.hpp"
#include "kernels/digest.hpp"
#include "kernels/fill.hpp"

namespace railbreak::collective {
namespace {

struct Settings {
    Rank ranks = 4;
    std::string bytes = "64MiB";
    std::string plan = "ring";
    std::int64_t segments = 4;
    Rank straggler = -1;
    bool shared = false;
    int iterations = 7;
    int warm_up = 2;
    std::vector<std::string> namespaces;
    std::vector<std::string> addresses;
    std::string lab;
    bool times = false; ///< also print every iteration's time
    Rank rank = -1;     ///< of a rank that was started anew inside a lab host, with
    int socket = -1;    ///< its end of the socket pair
    TcpTuning tuning;
    ExecutorOptions options;
};

/// The first probe brings TCP's window up to the path's, the second one measures.
constexpr int kProbes = 2;

/// What a rank tells the parent about one iteration; crosses a socket pair as it is.
struct Report {
    std::int64_t started_ns = 0;
    std::int64_t ended_ns = 0;
    std::int64_t goodput_bits_per_s = 0;
    std::int64_t cpu_ns = 0;
    std::int64_t waits = 0;
    std::int64_t right = 0;
};

/// One of the bench's processes ran into trouble: say so and leave.
[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "executor_bench: %s\n", why.c_str());
    ::_exit(1);
}

template <class T> T must(Result<T>&& result) {
    if (!result) {
        give_up(result.error().to_line());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

template <class T> void tell(int socket, const T& value) {
    if (::send(socket, &value, sizeof value, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof value)) {
        give_up("a process of the bench is gone");
    }
}

template <class T> T hear(int socket) {
    T value{};
    if (::recv(socket, &value, sizeof value, MSG_WAITALL) != static_cast<ssize_t>(sizeof value)) {
        give_up("a process of the bench is gone");
    }
    return value;
}

std::int64_t cpu_ns() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1000; };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

std::unique_ptr<const Schedule> make_schedule(const Settings& settings, std::int64_t elements) {
    if (settings.plan == "ring") {
        return make_ring(settings.ranks, elements);
    }
    OptccParameters parameters;
    parameters.servers = settings.ranks;
    parameters.stragglers = {std::max(settings.straggler, 0)};
    parameters.elements = elements;
    parameters.plan = settings.plan == "u" ? OptccPlan::kUniform : OptccPlan::kBalanced;
    parameters.segments = settings.segments;
    parameters.shared = settings.shared;
    return make_optcc(parameters);
}

void enter_namespace(const std::string& name) {
    const UniqueFd fd(::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid() || ::setns(fd.get(), CLONE_NEWNET) != 0) {
        give_up("cannot enter the network namespace " + name);
    }
}

/// Starts this program anew in a lab host: the lab's door takes a command.
[[noreturn]] void run_rank_in_lab(const Settings& settings, Rank rank, int parent, std::vector<std::string> command) {
    if (::fcntl(parent, F_SETFD, 0) != 0) { // to be inherited
        give_up("cannot hand over a socket");
    }
    command.front() = "/proc/self/exe";
    for (const auto& word :
         {std::string("--rank"), std::to_string(rank), std::string("--socket"), std::to_string(parent)}) {
        command.push_back(word);
    }
    must(lab::lab_exec(settings.lab, fmt::format("h{}", rank), command));
    give_up("cannot enter the lab");
}

/// Addresses of the lab's hosts on their first rail.
std::vector<std::string> lab_addresses(const std::string& name) {
    std::vector<std::string> addresses;
    for (const lab::LabSummary& summary : must(lab::lab_list())) {
        if (summary.spec.name == name) {
            for (const lab::LabHost& host : lab::hosts_of(summary.spec)) {
                addresses.push_back(host.nics.front().address);
            }
        }
    }
    return addresses;
}

Deadline patient() {
    return Deadline::after(std::chrono::seconds(60));
}

/// A rank: connects, then probes, then iterations, each started by a byte from the parent.
void run_rank(const Settings& settings, Rank rank, int parent) {
    const auto index = static_cast<std::size_t>(rank);
    if (!settings.namespaces.empty()) {
        enter_namespace(settings.namespaces[index]);
    }
    auto transport = must(RankTransport::listen({.self = rank,
                                                 .addresses = {settings.addresses[index]},
                                                 .token = "only for the benchmark, no secret",
                                                 .tuning = settings.tuning}));
    tell(parent, transport->port(0));
    std::map<Rank, PeerAddresses> peers;
    for (Rank peer = 0; peer < settings.ranks; ++peer) {
        peers[peer].nics = {{settings.addresses[static_cast<std::size_t>(peer)], hear<std::uint16_t>(parent)}};
    }
    const auto bytes = static_cast<std::size_t>(must(parse_byte_count(settings.bytes)).bytes());
    const auto elements = static_cast<std::int64_t>(bytes / 4);
    const auto schedule = make_schedule(settings, elements);
    const LinkProbe probe({.servers = settings.ranks, .warm_elements = elements / 2, .measured_elements = elements});
    must(transport->connect(peers, links_of(probe, rank), patient()));
    must(transport->connect(peers, links_of(*schedule, rank), patient()));
    Executor executor(*transport, settings.options);
    std::vector<std::byte> vector(bytes);
    const std::string expected = must(kernels::expected_digest(1, settings.ranks, elements, Dtype::kFloat32));
    for (int i = -kProbes - settings.warm_up; i < settings.iterations; ++i) {
        const bool probes = i < -settings.warm_up;
        must(kernels::fill(vector, Dtype::kFloat32, 1, rank, settings.ranks));
        tell(parent, char{});
        hear<char>(parent);
        const std::int64_t cpu = cpu_ns();
        const ExecutionStats stats = must(
            executor.run(probes ? static_cast<const Schedule&>(probe) : *schedule, Dtype::kFloat32, vector, patient()));
        tell(parent,
             Report{stats.started_at.count(), stats.ended_at.count(),
                    static_cast<std::int64_t>(received_goodput(stats).bits_per_s()), cpu_ns() - cpu,
                    static_cast<std::int64_t>(stats.waits), probes || kernels::digest(vector) == expected ? 1 : 0});
    }
}

/// Starts the iteration on all ranks and gathers their reports.
std::vector<Report> iterate(const std::vector<UniqueFd>& ranks) {
    for (const UniqueFd& rank : ranks) {
        hear<char>(rank.get());
    }
    for (const UniqueFd& rank : ranks) {
        tell(rank.get(), char{});
    }
    std::vector<Report> reports;
    for (const UniqueFd& rank : ranks) {
        reports.push_back(hear<Report>(rank.get()));
    }
    return reports;
}

double seconds_of(const std::vector<Report>& reports) {
    std::int64_t start = reports.front().started_ns;
    std::int64_t end = 0;
    for (const Report& report : reports) {
        start = std::min(start, report.started_ns);
        end = std::max(end, report.ended_ns);
    }
    return static_cast<double>(end - start) / 1e9;
}

void run_parent(const Settings& settings, const std::vector<UniqueFd>& ranks) {
    std::vector<std::uint16_t> ports;
    for (const UniqueFd& rank : ranks) {
        ports.push_back(hear<std::uint16_t>(rank.get()));
    }
    for (const UniqueFd& rank : ranks) {
        for (const std::uint16_t port : ports) {
            tell(rank.get(), port);
        }
    }
    std::int64_t slowest = 0;
    std::int64_t fastest = 0;
    static_cast<void>(iterate(ranks));
    for (const Report& report : iterate(ranks)) {
        slowest = slowest == 0 ? report.goodput_bits_per_s : std::min(slowest, report.goodput_bits_per_s);
        fastest = std::max(fastest, report.goodput_bits_per_s);
    }
    const double p = settings.ranks;
    const double bits = static_cast<double>(must(parse_byte_count(settings.bytes)).bytes()) * 8.0;
    const double healthy = 2.0 * (p - 1.0) / p * bits / static_cast<double>(fastest);
    std::vector<double> ratios;
    std::string times;
    double cpu = 0;
    double waits = 0;
    bool right = true;
    for (int i = -settings.warm_up; i < settings.iterations; ++i) {
        const std::vector<Report> reports = iterate(ranks);
        if (i < 0) {
            continue;
        }
        ratios.push_back(seconds_of(reports) / healthy);
        times += fmt::format(" {:.3f}", seconds_of(reports) * 1e3);
        for (const Report& report : reports) {
            cpu += static_cast<double>(report.cpu_ns) / 1e9 / settings.iterations;
            waits += static_cast<double>(report.waits) / p / settings.iterations;
            right = right && report.right == 1;
        }
    }
    std::sort(ratios.begin(), ratios.end());
    fmt::print("goodput {:.1f}..{:.1f} Mbit/s  T/T0 min {:.4f} median {:.4f} max {:.4f}  median {:.1f} ms  T0 {:.1f} "
               "ms  cpu {:.3f} s  "
               "waits/rank {:.0f}  {}\n",
               static_cast<double>(slowest) / 1e6, static_cast<double>(fastest) / 1e6, ratios.front(),
               ratios[ratios.size() / 2], ratios.back(), ratios[ratios.size() / 2] * healthy * 1e3, healthy * 1e3, cpu,
               waits, right ? "right" : "WRONG");
    if (settings.times) {
        fmt::print("times_ms{} cpu_ms {:.1f} {}\n", times, cpu * 1e3, right ? "right" : "WRONG");
    }
}

int run(const Settings& settings, const std::vector<std::string>& command) {
    std::vector<UniqueFd> sockets;
    std::vector<pid_t> children;
    for (Rank rank = 0; rank < settings.ranks; ++rank) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            give_up("cannot make a socket pair");
        }
        sockets.emplace_back(ends[0]);
        const UniqueFd child_end(ends[1]);
        const pid_t child = ::fork();
        if (child == 0) {
            sockets.clear();
            if (!settings.lab.empty()) {
                run_rank_in_lab(settings, rank, child_end.get(), command);
            }
            run_rank(settings, rank, child_end.get());
            ::_exit(0);
        }
        children.push_back(child);
    }
    run_parent(settings, sockets);
    int failed = 0;
    for (const pid_t child : children) {
        int status = 0;
        failed += ::waitpid(child, &status, 0) != child || status != 0 ? 1 : 0;
    }
    return failed == 0 ? 0 : 1;
}

} // namespace
} // namespace railbreak::collective

int main(int argc, char** argv) {
    railbreak::collective::Settings settings;
    CLI::App app("Times the executor over TCP");
    app.add_option("--ranks", settings.ranks)->check(CLI::Range(2, 1024));
    app.add_option("--bytes", settings.bytes);
    app.add_option("--plan", settings.plan, "ring, u or bs");
    app.add_option("--segments", settings.segments, "k of optcc");
    app.add_option("--straggler", settings.straggler);
    app.add_flag("--shared", settings.shared, "optcc on two lanes");
    app.add_option("--iterations", settings.iterations)->check(CLI::PositiveNumber);
    app.add_option("--warm-up", settings.warm_up);
    app.add_option("--namespaces", settings.namespaces)->delimiter(',');
    app.add_option("--addresses", settings.addresses)->delimiter(',');
    app.add_option("--lab", settings.lab, "name of a lab that is up");
    app.add_flag("--times", settings.times, "print the time of every iteration");
    app.add_option("--rank", settings.rank)->group("");
    app.add_option("--socket", settings.socket)->group("");
    app.add_option("--lowat", settings.tuning.notsent_lowat_bytes);
    app.add_option("--sndbuf", settings.tuning.send_buffer_bytes);
    app.add_option("--rcvbuf", settings.tuning.receive_buffer_bytes);
    app.add_option("--congestion", settings.tuning.congestion);
    app.add_option("--forward", settings.options.forward_bytes);
    app.add_option("--call", settings.options.call_bytes);
    app.add_option("--staging", settings.options.staging_bytes);
    CLI11_PARSE(app, argc, argv);
    if (settings.rank >= 0) {
        railbreak::collective::run_rank(settings, settings.rank, settings.socket);
        return 0;
    }
    std::vector<std::string> command(argv, argv + argc);
    if (!settings.lab.empty()) {
        settings.addresses = railbreak::collective::lab_addresses(settings.lab);
        settings.addresses.resize(static_cast<std::size_t>(settings.ranks));
        command.push_back(fmt::format("--addresses={}", fmt::join(settings.addresses, ",")));
    }
    settings.addresses.resize(static_cast<std::size_t>(settings.ranks), "127.0.0.1");
    return railbreak::collective::run(settings, command);
}
