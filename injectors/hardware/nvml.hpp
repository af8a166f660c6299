// Slower GPUs: power limit and locked clocks, through NVIDIA's management library (loaded at run time).
//
// The power limit comes first: its former value can be read. A clock lock cannot be read back, so a lock that the site
// has set would be lost; locking is refused unless the site declares what its baseline is. Both need root; both are
// forgotten by a reload of the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

/// One GPU of this host. The UUID names it for good; the index does not.
struct Gpu {
    std::string uuid;
    std::string name;
    std::string pci_address; ///< "0000:3b:00.0"
    bool operator==(const Gpu&) const = default;
};

/// Power limit of a GPU and what it may be set to.
struct GpuPower {
    std::uint32_t limit_milliwatts = 0;
    std::uint32_t smallest_milliwatts = 0;
    std::uint32_t largest_milliwatts = 0;
    std::uint32_t default_milliwatts = 0;
    bool operator==(const GpuPower&) const = default;
};

/// A range that the SM clock is locked to.
struct ClockRange {
    std::uint32_t lowest_mhz = 0;
    std::uint32_t highest_mhz = 0;
    bool operator==(const ClockRange&) const = default;
};
/// What the site declares to be normal: clocks free, or locked to a range.
struct ClockBaseline {
    std::optional<ClockRange> locked; ///< nullopt: free
};

/// NVML, from load() to the end of this object's life.
class Nvml {
public:
    /// Loads and initialises the library. kRefused when it is not installed or its driver is not there.
    [[nodiscard]] static Result<Nvml> load(const std::string& library = "libnvidia-ml.so.1");

    /// All GPUs, in NVML's order.
    [[nodiscard]] Result<std::vector<Gpu>> gpus() const;

    /// kRefused when the GPU has no power limit; kInput when there is no such GPU.
    [[nodiscard]] Result<GpuPower> read_power(std::string_view uuid) const;
    /// Sets the limit and proves it by read-back. kInput outside of what the GPU allows; kRefused without root.
    [[nodiscard]] Result<void> set_power_limit(std::string_view uuid, std::uint32_t milliwatts) const;
    /// Sets the limit that `former` had and proves it; kTeardown when it is not there afterwards.
    [[nodiscard]] Result<void> restore_power_limit(std::string_view uuid, const GpuPower& former) const;

    /// Locks the SM clock. kRefused without a declared baseline. Nothing tells whether a lock holds: watch
    /// sm_clock_mhz() under load.
    [[nodiscard]] Result<void> lock_clocks(std::string_view uuid, const ClockRange& range,
                                           const std::optional<ClockBaseline>& baseline) const;
    /// Unlocks, or locks to the baseline's range; kTeardown on failure.
    [[nodiscard]] Result<void> restore_clocks(std::string_view uuid, const ClockBaseline& baseline) const;
    /// The SM clock now.
    [[nodiscard]] Result<std::uint32_t> sm_clock_mhz(std::string_view uuid) const;

private:
    struct Library;
    explicit Nvml(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
    [[nodiscard]] Result<void*> find(std::string_view uuid) const;
    std::shared_ptr<const Library> library_;
};

} // namespace railbreak::injectors::hardware
