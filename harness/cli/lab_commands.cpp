#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/console.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/cli/commands.hpp"
#include "harness/lab/lab.hpp"
#include "harness/lab/privilege.hpp"

namespace railbreak::cli {

namespace {

constexpr std::uint64_t kNoMtu = 1'000'000; ///< more than any NIC can; what is larger must not wrap around
constexpr Nanoseconds kDownTimeout = std::chrono::seconds(30);

struct UpArguments {
    std::string name = "lab";
    unsigned hosts = 8;
    unsigned nics_per_host = 1;
    std::string rate = "500Mbit/s";
    std::string mtu = "1500B";
};

nlohmann::json to_json(const lab::LabSummary& summary) {
    return {{"name", summary.spec.name},
            {"hosts", summary.spec.hosts},
            {"nics_per_host", summary.spec.nics_per_host},
            {"rate_bits_per_s", summary.spec.rate.bits_per_s()},
            {"mtu_bytes", summary.spec.mtu_bytes},
            {"kept", summary.kept},
            {"owner_pid", summary.owner_pid},
            {"keeper_pid", summary.keeper_pid},
            {"age_ns", summary.age.count()},
            {"alive", summary.alive}};
}

void print_labs(std::string_view schema, const nlohmann::json& labs) {
    const nlohmann::json document{{"schema", schema}, {"version", 1}, {"labs", labs}};
    print_result(json_text(document));
}

int up(const CommonOptions& common, const UpArguments& arguments) {
    const Result<BitRate> rate = parse_bit_rate(arguments.rate);
    const Result<ByteCount> mtu = parse_byte_count(arguments.mtu);
    if (!rate || !mtu) {
        return tell(common, rate ? mtu.error() : rate.error());
    }
    if (const Result<void> able = lab::become_namespace_root(); !able) {
        return tell(common, able.error());
    }
    Result<lab::LabSummary> summary =
        lab::lab_up_kept({.name = arguments.name,
                          .hosts = arguments.hosts,
                          .nics_per_host = arguments.nics_per_host,
                          .rate = *rate,
                          .mtu_bytes = static_cast<unsigned>(std::min<std::uint64_t>(mtu->bytes(), kNoMtu))});
    if (!summary) {
        return tell(common, summary.error());
    }
    if (common.json) {
        print_labs("railbreak-labs", nlohmann::json::array({to_json(*summary)}));
    } else {
        print_result(fmt::format(
            "lab {}: {} hosts h0..h{}, {} NIC(s) each at {}; enter one with: railbreak lab exec {} h0 -- COMMAND\n",
            summary->spec.name, summary->spec.hosts, summary->spec.hosts - 1, summary->spec.nics_per_host,
            to_string(summary->spec.rate), summary->spec.name));
    }
    return 0;
}

/// Tells of each lab in a line, or of all of them as JSON.
int print_down(const CommonOptions& common, const std::vector<lab::LabDownOutcome>& outcomes) {
    int exit_code = 0;
    nlohmann::json array = nlohmann::json::array();
    for (const lab::LabDownOutcome& outcome : outcomes) {
        array.push_back({{"name", outcome.name},
                         {"down", outcome.result.has_value()},
                         {"reason", outcome.result ? "" : outcome.result.error().to_line()}});
        if (!outcome.result) {
            exit_code = std::max(exit_code, tell(outcome.result.error()));
        } else if (!common.json) {
            print_result(fmt::format("lab {}: down\n", outcome.name));
        }
    }
    if (common.json) {
        print_labs("railbreak-lab-down", array);
    } else if (outcomes.empty()) {
        tell_user("no lab is up\n");
    }
    return exit_code;
}

int down(const CommonOptions& common, const std::string& name, bool all) {
    const Deadline deadline = Deadline::after(kDownTimeout);
    if (!all) {
        const Result<void> result = lab::lab_down(name, deadline);
        return result ? print_down(common, {{name, {}}}) : tell(common, result.error());
    }
    Result<std::vector<lab::LabDownOutcome>> outcomes = lab::lab_down_all(deadline);
    return outcomes ? print_down(common, *outcomes) : tell(common, outcomes.error());
}

int list(const CommonOptions& common) {
    Result<std::vector<lab::LabSummary>> labs = lab::lab_list();
    if (!labs) {
        return tell(common, labs.error());
    }
    if (common.json) {
        nlohmann::json array = nlohmann::json::array();
        for (const lab::LabSummary& summary : *labs) {
            array.push_back(to_json(summary));
        }
        print_labs("railbreak-labs", array);
        return 0;
    }
    print_result(fmt::format("{:<32} {:>5} {:>4} {:>12} {:>9} {:>9}  {}\n", "NAME", "HOSTS", "NICS", "RATE", "OWNER",
                             "AGE", "STATE"));
    for (const lab::LabSummary& summary : *labs) {
        print_result(fmt::format("{:<32} {:>5} {:>4} {:>12} {:>9} {:>8}s  {}\n", summary.spec.name, summary.spec.hosts,
                                 summary.spec.nics_per_host, to_string(summary.spec.rate), summary.owner_pid,
                                 std::chrono::duration_cast<std::chrono::seconds>(summary.age).count(),
                                 !summary.alive ? "stale"
                                 : summary.kept ? "kept"
                                                : "owned"));
    }
    return 0;
}

void add_up(CLI::App& lab, CommonOptions& common, const Choose& choose) {
    CLI::App* command = lab.add_subcommand("up", "Build a lab that stays until it is taken down");
    auto arguments = std::make_shared<UpArguments>();
    command->add_option("NAME", arguments->name, "Name of the lab")->capture_default_str();
    command->add_option("--hosts", arguments->hosts, "Hosts, 2 to 64")->capture_default_str();
    command->add_option("--nics", arguments->nics_per_host, "NICs of each host, 1 to 8")->capture_default_str();
    command->add_option("--rate", arguments->rate, "Rate of every NIC in each direction")->capture_default_str();
    command->add_option("--mtu", arguments->mtu, "MTU of every NIC")->capture_default_str();
    command->callback(
        [&common, arguments, choose] { choose([&common, arguments] { return up(common, *arguments); }); });
}

void add_down(CLI::App& lab, CommonOptions& common, const Choose& choose) {
    CLI::App* command = lab.add_subcommand("down", "Take a lab down");
    auto name = std::make_shared<std::string>("lab");
    auto all = std::make_shared<bool>(false);
    command->add_option("NAME", *name, "Name of the lab")->capture_default_str();
    command->add_flag("--all", *all, "Every lab, and whatever one left behind");
    command->callback(
        [&common, name, all, choose] { choose([&common, name, all] { return down(common, *name, *all); }); });
}

void add_exec(CLI::App& lab, CommonOptions& common, const Choose& choose) {
    CLI::App* command = lab.add_subcommand("exec", "Run a command inside a host of a lab");
    auto name = std::make_shared<std::string>();
    auto host = std::make_shared<std::string>();
    auto words = std::make_shared<std::vector<std::string>>();
    command->add_option("NAME", *name, "Name of the lab")->required();
    command->add_option("HOST", *host, "Host, h0 or 0")->required();
    command->add_option("COMMAND", *words, "Program and arguments, after --")->required();
    command->callback([&common, name, host, words, choose] {
        choose([&common, name, host, words] {
            const Result<void> failed = lab::lab_exec(*name, *host, *words);
            return failed ? 0 : tell(common, failed.error());
        });
    });
}

} // namespace

void add_lab_commands(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* lab = app.add_subcommand("lab", "The built-in cluster of network namespaces on this machine");
    lab->require_subcommand(1);
    add_up(*lab, common, choose);
    add_down(*lab, common, choose);
    add_exec(*lab, common, choose);
    CLI::App* all = lab->add_subcommand("list", "List the labs of this user");
    all->callback([&common, choose] { choose([&common] { return list(common); }); });
}

} // namespace railbreak::cli
