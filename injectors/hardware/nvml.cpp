#include "injectors/hardware/nvml.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "injectors/hardware/loaded_library.hpp"
#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

// The few types of NVML's interface that are used here; its header comes with a package that is not free. The
// interface is versioned by the symbols' names.
using NvmlReturn = int;
using NvmlDevice = void*;
constexpr NvmlReturn kSuccess = 0;
constexpr NvmlReturn kNotSupported = 3;
constexpr NvmlReturn kNoPermission = 4;
constexpr NvmlReturn kNotFound = 6;
constexpr NvmlReturn kInvalidArgument = 2; // what an unknown UUID gives as well
constexpr int kClockSm = 1;                // NVML_CLOCK_SM
constexpr unsigned kTextBytes = 96;        // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE

struct NvmlPciInfo { // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
    std::array<char, 16> bus_id_legacy{};
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned device = 0;
    unsigned device_id = 0;
    unsigned subsystem_id = 0;
    std::array<char, 32> bus_id{};
};

} // namespace

struct Nvml::Library {
    NvmlReturn (*init)() = nullptr;
    NvmlReturn (*shutdown)() = nullptr;
    const char* (*error_string)(NvmlReturn) = nullptr;
    NvmlReturn (*count)(unsigned*) = nullptr;
    NvmlReturn (*by_index)(unsigned, NvmlDevice*) = nullptr;
    NvmlReturn (*by_uuid)(const char*, NvmlDevice*) = nullptr;
    NvmlReturn (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
    NvmlReturn (*name)(NvmlDevice, char*, unsigned) = nullptr;
    NvmlReturn (*pci_info)(NvmlDevice, NvmlPciInfo*) = nullptr;
    NvmlReturn (*power_limit)(NvmlDevice, unsigned*) = nullptr;
    NvmlReturn (*power_constraints)(NvmlDevice, unsigned*, unsigned*) = nullptr;
    NvmlReturn (*default_power_limit)(NvmlDevice, unsigned*) = nullptr;
    NvmlReturn (*set_power_limit)(NvmlDevice, unsigned) = nullptr;
    NvmlReturn (*lock_clocks)(NvmlDevice, unsigned, unsigned) = nullptr;
    NvmlReturn (*unlock_clocks)(NvmlDevice) = nullptr;
    NvmlReturn (*clock)(NvmlDevice, int, unsigned*) = nullptr;
    bool initialised = false;

    Library() = default;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() {
        if (initialised) {
            shutdown();
        }
    }

    /// An NVML code as an Error, or success.
    [[nodiscard]] Result<void> check(NvmlReturn code, std::string_view what) const {
        if (code == kSuccess) {
            return {};
        }
        const bool refused = code == kNoPermission || code == kNotSupported;
        const bool input = code == kNotFound || code == kInvalidArgument;
        const ErrorKind kind = refused ? ErrorKind::kRefused : (input ? ErrorKind::kInput : ErrorKind::kHarness);
        const char* words = error_string(code);
        return fail(Error(kind, fmt::format("cannot {}: {}", what, words != nullptr ? words : "?"))
                        .with("nvml", std::to_string(code)));
    }
};

Result<Nvml> Nvml::load(const std::string& library_name) {
    auto loaded = LoadedLibrary::load(library_name, "NVML comes with NVIDIA's driver");
    if (!loaded) {
        return fail(std::move(loaded.error()));
    }
    auto library = std::make_shared<Library>();
    loaded->require("nvmlInit_v2", library->init);
    loaded->require("nvmlShutdown", library->shutdown);
    loaded->require("nvmlErrorString", library->error_string);
    loaded->require("nvmlDeviceGetCount_v2", library->count);
    loaded->require("nvmlDeviceGetHandleByIndex_v2", library->by_index);
    loaded->require("nvmlDeviceGetHandleByUUID", library->by_uuid);
    loaded->require("nvmlDeviceGetUUID", library->uuid);
    loaded->require("nvmlDeviceGetName", library->name);
    loaded->require("nvmlDeviceGetPciInfo_v3", library->pci_info);
    loaded->require("nvmlDeviceGetPowerManagementLimit", library->power_limit);
    loaded->require("nvmlDeviceGetPowerManagementLimitConstraints", library->power_constraints);
    loaded->require("nvmlDeviceGetPowerManagementDefaultLimit", library->default_power_limit);
    loaded->require("nvmlDeviceSetPowerManagementLimit", library->set_power_limit);
    loaded->require("nvmlDeviceSetGpuLockedClocks", library->lock_clocks);
    loaded->require("nvmlDeviceResetGpuLockedClocks", library->unlock_clocks);
    loaded->require("nvmlDeviceGetClockInfo", library->clock);
    if (auto complete = loaded->check(); !complete) {
        return fail(std::move(complete.error()));
    }
    if (auto ready = library->check(library->init(), "initialise NVML"); !ready) {
        return fail(Error(ErrorKind::kRefused, ready.error().message()));
    }
    library->initialised = true;
    return Nvml(std::move(library));
}

Result<std::vector<Gpu>> Nvml::gpus() const {
    unsigned count = 0;
    if (auto done = library_->check(library_->count(&count), "count the GPUs"); !done) {
        return fail(std::move(done.error()));
    }
    std::vector<Gpu> found;
    for (unsigned i = 0; i < count; ++i) {
        NvmlDevice device = nullptr;
        std::array<char, kTextBytes> uuid{};
        std::array<char, kTextBytes> name{};
        NvmlPciInfo pci;
        const std::string what = fmt::format("look at GPU {}", i);
        for (const NvmlReturn code :
             {library_->by_index(i, &device), library_->uuid(device, uuid.data(), kTextBytes),
              library_->name(device, name.data(), kTextBytes), library_->pci_info(device, &pci)}) {
            if (auto done = library_->check(code, what); !done) {
                return fail(std::move(done.error()));
            }
        }
        found.push_back(
            {uuid.data(), name.data(), fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device)});
    }
    return found;
}

Result<void*> Nvml::find(std::string_view uuid) const {
    NvmlDevice device = nullptr;
    const auto done =
        library_->check(library_->by_uuid(std::string(uuid).c_str(), &device), fmt::format("find the GPU {}", uuid));
    if (!done) {
        return fail(Error(done.error()));
    }
    return device;
}

Result<GpuPower> Nvml::read_power(std::string_view uuid) const {
    const auto device = find(uuid);
    if (!device) {
        return fail(Error(device.error()));
    }
    GpuPower power;
    const std::string what = fmt::format("read the power limit of {}", uuid);
    for (const NvmlReturn code :
         {library_->power_limit(*device, &power.limit_milliwatts),
          library_->power_constraints(*device, &power.smallest_milliwatts, &power.largest_milliwatts),
          library_->default_power_limit(*device, &power.default_milliwatts)}) {
        if (auto done = library_->check(code, what); !done) {
            return fail(std::move(done.error()));
        }
    }
    return power;
}

Result<void> Nvml::set_power_limit(std::string_view uuid, std::uint32_t milliwatts) const {
    const auto power = read_power(uuid);
    if (!power) {
        return fail(Error(power.error()));
    }
    if (milliwatts < power->smallest_milliwatts || milliwatts > power->largest_milliwatts) {
        return fail(Error(ErrorKind::kInput, fmt::format("the GPU {} allows a limit of {} to {} mW", uuid,
                                                         power->smallest_milliwatts, power->largest_milliwatts))
                        .with("asked_milliwatts", std::to_string(milliwatts)));
    }
    const auto device = find(uuid);
    if (!device) {
        return fail(Error(device.error()));
    }
    const std::string what = fmt::format("set the power limit of {}", uuid);
    if (auto done = library_->check(library_->set_power_limit(*device, milliwatts), what); !done) {
        return done;
    }
    const auto now = read_power(uuid);
    if (!now) {
        return fail(Error(now.error()));
    }
    if (now->limit_milliwatts != milliwatts) {
        return fail(Error(ErrorKind::kHarness, fmt::format("the power limit of {} reads back as another", uuid))
                        .with("written_milliwatts", std::to_string(milliwatts))
                        .with("read_milliwatts", std::to_string(now->limit_milliwatts)));
    }
    return {};
}

Result<void> Nvml::restore_power_limit(std::string_view uuid, const GpuPower& former) const {
    auto done = set_power_limit(uuid, former.limit_milliwatts);
    return done ? done : fail(as_teardown(done.error()));
}

Result<void> Nvml::lock_clocks(std::string_view uuid, const ClockRange& range,
                               const std::optional<ClockBaseline>& baseline) const {
    if (!baseline) {
        return fail(Error(ErrorKind::kRefused, "a clock lock cannot be read, so a former one could not be put back")
                        .advise("declare the clocks' baseline of this site"));
    }
    if (range.lowest_mhz > range.highest_mhz || range.highest_mhz == 0) {
        return fail(ErrorKind::kInput, "a clock range goes from its lowest to its highest frequency");
    }
    const auto device = find(uuid);
    if (!device) {
        return fail(Error(device.error()));
    }
    return library_->check(library_->lock_clocks(*device, range.lowest_mhz, range.highest_mhz),
                           fmt::format("lock the clocks of {}", uuid));
}

Result<void> Nvml::restore_clocks(std::string_view uuid, const ClockBaseline& baseline) const {
    const auto device = find(uuid);
    if (!device) {
        return fail(as_teardown(device.error()));
    }
    const NvmlReturn code =
        baseline.locked ? library_->lock_clocks(*device, baseline.locked->lowest_mhz, baseline.locked->highest_mhz)
                        : library_->unlock_clocks(*device);
    auto done = library_->check(code, fmt::format("put the clocks of {} back", uuid));
    return done ? done : fail(as_teardown(done.error()));
}

Result<std::uint32_t> Nvml::sm_clock_mhz(std::string_view uuid) const {
    const auto device = find(uuid);
    if (!device) {
        return fail(Error(device.error()));
    }
    unsigned mhz = 0;
    if (auto done =
            library_->check(library_->clock(*device, kClockSm, &mhz), fmt::format("read the clock of {}", uuid));
        !done) {
        return fail(std::move(done.error()));
    }
    return mhz;
}

} // namespace railbreak::injectors::hardware
