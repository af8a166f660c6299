// How exactly a cap holds: goodput of a TCP flow over what the wanted rate leaves for payload (1448 of 1514 bytes at an
// MTU of 1500), for several rates and both directions.
//
// Two hosts of a lab whose own rate is far above. Host h0 is capped by FaultKeeper, sending or receiving; one flow goes
// through the cap. Every figure is min, median and max over the repeats of one run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/units.hpp"
#include "harness/lab/lab.hpp"
#include "harness/lab/privilege.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/real_host_ops.hpp"
#include "tests/lab/lab_flow.hpp"

namespace railbreak {
namespace {

using injectors::Direction;
using injectors::FaultKeeper;

constexpr double kPayloadShare = 1448.0 / 1514.0;
constexpr auto kSettle = std::chrono::milliseconds(700);

struct Settings {
    std::string lab_rate = "10Gbit/s";
    std::vector<std::string> caps = {"50Mbit/s", "100Mbit/s", "500Mbit/s", "1Gbit/s"};
    int repeats = 5;
    int milliseconds = 2000;
};

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "cap_accuracy: %s\n", why.c_str());
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

/// Goodput through the cap over what it leaves for payload.
double measure(const lab::Lab& lab, Direction direction, BitRate cap, const Settings& settings) {
    const unsigned from = direction == Direction::kSend ? 0 : 1;
    const auto flow =
        lab::connect_flow(lab.host_netns_fd(from), lab.host_netns_fd(1 - from), lab.hosts()[1 - from].nics[0].address);
    if (!flow) {
        give_up("cannot connect two lab hosts");
    }
    const double goodput =
        lab::measure_goodput(*flow, kSettle, kSettle + std::chrono::milliseconds(settings.milliseconds));
    return goodput / (static_cast<double>(cap.bits_per_s()) * kPayloadShare);
}

/// Whatever holds one of the lab's namespaces is gone when it returns.
void measure_all(const lab::Lab& lab, const Settings& settings) {
    auto ops = must(injectors::open_host_ops_in(lab.host_netns_fd(0)));
    const auto folder = std::filesystem::temp_directory_path() / lab.spec().name;
    auto keeper = must(FaultKeeper::open(
        {.run_id = lab.spec().name, .host_name = "h0", .journal_folder = folder, .lease = std::chrono::minutes(10)},
        *ops));
    fmt::print("   goodput over what the cap leaves for payload; one TCP flow, {} repeats\n", settings.repeats);
    fmt::print("   {:<10} {:<8} {:>7} {:>7} {:>7}\n", "cap", "side", "min", "median", "max");
    std::int32_t id = 0;
    for (const std::string& text : settings.caps) {
        const BitRate cap = must(parse_bit_rate(text));
        for (const Direction direction : {Direction::kSend, Direction::kReceive}) {
            std::vector<double> ratios;
            for (int i = 0; i < settings.repeats; ++i) {
                ++id;
                must(keeper.apply({.id = id,
                                   .kind = injectors::FaultKind::kCap,
                                   .nic = lab.hosts()[0].nics[0].name,
                                   .direction = direction,
                                   .rate = cap}));
                ratios.push_back(measure(lab, direction, cap, settings));
                must(keeper.revert(id));
            }
            std::sort(ratios.begin(), ratios.end());
            fmt::print("   {:<10} {:<8} {:7.4f} {:7.4f} {:7.4f}\n", text, to_string(direction), ratios.front(),
                       ratios[ratios.size() / 2], ratios.back());
            std::fflush(stdout);
        }
    }
    must(keeper.close());
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
}

void run(const Settings& settings) {
    auto lab = must(lab::Lab::up(
        {fmt::format("cap-accuracy-{}", ::getpid()), 2, 1, must(parse_bit_rate(settings.lab_rate)), 1500}));
    measure_all(lab, settings);
    must(lab.down(Deadline::after(std::chrono::seconds(10))));
}

} // namespace
} // namespace railbreak

int main(int argc, char** argv) {
    railbreak::Settings settings;
    CLI::App app("Measures how exactly a cap holds");
    app.add_option("--lab-rate", settings.lab_rate, "of the NICs without a cap");
    app.add_option("--caps", settings.caps)->delimiter(',');
    app.add_option("--repeats", settings.repeats)->check(CLI::PositiveNumber);
    app.add_option("--milliseconds", settings.milliseconds, "of each measurement")->check(CLI::PositiveNumber);
    CLI11_PARSE(app, argc, argv);
    if (const auto able = railbreak::lab::become_namespace_root(); !able) {
        std::printf("   skipped: %s\n", able.error().to_line().c_str());
        return 0;
    }
    railbreak::run(settings);
    return 0;
}
