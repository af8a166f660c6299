// A HostOps that asks before every effect: for tests that fail or kill the process at effect 1, 2, 3, ..., and for
// records of what was done in which order.
#pragma once

#include <functional>
#include <string>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Passes everything to `inner`; before each effect calls `before(name)`, and when that fails, returns its Error
/// without performing the effect. Readings and clocks pass unasked. `inner` must outlive this object.
class SteppedHostOps : public HostOps {
public:
    using Hook = std::function<Result<void>(std::string_view effect)>;
    SteppedHostOps(HostOps& inner, Hook before) : inner_(inner), before_(std::move(before)) {}

    Nanoseconds monotonic() override { return inner_.monotonic(); }
    Nanoseconds boottime() override { return inner_.boottime(); }
    Result<std::string> boot_id() override { return inner_.boot_id(); }
    Result<NetnsIdentity> netns() override { return inner_.netns(); }
    Result<std::vector<LinkRecord>> links() override { return inner_.links(); }
    Result<std::vector<std::string>> records(RecordKind kind, std::int32_t ifindex) override {
        return inner_.records(kind, ifindex);
    }
    Result<std::vector<QdiscRecord>> qdiscs(std::int32_t ifindex) override { return inner_.qdiscs(ifindex); }
    Result<std::vector<HtbClassRecord>> htb_classes(std::int32_t ifindex) override {
        return inner_.htb_classes(ifindex);
    }
    Result<std::vector<FilterRecord>> filters(std::int32_t ifindex) override { return inner_.filters(ifindex); }
    Result<std::vector<std::int32_t>> default_route_devices() override { return inner_.default_route_devices(); }
    Result<std::vector<AddressRecord>> addresses() override { return inner_.addresses(); }
    Result<std::vector<std::int32_t>> route_devices(const std::string& address) override {
        return inner_.route_devices(address);
    }
    Result<hardware::LinkModes> link_modes(std::int32_t ifindex) override { return inner_.link_modes(ifindex); }
    Result<hardware::DcbState> dcb(std::int32_t ifindex) override { return inner_.dcb(ifindex); }
    Result<std::vector<hardware::VfRecord>> vfs(std::int32_t ifindex) override { return inner_.vfs(ifindex); }
    Result<std::vector<hardware::DevlinkPort>> devlink_ports() override { return inner_.devlink_ports(); }
    Result<std::vector<hardware::RateObject>> devlink_rates() override { return inner_.devlink_rates(); }
    Result<hardware::IbPortInfo> ib_port(const hardware::IbPortAddress& port) override { return inner_.ib_port(port); }
    const hardware::Sysfs& sysfs() const override { return inner_.sysfs(); }
    hardware::Privileges privileges() override { return inner_.privileges(); }
    Result<bool> wait_event(Deadline deadline) override { return inner_.wait_event(deadline); }
    Result<void> may_change(std::int32_t ifindex) override { return inner_.may_change(ifindex); }
    Result<std::vector<std::string>> rules() override { return inner_.rules(); }
    Result<std::vector<std::string>> nft_list(std::string_view request) override { return inner_.nft_list(request); }
    Result<std::optional<PacketProgramRecord>> packet_program(std::int32_t ifindex, TcDirection direction,
                                                              std::uint16_t priority) override {
        return inner_.packet_program(ifindex, direction, priority);
    }
    Result<KernelFeatures> features() override { return inner_.features(); }
    Result<std::optional<ProcessRecord>> process(std::int32_t pid) override { return inner_.process(pid); }
    Result<std::string> read_file(const std::string& path) override { return inner_.read_file(path); }
    Result<std::vector<std::string>> list_folder(const std::string& path) override { return inner_.list_folder(path); }
    Result<FileSystemRecord> file_system(const std::string& path) override { return inner_.file_system(path); }
    Result<bool> may_write(const std::string& path) override { return inner_.may_write(path); }
    Result<void> may_signal(const ProcessIdentity& process) override { return inner_.may_signal(process); }
    Result<bool> wait_file(const std::string& path, std::string_view text, Deadline deadline) override {
        return inner_.wait_file(path, text, deadline);
    }
    Result<std::optional<ByteCount>> allocated(const std::string& path) override { return inner_.allocated(path); }
    Result<void> may_allocate(const std::string& folder) override { return inner_.may_allocate(folder); }

    Result<void> set_link_flags(std::int32_t ifindex, std::uint32_t mask, std::uint32_t flags) override {
        return step("set_link_flags", [&] { return inner_.set_link_flags(ifindex, mask, flags); });
    }
    Result<void> set_advertised_modes(std::int32_t ifindex, const std::vector<std::uint32_t>& modes) override {
        return step("set_advertised_modes", [&] { return inner_.set_advertised_modes(ifindex, modes); });
    }
    Result<void> set_class_rates(std::int32_t ifindex, const hardware::ClassRates& rates) override {
        return step("set_class_rates", [&] { return inner_.set_class_rates(ifindex, rates); });
    }
    Result<void> set_vf_rates(std::int32_t ifindex, std::uint32_t vf, BitRate min, BitRate max) override {
        return step("set_vf_rates", [&] { return inner_.set_vf_rates(ifindex, vf, min, max); });
    }
    Result<void> set_devlink_rate(const hardware::RateKey& key, BitRate max) override {
        return step("set_devlink_rate", [&] { return inner_.set_devlink_rate(key, max); });
    }
    Result<void> change_ib_port(const hardware::IbPortAddress& port, const hardware::IbPortChange& change) override {
        return step("change_ib_port", [&] { return inner_.change_ib_port(port, change); });
    }
    Result<void> make_ifb(std::string_view name, std::string_view alias) override {
        return step("make_ifb", [&] { return inner_.make_ifb(name, alias); });
    }
    Result<void> remove_link(std::int32_t ifindex) override {
        return step("remove_link", [&] { return inner_.remove_link(ifindex); });
    }
    Result<void> replay(std::string_view message, int flags) override {
        return step("replay", [&] { return inner_.replay(message, flags); });
    }
    Result<void> make_htb(std::int32_t ifindex, TcHandle handle) override {
        return step("make_htb", [&] { return inner_.make_htb(ifindex, handle); });
    }
    Result<void> make_class(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                            const HtbClass& parameters) override {
        return step("make_class", [&] { return inner_.make_class(ifindex, parent, handle, parameters); });
    }
    Result<void> change_class(std::int32_t ifindex, TcHandle handle, const HtbClass& parameters) override {
        return step("change_class", [&] { return inner_.change_class(ifindex, handle, parameters); });
    }
    Result<void> make_bfifo(std::int32_t ifindex, TcHandle parent, TcHandle handle, ByteCount limit) override {
        return step("make_bfifo", [&] { return inner_.make_bfifo(ifindex, parent, handle, limit); });
    }
    Result<void> remove_qdisc(std::int32_t ifindex, TcHandle parent, TcHandle handle) override {
        return step("remove_qdisc", [&] { return inner_.remove_qdisc(ifindex, parent, handle); });
    }
    Result<void> make_clsact(std::int32_t ifindex) override {
        return step("make_clsact", [&] { return inner_.make_clsact(ifindex); });
    }
    Result<void> make_redirect(std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                               std::int32_t to) override {
        return step("make_redirect", [&] { return inner_.make_redirect(ifindex, direction, priority, to); });
    }
    Result<void> remove_redirect(std::int32_t ifindex, TcDirection direction, std::uint16_t priority) override {
        return step("remove_redirect", [&] { return inner_.remove_redirect(ifindex, direction, priority); });
    }
    Result<void> set_mtu(std::int32_t ifindex, std::uint32_t mtu_bytes) override {
        return step("set_mtu", [&] { return inner_.set_mtu(ifindex, mtu_bytes); });
    }
    Result<void> make_netem(std::int32_t ifindex, TcHandle parent, TcHandle handle, const NetemShape& shape) override {
        return step("make_netem", [&] { return inner_.make_netem(ifindex, parent, handle, shape); });
    }
    Result<void> change_netem(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                              const NetemShape& shape) override {
        return step("change_netem", [&] { return inner_.change_netem(ifindex, parent, handle, shape); });
    }
    Result<void> attach_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                                const PacketProgram& program) override {
        return step("attach_program", [&] { return inner_.attach_program(ifindex, direction, priority, program); });
    }
    Result<void> change_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                                const PacketProgram& program) override {
        return step("change_program", [&] { return inner_.change_program(ifindex, direction, priority, program); });
    }
    Result<void> remove_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority) override {
        return step("remove_program", [&] { return inner_.remove_program(ifindex, direction, priority); });
    }
    Result<void> nft(const std::vector<std::string>& messages, std::string_view what) override {
        return step("nft", [&] { return inner_.nft(messages, what); });
    }
    Result<void> signal_process(const ProcessIdentity& process, int signal) override {
        return step("signal_process", [&] { return inner_.signal_process(process, signal); });
    }
    Result<void> write_file(const std::string& path, std::string_view text) override {
        return step("write_file", [&] { return inner_.write_file(path, text); });
    }
    Result<void> make_cgroup(const std::string& path) override {
        return step("make_cgroup", [&] { return inner_.make_cgroup(path); });
    }
    Result<void> remove_cgroup(const std::string& path) override {
        return step("remove_cgroup", [&] { return inner_.remove_cgroup(path); });
    }
    Result<void> make_ballast(const std::string& path, ByteCount size) override {
        return step("make_ballast", [&] { return inner_.make_ballast(path, size); });
    }
    Result<void> make_folder(const std::string& path) override {
        return step("make_folder", [&] { return inner_.make_folder(path); });
    }
    Result<UniqueFd> create_file(const std::string& folder) override {
        if (auto asked = before_("create_file"); !asked) {
            return tl::unexpected(asked.error());
        }
        return inner_.create_file(folder);
    }
    Result<void> publish_file(int fd, const std::string& path) override {
        return step("publish_file", [&] { return inner_.publish_file(fd, path); });
    }
    Result<void> append(int fd, std::string_view bytes) override {
        return step("append", [&] { return inner_.append(fd, bytes); });
    }
    Result<void> sync_file(int fd) override {
        return step("sync_file", [&] { return inner_.sync_file(fd); });
    }
    Result<void> sync_folder(const std::string& path) override {
        return step("sync_folder", [&] { return inner_.sync_folder(path); });
    }
    Result<void> truncate_file(int fd, std::uint64_t size) override {
        return step("truncate_file", [&] { return inner_.truncate_file(fd, size); });
    }
    Result<void> remove_file(const std::string& path) override {
        return step("remove_file", [&] { return inner_.remove_file(path); });
    }

private:
    template <class Effect> Result<void> step(std::string_view name, Effect effect) {
        if (auto asked = before_(name); !asked) {
            return asked;
        }
        return effect();
    }
    HostOps& inner_;
    Hook before_;
};

} // namespace railbreak::injectors
