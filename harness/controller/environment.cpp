#include "harness/controller/environment.hpp"

#include <fstream>
#include <string_view>

#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/version.hpp"

namespace railbreak::controller {

using nlohmann::json;

namespace {

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown";
}

} // namespace

std::string environment_json() {
    utsname system{};
    ::uname(&system);
    json variables = json::object();
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
        const std::string_view variable(*entry);
        for (const std::string_view prefix : {"NCCL_", "UCX_", "OMPI_", "RAILBREAK_"}) {
            if (variable.starts_with(prefix)) {
                const std::size_t equals = variable.find('=');
                variables[std::string(variable.substr(0, equals))] = std::string(variable.substr(equals + 1));
            }
        }
    }
    const BuildInfo build = build_info();
    return json{{"kernel", fmt::format("{} {}", system.sysname, system.release)},
                {"machine", system.machine},
                {"cpu", cpu_model()},
                {"cpus", ::sysconf(_SC_NPROCESSORS_ONLN)},
                {"compiler", build.compiler},
                {"build_type", build.build_type},
                {"uid", ::getuid()},
                {"variables", variables}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string cluster_name() {
    utsname system{};
    ::uname(&system);
    return fmt::format("lab on {}", system.nodename);
}

} // namespace railbreak::controller
