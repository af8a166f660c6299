#include "injectors/program_loader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>

#include "base/fd.hpp"
#include "injectors/programs/packet_program.h"
#include "injectors/programs/packet_program_object.hpp"
#include "injectors/tc_message.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::uint32_t kOnly = 0; ///< every map has one element
constexpr const char* kSettingsMap = "rb_settings";
constexpr const char* kCountsMap = "rb_counts";

struct CloseObject {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
};
using Object = std::unique_ptr<bpf_object, CloseObject>;

/// EPERM means that the process lacks a capability where it counts.
tl::unexpected<Error> refuse_or_fail(const std::string& what, int code) {
    if (code == EPERM || code == EACCES) {
        return fail(Error(ErrorKind::kRefused, fmt::format("{} is not permitted", what))
                        .with("errno", "EPERM")
                        .advise("It needs CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN outside of every user namespace."));
    }
    return fail_errno(ErrorKind::kHarness, what, code);
}

Result<Object> load_object() {
    // Otherwise the library writes its own words to stderr; what matters is in the Error.
    libbpf_set_print(nullptr);
    const auto bytes = packet_program_object();
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "railbreak");
    Object object(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
    if (!object) {
        return fail_errno(ErrorKind::kInternal, "read the packet program", errno);
    }
    if (const int code = bpf_object__load(object.get()); code != 0) {
        return refuse_or_fail("loading the packet program into the kernel", -code);
    }
    return object;
}

Result<packet_settings> settings_of(const PacketProgram& program, int ifindex, TcDirection direction) {
    const PacketTreatment& treatment = program.treatment;
    if (treatment.delay.count() != 0 || treatment.jitter.count() != 0 || treatment.reorder != 0) {
        return fail(ErrorKind::kInput, "the packet program neither delays nor reorders");
    }
    const GilbertElliott bursts = treatment.bursts.value_or(GilbertElliott{0, 0, 0, 0});
    packet_settings settings{};
    settings.deadline_ns = static_cast<std::uint64_t>(std::max(Nanoseconds(0), program.deadline_boottime).count());
    settings.seed = program.seed;
    settings.loss = treatment.loss;
    settings.bursts = treatment.bursts ? 1 : 0;
    settings.good_to_bad = bursts.good_to_bad;
    settings.bad_to_good = bursts.bad_to_good;
    settings.loss_in_bad = bursts.loss_in_bad;
    settings.loss_in_good = bursts.loss_in_good;
    settings.corrupt = treatment.corrupt;
    settings.duplicate = treatment.duplicate;
    settings.ifindex = static_cast<std::uint32_t>(ifindex);
    settings.arrives = direction == TcDirection::kIngress ? 1 : 0;
    settings.ends_redirect = program.ends_redirect ? 1 : 0;
    return settings;
}

PacketProgram program_of(const packet_settings& settings) {
    PacketProgram program;
    program.treatment.loss = settings.loss;
    if (settings.bursts != 0) {
        program.treatment.bursts =
            GilbertElliott{settings.good_to_bad, settings.bad_to_good, settings.loss_in_bad, settings.loss_in_good};
    }
    program.treatment.corrupt = settings.corrupt;
    program.treatment.duplicate = settings.duplicate;
    program.seed = static_cast<std::uint32_t>(settings.seed);
    program.ends_redirect = settings.ends_redirect != 0;
    program.deadline_boottime = Nanoseconds(static_cast<std::int64_t>(settings.deadline_ns));
    return program;
}

Result<void> write_settings(int map, const packet_settings& settings) {
    if (bpf_map_update_elem(map, &kOnly, &settings, BPF_ANY) != 0) {
        return refuse_or_fail("setting the packet program", errno);
    }
    return {};
}

/// Id of our program among the device's filters; empty when it does not hang there.
Result<std::optional<std::uint32_t>> find_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                  std::uint16_t priority) {
    std::optional<std::uint32_t> found;
    TcPlace place = filter_place(ifindex, direction, priority);
    const std::uint32_t wanted = place.info;
    place.info = 0;
    auto message = tc_message(RTM_GETTFILTER, 0, place, "");
    const auto take = [&](const nlmsghdr& record) {
        TcAttributes<TCA_MAX + 1> attributes{};
        if (!parse_tc_record(record, ifindex, attributes) || tc_kind_of(attributes) != "bpf") {
            return;
        }
        const auto* header = static_cast<const tcmsg*>(NLMSG_DATA(&record));
        TcAttributes<TCA_BPF_MAX + 1> options{};
        if (header->tcm_info != wanted || header->tcm_handle != kProgramFilter || attributes[TCA_OPTIONS] == nullptr ||
            nla_parse_nested(options.data(), TCA_BPF_MAX, attributes[TCA_OPTIONS], nullptr) != 0 ||
            options[TCA_BPF_NAME] == nullptr || options[TCA_BPF_ID] == nullptr) {
            return;
        }
        if (nla_get_string(options[TCA_BPF_NAME]) == kProgramName) {
            found = nla_get_u32(options[TCA_BPF_ID]);
        }
    };
    if (auto dumped = channel.dump(message, fmt::format("list the filters of interface {}", ifindex), take,
                                   [&found] { found.reset(); });
        !dumped) {
        return fail(std::move(dumped.error()));
    }
    return found;
}

tl::unexpected<Error> no_program(int ifindex) {
    return fail_errno(ErrorKind::kHarness, fmt::format("find the packet program of interface {}", ifindex), ENOENT);
}

/// Maps of a loaded program, by their names.
struct Maps {
    UniqueFd settings;
    UniqueFd counts;
};

Result<Maps> open_maps(std::uint32_t program_id) {
    const std::string what = "looking up the packet program";
    const UniqueFd program(bpf_prog_get_fd_by_id(program_id));
    if (!program.valid()) {
        return refuse_or_fail(what, errno);
    }
    std::array<std::uint32_t, 8> ids{};
    bpf_prog_info info{};
    info.nr_map_ids = static_cast<std::uint32_t>(ids.size());
    info.map_ids = reinterpret_cast<std::uint64_t>(ids.data());
    std::uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(program.get(), &info, &size) != 0) {
        return refuse_or_fail(what, errno);
    }
    Maps maps;
    for (std::size_t i = 0; i < std::min<std::size_t>(info.nr_map_ids, ids.size()); ++i) {
        UniqueFd map(bpf_map_get_fd_by_id(ids.at(i)));
        bpf_map_info about{};
        size = sizeof about;
        if (!map.valid() || bpf_obj_get_info_by_fd(map.get(), &about, &size) != 0) {
            return refuse_or_fail(what, errno);
        }
        const std::string_view name = about.name;
        if (name == kSettingsMap) {
            maps.settings = std::move(map);
        } else if (name == kCountsMap) {
            maps.counts = std::move(map);
        }
    }
    if (!maps.settings.valid() || !maps.counts.valid()) {
        return fail(ErrorKind::kHarness, "the packet program is not one that this version loaded");
    }
    return maps;
}

Result<packet_settings> read_settings(int map) {
    packet_settings settings{};
    if (bpf_map_lookup_elem(map, &kOnly, &settings) != 0) {
        return refuse_or_fail("reading the packet program's settings", errno);
    }
    return settings;
}

Result<PacketProgramCounts> read_counts(int map) {
    const int cpus = libbpf_num_possible_cpus();
    if (cpus <= 0) {
        return fail_errno(ErrorKind::kHarness, "count the CPUs", -cpus);
    }
    std::vector<packet_counts> each(static_cast<std::size_t>(cpus));
    if (bpf_map_lookup_elem(map, &kOnly, each.data()) != 0) {
        return refuse_or_fail("reading the packet program's counts", errno);
    }
    PacketProgramCounts sum;
    for (const packet_counts& one : each) {
        sum.seen += one.seen;
        sum.lost += one.lost;
        sum.corrupted += one.corrupted;
        sum.duplicated += one.duplicated;
    }
    return sum;
}

} // namespace

Result<void> attach_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority,
                                   const PacketProgram& program) {
    const auto settings = settings_of(program, ifindex, direction);
    if (!settings) {
        return tl::unexpected(settings.error());
    }
    const Result<Object> object = load_object();
    if (!object) {
        return tl::unexpected(object.error());
    }
    const int map = bpf_object__find_map_fd_by_name(object->get(), kSettingsMap);
    if (auto written = write_settings(map, *settings); !written) {
        return written;
    }
    const int code = bpf_program__fd(bpf_object__find_program_by_name(object->get(), "rb_packets"));
    TcPlace place = filter_place(ifindex, direction, priority);
    place.handle = kProgramFilter;
    auto message = tc_message(RTM_NEWTFILTER, kTcAdd, place, "bpf");
    nlattr* options = message.begin_nest(TCA_OPTIONS);
    message.put_u32(TCA_BPF_FD, static_cast<std::uint32_t>(code));
    message.put_string(TCA_BPF_NAME, kProgramName);
    message.put_u32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    message.end_nest(options);
    // The filter keeps the program and its maps; our descriptors end with this function.
    return channel.request(message, fmt::format("attach the packet program to interface {}", ifindex));
}

Result<void> change_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority,
                                   const PacketProgram& program) {
    const auto settings = settings_of(program, ifindex, direction);
    if (!settings) {
        return tl::unexpected(settings.error());
    }
    const auto id = find_program(channel, ifindex, direction, priority);
    if (!id) {
        return tl::unexpected(id.error());
    }
    if (!*id) {
        return no_program(ifindex);
    }
    return open_maps(**id).and_then([&](const Maps& maps) { return write_settings(maps.settings.get(), *settings); });
}

Result<std::optional<PacketProgramRecord>> read_packet_program(NetlinkChannel& channel, int ifindex,
                                                               TcDirection direction, std::uint16_t priority) {
    const auto id = find_program(channel, ifindex, direction, priority);
    if (!id) {
        return tl::unexpected(id.error());
    }
    if (!*id) {
        return std::optional<PacketProgramRecord>();
    }
    const auto maps = open_maps(**id);
    if (!maps) {
        return tl::unexpected(maps.error());
    }
    const auto settings = read_settings(maps->settings.get());
    const auto counts = read_counts(maps->counts.get());
    if (!settings || !counts) {
        return tl::unexpected(settings ? counts.error() : settings.error());
    }
    return std::optional(PacketProgramRecord{program_of(*settings), *counts});
}

Result<void> delete_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                   std::uint16_t priority) {
    const auto id = find_program(channel, ifindex, direction, priority);
    if (!id) {
        return tl::unexpected(id.error());
    }
    if (!*id) {
        return no_program(ifindex);
    }
    TcPlace place = filter_place(ifindex, direction, priority);
    place.handle = kProgramFilter;
    auto message = tc_message(RTM_DELTFILTER, 0, place, "bpf");
    return channel.request(message, fmt::format("delete the packet program of interface {}", ifindex));
}

} // namespace railbreak::injectors
