// A HostOps that asks before every effect: for tests that fail or kill the process at effect 1, 2, 3, ..., and for
// records of what was done in which order.
#pragma once

#include <functional>
#include <string>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Passes everything to `inner`; before each effect calls `before(name)`, and when that fails, returns its Error
/// without performing the effect. Readings and clocks pass unasked. `inner` must outlive this object.
class SteppedHostOps final : public HostOps {
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
    Result<std::vector<TcRecord>> qdiscs(std::int32_t ifindex) override { return inner_.qdiscs(ifindex); }
    Result<std::vector<TcRecord>> classes(std::int32_t ifindex) override { return inner_.classes(ifindex); }
    Result<std::vector<TcRecord>> filters(std::int32_t ifindex, std::uint32_t parent) override {
        return inner_.filters(ifindex, parent);
    }
    Result<std::vector<std::int32_t>> default_route_devices() override { return inner_.default_route_devices(); }
    Result<bool> wait_link_flags(std::int32_t ifindex, std::uint32_t mask, std::uint32_t want,
                                 Deadline deadline) override {
        return inner_.wait_link_flags(ifindex, mask, want, deadline);
    }

    Result<void> set_link_flags(std::int32_t ifindex, std::uint32_t mask, std::uint32_t flags) override {
        return step("set_link_flags", [&] { return inner_.set_link_flags(ifindex, mask, flags); });
    }
    Result<void> add_ifb(std::string_view name) override {
        return step("add_ifb", [&] { return inner_.add_ifb(name); });
    }
    Result<void> set_alias(std::int32_t ifindex, std::string_view alias) override {
        return step("set_alias", [&] { return inner_.set_alias(ifindex, alias); });
    }
    Result<void> delete_link(std::int32_t ifindex) override {
        return step("delete_link", [&] { return inner_.delete_link(ifindex); });
    }
    Result<void> replay(std::string_view message, int flags) override {
        return step("replay", [&] { return inner_.replay(message, flags); });
    }
    Result<void> add_qdisc(const TcObject& qdisc) override {
        return step("add_qdisc", [&] { return inner_.add_qdisc(qdisc); });
    }
    Result<void> delete_qdisc(std::int32_t ifindex, std::uint32_t parent, std::uint32_t handle) override {
        return step("delete_qdisc", [&] { return inner_.delete_qdisc(ifindex, parent, handle); });
    }
    Result<void> add_class(const TcObject& traffic_class) override {
        return step("add_class", [&] { return inner_.add_class(traffic_class); });
    }
    Result<void> change_class(const TcObject& traffic_class) override {
        return step("change_class", [&] { return inner_.change_class(traffic_class); });
    }
    Result<void> add_ingress_redirect(std::int32_t ifindex, std::int32_t to) override {
        return step("add_ingress_redirect", [&] { return inner_.add_ingress_redirect(ifindex, to); });
    }
    Result<void> delete_ingress_redirect(std::int32_t ifindex) override {
        return step("delete_ingress_redirect", [&] { return inner_.delete_ingress_redirect(ifindex); });
    }
    Result<void> make_folder(const std::string& path) override {
        return step("make_folder", [&] { return inner_.make_folder(path); });
    }
    Result<UniqueFd> create_file(const std::string& path) override {
        if (auto asked = before_("create_file"); !asked) {
            return tl::unexpected(asked.error());
        }
        return inner_.create_file(path);
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
