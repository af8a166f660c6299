// What format version 1 accepts. The JSON Schema and docs/scenario-format.md state the same numbers.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace railbreak::scenarios {

inline constexpr std::size_t kMaxFileBytes = 1U << 20; ///< refused before parsing
inline constexpr std::size_t kMaxDepth = 32;           ///< nesting of maps and lists
inline constexpr std::size_t kMaxNameLength = 64;
inline constexpr std::size_t kMaxDescriptionLength = 4000;
inline constexpr std::size_t kMaxAlgorithms = 16;
inline constexpr std::size_t kMaxFaults = 64;
inline constexpr std::size_t kMaxExpectations = 256;

inline constexpr std::int64_t kMinHosts = 2;
inline constexpr std::int64_t kMaxHosts = 64;
inline constexpr std::int64_t kMaxNicsPerHost = 8;
inline constexpr std::int64_t kMaxRanksPerHost = 8;
inline constexpr std::int64_t kMaxIterations = 100'000; ///< of one phase

inline constexpr BitRate kMinRate = BitRate::bits_per_s(8'000); ///< what the injectors can still set exactly
inline constexpr BitRate kMaxRate = BitRate::bits_per_s(10'000'000'000'000);
inline constexpr ByteCount kMinMtu = ByteCount::bytes(576);
inline constexpr ByteCount kMaxMtu = ByteCount::bytes(9'216);
inline constexpr ByteCount kMaxVector = ByteCount::bytes(1ULL << 40);
inline constexpr Nanoseconds kMinIterationTimeout = std::chrono::milliseconds(100);
inline constexpr Nanoseconds kMaxIterationTimeout = std::chrono::hours(1);
inline constexpr Nanoseconds kMinLease = std::chrono::seconds(1);
inline constexpr Nanoseconds kMaxLease = std::chrono::minutes(10);
inline constexpr Nanoseconds kMaxDelay = std::chrono::seconds(10);         ///< of packets
inline constexpr Nanoseconds kMinFlapDown = std::chrono::milliseconds(50); ///< what a link takes to go down and up
inline constexpr Nanoseconds kMinFlapUp = std::chrono::milliseconds(50);
inline constexpr std::int64_t kMaxFlaps = 100;
inline constexpr std::uint32_t kMinCpu = 10'000;       ///< millionths of a CPU
inline constexpr std::int32_t kIpv6MinMtu = 1280;      ///< RFC 8200: below it the kernel gives up IPv6 on the device
inline constexpr std::int64_t kMaxLimit = 1'000'000;   ///< of min and max in expectations
inline constexpr std::int64_t kLimitScale = 1'000'000; ///< millionths
inline constexpr std::int64_t kMinBaselineRuns = 3;    ///< of which a baseline may be
inline constexpr std::int64_t kMaxBaselineRuns = 20;   ///< it is of the last so many runs
inline constexpr std::int64_t kMaxSigmas = 100;

inline constexpr std::size_t kMaxSuiteEntries = 256;
inline constexpr std::size_t kMaxSuiteItems = 10'000; ///< combinations with their repeats, before any is excluded
inline constexpr std::size_t kMaxAxes = 16;           ///< parameters of one entry
inline constexpr std::size_t kMaxAxisValues = 1000;
inline constexpr std::int64_t kMaxParallel = 64;

inline constexpr std::int32_t kDefaultMtuBytes = 1500;
inline constexpr Nanoseconds kDefaultIterationTimeout = std::chrono::seconds(20);
inline constexpr Nanoseconds kDefaultLease = std::chrono::seconds(10);

} // namespace railbreak::scenarios
