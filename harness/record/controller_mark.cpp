#include "harness/record/controller_mark.hpp"

#include <array>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>

namespace railbreak::record {

namespace {

std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id;
}

// "pid:[4026531836]"; empty where there is no /proc.
std::string pid_namespace() {
    std::array<char, 64> text{};
    const ssize_t length = ::readlink("/proc/self/ns/pid", text.data(), text.size());
    return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

// Field 22 of /proc/PID/stat; empty when there is no such process or only a zombie of it. The second field may hold
// blanks and brackets, so that counting begins behind the last bracket.
std::string start_ticks(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t bracket = line.rfind(')');
    if (bracket == std::string::npos) {
        return "";
    }
    std::istringstream fields(line.substr(bracket + 1));
    constexpr int kFirstField = 3;
    constexpr int kStartTime = 22;
    std::string field;
    for (int number = kFirstField; number <= kStartTime && fields >> field; ++number) {
        if (number == kFirstField && (field == "Z" || field == "X")) {
            return "";
        }
    }
    return field;
}

} // namespace

std::string this_controller() {
    const std::string pid = std::to_string(::getpid());
    const std::string boot = boot_id();
    const std::string space = pid_namespace();
    const std::string ticks = start_ticks(pid);
    return boot.empty() || space.empty() || ticks.empty() ? "" : fmt::format("{} {} {} {}", boot, space, pid, ticks);
}

bool may_be_running(std::string_view mark) {
    std::istringstream parts{std::string(mark)};
    std::string boot;
    std::string space;
    std::string pid;
    std::string ticks;
    if (!(parts >> boot >> space >> pid >> ticks) || pid.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    if (boot != boot_id()) {
        return false;
    }
    return space != pid_namespace() || start_ticks(pid) == ticks;
}

} // namespace railbreak::record
