// The doctor's findings as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injectors/hardware/probes.hpp"
#include "injectors/survey.hpp"

namespace railbreak::cli {

/// The host and who asks.
struct DoctorHost {
    std::string name;
    std::string kernel; ///< "Linux 6.1.0"
    std::uint32_t uid = 0;
    std::vector<std::string> capabilities; ///< effective ones that matter here: "cap_net_admin", ...
};

/// Everything that the doctor prints.
struct DoctorReport {
    DoctorHost host;
    injectors::Survey survey;
    std::vector<injectors::hardware::HardwareMechanism> hardware; ///< of every NIC that is hardware, and of GPUs
};

/// The effective capabilities of this process that injectors need, by name.
[[nodiscard]] std::vector<std::string> effective_network_capabilities();

/// Text: the host, one block per NIC, one line per kind of fault; ends in a newline.
[[nodiscard]] std::string doctor_text(const DoctorReport& report);
/// One object of schema "railbreak-doctor", version 1; ends in a newline.
[[nodiscard]] std::string doctor_json(const DoctorReport& report);

} // namespace railbreak::cli
