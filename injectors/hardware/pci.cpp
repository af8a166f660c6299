#include "injectors/hardware/pci.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::string_view kDevices = "bus/pci/devices";
constexpr std::uint32_t kNetworkClass = 0x02;
constexpr std::uint32_t kDisplayClass = 0x03;
constexpr std::uint32_t kAcceleratorClass = 0x12;
constexpr int kClassShift = 16; // of the 24-bit code: base class above subclass and interface
constexpr int kHexadecimal = 16;

std::string device_path(std::string_view address, std::string_view file = "") {
    return fmt::format("{}/{}{}{}", kDevices, address, file.empty() ? "" : "/", file);
}

std::string bus_of(std::string_view address) {
    return std::string(address.substr(0, address.rfind(':')));
}

std::uint32_t class_code_of(const Sysfs& sysfs, std::string_view address) {
    const std::string text = sysfs.read(device_path(address, "class")).value_or("");
    std::uint32_t code = 0;
    if (text.starts_with("0x")) {
        std::from_chars(text.data() + 2, text.data() + text.size(), code, kHexadecimal);
    }
    return code;
}

/// Addresses on the way from the root to a device's folder, outermost first.
std::vector<std::string> addresses_in(std::string_view path) {
    std::vector<std::string> found;
    while (!path.empty()) {
        const auto end = std::min(path.find('/'), path.size());
        if (is_pci_address(path.substr(0, end))) {
            found.emplace_back(path.substr(0, end));
        }
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return found;
}

/// Interfaces of the function: those in its own "net" folder and in that of a child (virtio has one in between).
std::vector<PciNic> nics_of(const Sysfs& sysfs, std::string_view address) {
    std::vector<PciNic> nics;
    for (const std::string& name : sysfs.list("class/net")) {
        const auto parents = addresses_in(sysfs.real_path("class/net/" + name));
        if (!parents.empty() && parents.back() == address) {
            nics.push_back({name, sysfs.read(fmt::format("class/net/{}/address", name)).value_or("")});
        }
    }
    return nics;
}

std::vector<std::string> macs_of(const PciFunction& function) {
    std::vector<std::string> macs;
    for (const PciNic& nic : function.nics) {
        macs.push_back(nic.mac);
    }
    std::sort(macs.begin(), macs.end());
    return macs;
}

tl::unexpected<Error> refuse(const PciFunction& function, std::string reason) {
    return fail(Error(ErrorKind::kRefused, fmt::format("cannot remove {}: {}", function.address, reason))
                    .with("pci", function.address));
}

/// The function when it is there with all its former MACs.
std::optional<PciFunction> found_again(const Sysfs& sysfs, const PciFunction& former) {
    auto now = read_pci_function(sysfs, former.address);
    if (now && macs_of(*now) == macs_of(former)) {
        return std::move(*now);
    }
    return std::nullopt;
}

} // namespace

bool is_pci_address(std::string_view text) {
    constexpr std::string_view kForm = "xxxx:xx:xx.x";
    return text.size() == kForm.size() && std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
               return form == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == form;
           });
}

std::string_view pci_device_of(std::string_view address) {
    return address.substr(0, address.rfind('.'));
}

Result<PciFunction> pci_function_of_nic(const Sysfs& sysfs, std::string_view nic) {
    const std::string path = sysfs.real_path(fmt::format("class/net/{}", nic));
    if (nic.empty() || path.empty()) {
        return fail(Error(ErrorKind::kInput, fmt::format("there is no interface {}", nic)));
    }
    const auto parents = addresses_in(path);
    if (parents.empty()) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{} belongs to no PCI device", nic)));
    }
    return read_pci_function(sysfs, parents.back());
}

Result<PciFunction> read_pci_function(const Sysfs& sysfs, std::string_view address) {
    const std::string real = sysfs.real_path(device_path(address));
    const auto parents = addresses_in(real);
    if (!is_pci_address(address) || parents.empty() || parents.back() != address) {
        return fail(Error(ErrorKind::kInput, fmt::format("there is no PCI function {}", address)));
    }
    PciFunction function;
    function.address = address;
    function.upstream = parents.size() > 1 ? parents[parents.size() - 2] : "";
    function.driver = last_part(sysfs.real_path(device_path(address, "driver")));
    function.class_code = class_code_of(sysfs, address);
    function.active_vfs =
        static_cast<std::uint32_t>(sysfs.read_number(device_path(address, "sriov_numvfs")).value_or(0));
    function.physical_function = last_part(sysfs.real_path(device_path(address, "physfn")));
    function.nics = nics_of(sysfs, address);
    return function;
}

std::vector<PciFunction> pci_neighbours(const Sysfs& sysfs, const PciFunction& function) {
    std::vector<PciFunction> neighbours;
    for (const std::string& address : sysfs.list(kDevices)) {
        auto other = read_pci_function(sysfs, address);
        if (other && other->upstream == function.upstream && bus_of(address) == bus_of(function.address)) {
            neighbours.push_back(std::move(*other));
        }
    }
    return neighbours;
}

std::string rescan_path(const PciFunction& function) {
    return function.upstream.empty() ? fmt::format("class/pci_bus/{}/rescan", bus_of(function.address))
                                     : device_path(function.upstream, "rescan");
}

Result<void> check_removable(const Sysfs& sysfs, const PciFunction& function,
                             const std::vector<std::string>& protected_nics) {
    if (function.class_code >> kClassShift != kNetworkClass) {
        return refuse(function, "it is no network controller");
    }
    for (const std::string& nic : protected_nics) {
        const auto other = pci_function_of_nic(sysfs, nic);
        if (other && pci_device_of(other->address) == pci_device_of(function.address)) {
            return refuse(function, fmt::format("the protected interface {} is on the same device", nic));
        }
        if (other && other->physical_function == function.address) {
            return refuse(function, fmt::format("the protected interface {} is one of its VFs", nic));
        }
    }
    if (function.active_vfs != 0) {
        return refuse(function, fmt::format("{} active VFs would be lost", function.active_vfs));
    }
    // A rescan resizes the bridge's windows: what must not be disturbed may not share it. The root bus has none.
    for (const PciFunction& neighbour : pci_neighbours(sysfs, function)) {
        const std::uint32_t base_class = neighbour.class_code >> kClassShift;
        if (!function.upstream.empty() && (base_class == kDisplayClass || base_class == kAcceleratorClass)) {
            return refuse(function, fmt::format("the GPU {} is behind the same bridge", neighbour.address));
        }
    }
    if (!sysfs.exists(rescan_path(function))) {
        return refuse(function, fmt::format("there is no {} to bring it back", rescan_path(function)));
    }
    return {};
}

Result<void> remove_pci_function(const Sysfs& sysfs, const PciFunction& function) {
    const auto now = found_again(sysfs, function);
    if (!now || now->driver != function.driver) {
        return refuse(function, "another device is at this address now");
    }
    if (auto written = sysfs.write(device_path(function.address, "remove"), "1"); !written) {
        return written;
    }
    if (sysfs.exists(device_path(function.address))) {
        return fail(Error(ErrorKind::kHarness, fmt::format("{} is still on the bus", function.address)));
    }
    return {};
}

Result<PciFunction> restore_pci_function(const Sysfs& sysfs, const PciFunction& former, const WaitForLinkEvent& wait,
                                         Deadline deadline) {
    if (auto there = found_again(sysfs, former)) {
        return std::move(*there);
    }
    if (auto rescanned = sysfs.write(rescan_path(former), "1"); !rescanned) {
        return fail(as_teardown(rescanned.error()));
    }
    // The rescan returns when the device is on the bus; its driver may bind later.
    while (true) {
        if (auto there = found_again(sysfs, former)) {
            return std::move(*there);
        }
        const auto changed = wait(deadline);
        if (!changed) {
            return fail(as_teardown(changed.error()));
        }
        if (!*changed) {
            return fail(Error(ErrorKind::kTeardown, fmt::format("{} did not come back in time", former.address))
                            .with("pci", former.address)
                            .advise(fmt::format("write 1 to {}/{}", sysfs.root(), rescan_path(former))));
        }
    }
}

} // namespace railbreak::injectors::hardware
