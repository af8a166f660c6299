// Three GPUs behind NVML's interface, for the test of the loader and of its decisions: GPU-0 obeys, GPU-1 permits
// nothing, GPU-2 says yes and does nothing.
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

struct StandIn {
    unsigned limit = 700'000;
    unsigned clock = 1980;
};
std::array<StandIn, 3> gpus; // NOLINT: what a driver would hold

constexpr int kInvalidArgument = 2;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;

std::size_t index_of(void* device) {
    return static_cast<std::size_t>(static_cast<StandIn*>(device) - gpus.data());
}
int obey(void* device, unsigned StandIn::*member, unsigned value) {
    const std::size_t index = index_of(device);
    if (index == 1) {
        return kNoPermission;
    }
    if (index == 0) {
        gpus[0].*member = value;
    }
    return 0;
}

} // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's.
extern "C" {

int nvmlInit_v2() {
    return 0;
}
int nvmlShutdown() {
    return 0;
}
const char* nvmlErrorString(int code) {
    return code == kNoPermission ? "Insufficient Permissions" : "Not Found";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = static_cast<unsigned>(gpus.size());
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    if (index >= gpus.size()) {
        return kInvalidArgument;
    }
    *device = &gpus[index];
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
    const std::string_view text(uuid);
    if (text.size() != 5 || !text.starts_with("GPU-") || text[4] < '0' || text[4] > '2') {
        return kNotFound;
    }
    return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(text[4] - '0'), device);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
    std::snprintf(text, size, "GPU-%zu", index_of(device));
    return 0;
}
int nvmlDeviceGetName(void* /*device*/, char* text, unsigned size) {
    std::snprintf(text, size, "stand-in");
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, void* info) {
    const std::array<unsigned, 5> numbers{0, 0x3b, static_cast<unsigned>(index_of(device)), 0, 0};
    auto* bytes = static_cast<char*>(info);
    std::memset(bytes, 0, 68);
    std::memcpy(bytes + 16, numbers.data(), sizeof numbers);
    return 0;
}
int nvmlDeviceGetPowerManagementLimit(void* device, unsigned* limit) {
    *limit = gpus[index_of(device)].limit;
    return 0;
}
int nvmlDeviceGetPowerManagementLimitConstraints(void* /*device*/, unsigned* smallest, unsigned* largest) {
    *smallest = 200'000;
    *largest = 700'000;
    return 0;
}
int nvmlDeviceGetPowerManagementDefaultLimit(void* /*device*/, unsigned* limit) {
    *limit = 700'000;
    return 0;
}
int nvmlDeviceSetPowerManagementLimit(void* device, unsigned limit) {
    return obey(device, &StandIn::limit, limit);
}
int nvmlDeviceSetGpuLockedClocks(void* device, unsigned /*lowest*/, unsigned highest) {
    return obey(device, &StandIn::clock, highest);
}
int nvmlDeviceResetGpuLockedClocks(void* device) {
    return obey(device, &StandIn::clock, 1980);
}
int nvmlDeviceGetClockInfo(void* device, int /*type*/, unsigned* mhz) {
    *mhz = gpus[index_of(device)].clock;
    return 0;
}
}
// NOLINTEND(readability-identifier-naming)
