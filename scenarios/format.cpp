#include "scenarios/format.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace railbreak::scenarios {

namespace {

constexpr bool kRequired = true;

constexpr std::array kFile{
    KeySpec{"railbreak", kRequired}, KeySpec{"name", kRequired}, KeySpec{"description"}, KeySpec{"cluster", kRequired},
    KeySpec{"workload", kRequired},  KeySpec{"lease"},           KeySpec{"faults"},      KeySpec{"expect"}};
constexpr std::array kCluster{KeySpec{"hosts", kRequired}, KeySpec{"ranks_per_host"}, KeySpec{"nics_per_host"},
                              KeySpec{"rate", kRequired},  KeySpec{"local_rate"},     KeySpec{"mtu"}};
constexpr std::array kWorkload{
    KeySpec{"collective", kRequired}, KeySpec{"bytes", kRequired}, KeySpec{"dtype"},
    KeySpec{"algorithms", kRequired}, KeySpec{"iterations"},       KeySpec{"iteration_timeout"}};
constexpr std::array kIterations{KeySpec{"warmup"}, KeySpec{"steady"}, KeySpec{"degraded"}, KeySpec{"recovered"}};
constexpr std::array kFault{KeySpec{"name", kRequired},
                            KeySpec{"kind", kRequired},
                            KeySpec{"target", kRequired},
                            KeySpec{"direction"},
                            KeySpec{"rate"},
                            KeySpec{"fraction"},
                            KeySpec{"mechanism"},
                            KeySpec{"period"},
                            KeySpec{"duty"},
                            KeySpec{"down"},
                            KeySpec{"count"},
                            KeySpec{"jitter"},
                            KeySpec{"delay"},
                            KeySpec{"probability"},
                            KeySpec{"bursts"},
                            KeySpec{"peers"},
                            KeySpec{"mtu"},
                            KeySpec{"via"},
                            KeySpec{"share"},
                            KeySpec{"by"},
                            KeySpec{"leave"},
                            KeySpec{"during"},
                            KeySpec{"at"},
                            KeySpec{"for"}};
constexpr std::array kTarget{KeySpec{"host"}, KeySpec{"nic"}, KeySpec{"rank"}};
constexpr std::array kBursts{KeySpec{"good_to_bad", kRequired}, KeySpec{"bad_to_good", kRequired},
                             KeySpec{"loss_in_bad"}, KeySpec{"loss_in_good"}};
constexpr std::array kAt{KeySpec{"iteration", kRequired}, KeySpec{"offset"}};
constexpr std::array kExpectation{KeySpec{"algorithm"}, KeySpec{"phase"},   KeySpec{"fault"}, KeySpec{"metric"},
                                  KeySpec{"model"},     KeySpec{"min"},     KeySpec{"max"},   KeySpec{"baseline"},
                                  KeySpec{"band"},      KeySpec{"outcome"}, KeySpec{"within"}};
constexpr std::array kBaseline{KeySpec{"band", kRequired}, KeySpec{"min_runs"}, KeySpec{"side"}};

constexpr std::array kSections{Section{"", kFile},
                               Section{"cluster", kCluster},
                               Section{"workload", kWorkload},
                               Section{"workload.iterations", kIterations},
                               Section{"faults[]", kFault},
                               Section{"faults[].target", kTarget},
                               Section{"faults[].bursts", kBursts},
                               Section{"faults[].at", kAt},
                               Section{"expect[]", kExpectation},
                               Section{"expect[].baseline", kBaseline}};

} // namespace

std::span<const Section> format_sections() {
    return kSections;
}

const Section& format_section(std::string_view path) {
    const auto* const found = std::ranges::find(kSections, path, &Section::path);
    RB_CHECK(found != kSections.end(), "no such section in the scenario format");
    return *found;
}

} // namespace railbreak::scenarios
