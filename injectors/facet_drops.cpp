// Blackhole and partition: packets vanish, and nobody is told. Rules in nftables tables of our own drop what their sets
// name; see drop_rules.hpp. The sets' elements end with the lease, so that the fault ends even when nobody is left to
// undo it; every renewal of the lease puts them in anew.
//
// All NICs of a network namespace share the tables. So a table is only removed when nothing else is in it, and every
// change is refused by the kernel, and tried again, when somebody changed any table since it was looked at.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "injectors/drop_rules.hpp"
#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/netlink.hpp"
#include "injectors/restore.hpp"
#include "injectors/shaping.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

/// An element that should be over already ends so soon: the undo that is under way needs it gone, not refused.
constexpr Nanoseconds kShortestTimeout = std::chrono::seconds(1);
constexpr int kAttempts = 16;
constexpr std::string_view kNoEgress = "this kernel cannot drop what is sent: nftables lacks the egress hook";

struct Former {
    Egress egress = Egress::kNone;
};

/// Our tables as they are now, in the order of drop_tables().
struct Seen {
    std::uint32_t generation = 0;
    std::vector<NftTableRecord> tables;

    [[nodiscard]] const NftTableRecord& of(const NftTable& table) const {
        return tables.at(table == drop_tables().front() ? 0 : 1);
    }
};

bool is_ours(const NftTableRecord& table) {
    return table.present && table.comment == kDropTableComment;
}

bool is_foreign(const NftTableRecord& table) {
    return table.present && !is_ours(table);
}

Result<Seen> look_at_tables(HostOps& ops) {
    Seen seen;
    const auto generation = read_nft_generation(ops);
    if (!generation) {
        return tl::unexpected(generation.error());
    }
    seen.generation = *generation;
    for (const NftTable& table : drop_tables()) {
        auto record = read_nft_table(ops, table);
        if (!record) {
            return tl::unexpected(record.error());
        }
        seen.tables.push_back(std::move(*record));
    }
    return seen;
}

/// Looks, builds messages with `build`, commits; again when somebody else was faster.
template <class Build> Result<void> change_tables(HostOps& ops, std::string_view what, Build build) {
    Result<void> done;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const auto seen = look_at_tables(ops);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        std::vector<std::string> messages{nft_begin(seen->generation)};
        if (auto built = build(*seen, messages); !built) {
            return built;
        }
        if (messages.size() == 1) {
            return {};
        }
        done = ops.nft(messages, what);
        if (done || kernel_errno(done.error()) != ERESTART) {
            return done;
        }
    }
    return done;
}

void set_elements(std::vector<std::string>& messages, const DropPlace& place,
                  const std::vector<std::vector<std::string>>& keys, Nanoseconds timeout, bool flush) {
    const auto sets = drop_sets(place);
    for (std::size_t i = 0; i < sets.size(); ++i) {
        if (flush) {
            messages.push_back(nft_flush_set(place.table, sets[i].name));
        }
        for (std::span<const std::string> rest(keys[i]); !rest.empty();) {
            const std::size_t some = std::min(rest.size(), kNftElementsAMessage);
            messages.push_back(nft_add_elements(place.table, sets[i].name, rest.first(some), timeout));
            rest = rest.subspan(some);
        }
    }
}

/// Everything of the NIC in the two tables, and a table in which nothing else is. Foreign tables are left alone.
Result<void> remove_all(HostOps& ops, std::int32_t ifindex) {
    return change_tables(ops, "remove the drop rules", [&](const Seen& seen, std::vector<std::string>& messages) {
        for (const NftTable& table : drop_tables()) {
            const NftTableRecord& record = seen.of(table);
            if (!is_ours(record)) {
                continue;
            }
            std::vector<std::string> deletions;
            for (const DropPlace& place : drop_places(ifindex, {}, Egress::kDrop)) {
                if (place.table == table) {
                    delete_place(deletions, record, place);
                }
            }
            if (deletions.size() == record.chains.size() + record.sets.size()) {
                deletions = {nft_delete_table(table)};
            }
            messages.insert(messages.end(), deletions.begin(), deletions.end());
        }
        return Result<void>();
    });
}

std::string words_of(const Drops& drops, std::string_view direction) {
    return drops.all ? fmt::format("everything that is {}", direction)
                     : fmt::format("what is {} {} {} peer{}", direction, direction == "sent" ? "to" : "from",
                                   drops.peers.size(), drops.peers.size() == 1 ? "" : "s");
}

class DropsFacet final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kDrops; }

protected:
    bool concerned(const WantedState& wanted) const override {
        return wanted.send_drops.any() || wanted.receive_drops.any();
    }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const DeviceIdentity& device = context.target.device;
        const auto features = ops.features();
        if (!features) {
            return tl::unexpected(features.error());
        }
        const auto refuse = [&](KernelFeature feature) {
            return fail(Error(ErrorKind::kRefused,
                              fmt::format("{} cannot be cut off: {}", device.name, features->missing(feature)))
                            .with("nic", device.name));
        };
        if (!features->has(KernelFeature::kNftIngress)) {
            return refuse(KernelFeature::kNftIngress);
        }
        if (request.direction != Direction::kReceive && !features->has(KernelFeature::kNftEgress)) {
            return refuse(KernelFeature::kNftEgress);
        }
        const auto seen = look_at_tables(ops);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        for (const DropPlace& place : drop_places(device.ifindex, device.name, Egress::kDrop)) {
            const NftTableRecord& table = seen->of(place.table);
            if (is_foreign(table)) {
                return refuse_foreign(device, fmt::format("an nftables table {}", place.table.name));
            }
            if (has_any(table, place)) {
                return refuse_taken(device, fmt::format("nftables chain {}", place.chain.name));
            }
        }
        return Former{features->has(KernelFeature::kNftForward)  ? Egress::kSwallow
                      : features->has(KernelFeature::kNftEgress) ? Egress::kDrop
                                                                 : Egress::kNone};
    }

    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState& wanted) const override {
        const DeviceIdentity& device = context.target.device;
        const auto found = find_device(ops, device);
        if (!found) {
            return tl::unexpected(found.error());
        }
        if (found->empty()) {
            return fail(ErrorKind::kHarness, fmt::format("the interface {} is gone", device.name));
        }
        if (wanted.send_drops.any() && former.egress == Egress::kNone) {
            return fail(ErrorKind::kRefused, std::string(kNoEgress));
        }
        const auto places = drop_places(device.ifindex, found->front().name, former.egress);
        const Nanoseconds timeout = std::max(kShortestTimeout, context.lease_end_boottime - ops.boottime());
        return change_tables(
            ops, fmt::format("drop packets of {}", device.name),
            [&](const Seen& seen, auto& messages) { return build(seen, places, wanted, timeout, messages); });
    }

    Result<void> undo(HostOps& ops, const FacetContext& context, const Former&) const override {
        return remove_all(ops, context.target.device.ifindex);
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        if (!concerned(wanted)) {
            return Readback();
        }
        const DeviceIdentity& device = context.target.device;
        const auto found = find_device(ops, device);
        const auto seen = look_at_tables(ops);
        if (!found || !seen) {
            return tl::unexpected(found ? seen.error() : found.error());
        }
        const std::string name = found->empty() ? device.name : found->front().name;
        for (const DropPlace& place : drop_places(device.ifindex, name, former.egress)) {
            const NftTableRecord& table = seen->of(place.table);
            const auto equal = is_ours(table) && is_whole(table, place) ? has_elements(ops, place, wanted) : false;
            if (!equal) {
                return tl::unexpected(equal.error());
            }
            if (!*equal) {
                return fail(ErrorKind::kHarness, fmt::format("{} does not drop what it should ({} of the table {})",
                                                             device.name, place.chain.name, place.table.name));
            }
        }
        const auto words = [](const Drops& drops) {
            return drops.all ? std::string("everything") : fmt::format("{} peers", drops.peers.size());
        };
        return Readback{{"send_drops", words(wanted.send_drops)}, {"receive_drops", words(wanted.receive_drops)}};
    }

    Readback closing_values(HostOps& ops, const FacetContext& context, const Former& former,
                            const WantedState&) const override {
        const DeviceIdentity& device = context.target.device;
        const auto seen = look_at_tables(ops);
        if (!seen) {
            return {};
        }
        std::uint64_t packets = 0;
        std::uint64_t bytes = 0;
        for (const DropPlace& place : drop_places(device.ifindex, device.name, former.egress)) {
            for (const NftRuleRecord& rule : seen->of(place.table).rules) {
                if (rule.chain == place.chain.name) {
                    packets += rule.packets;
                    bytes += rule.bytes;
                }
            }
        }
        return Readback{{"dropped_packets", std::to_string(packets)}, {"dropped_bytes", std::to_string(bytes)}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former&) const override {
        const DeviceIdentity& device = context.target.device;
        const auto seen = look_at_tables(ops);
        if (!seen) {
            return tl::unexpected(seen.error());
        }
        Notes notes;
        for (const NftTable& table : drop_tables()) {
            if (is_foreign(seen->of(table))) {
                notes.push_back(fmt::format("there is an nftables table {} that railbreak did not make", table.name));
            }
        }
        for (const DropPlace& place : drop_places(device.ifindex, device.name, Egress::kDrop)) {
            if (is_ours(seen->of(place.table)) && has_any(seen->of(place.table), place)) {
                return fail(
                    Error(ErrorKind::kTeardown, fmt::format("the drop rules of {} are still there", device.name))
                        .with("chain", place.chain.name));
            }
        }
        return notes;
    }

    Result<void> clean_up(HostOps& ops, const FacetContext& context, const Former&) const override {
        return remove_all(ops, context.target.device.ifindex);
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState& wanted) const override {
        const DeviceIdentity& device = context.target.device;
        Steps steps;
        if (wanted.receive_drops.any()) {
            steps.changes.push_back(
                fmt::format("{}: {} is dropped (nftables table {}, chain in_{}: ingress of the NIC, "
                            "and prerouting)",
                            device.name, words_of(wanted.receive_drops, "received"), kDropTable, device.ifindex));
        }
        if (wanted.send_drops.any()) {
            steps.changes.push_back(
                fmt::format("{}: {} is {} (nftables table {}, chain out_{}: egress of the NIC)", device.name,
                            words_of(wanted.send_drops, "sent"),
                            former.egress == Egress::kSwallow ? "swallowed" : "dropped, which its TCP notices",
                            kDropTable, device.ifindex));
        }
        const bool all = wanted.send_drops.all || wanted.receive_drops.all;
        steps.changes.push_back(fmt::format("{}: {}; ends by itself with the lease", device.name,
                                            all ? "ARP and neighbour discovery are dropped too, like on a dead wire"
                                                : "ARP and neighbour discovery pass"));
        steps.undo.push_back(fmt::format("{}: chains and sets of it deleted, then the tables {} where nothing else is "
                                         "in them",
                                         device.name, kDropTable));
        return steps;
    }

    std::string words(const Former& former) const override {
        return former.egress == Egress::kDrop
                   ? "nftables sets that end with the lease (TCP notices what it cannot send)"
                   : "nftables sets that end with the lease";
    }

    Result<void> may_join(const Former& former, const FaultRequest& request) const override {
        return request.direction != Direction::kReceive && former.egress == Egress::kNone
                   ? fail(ErrorKind::kRefused, std::string(kNoEgress))
                   : Result<void>();
    }

    bool ends_by_itself(const Former&) const override { return true; }

    std::string encode(const Former& former) const override {
        Encoder out;
        out.put(static_cast<std::uint8_t>(former.egress));
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        const auto egress = in.get<std::uint8_t>();
        if (!in.finished() || egress > static_cast<std::uint8_t>(Egress::kSwallow)) {
            return fail(ErrorKind::kInput, "the former state of packet drops is damaged");
        }
        return Former{static_cast<Egress>(egress)};
    }

private:
    static Result<void> build(const Seen& seen, const std::vector<DropPlace>& places, const WantedState& wanted,
                              Nanoseconds timeout, std::vector<std::string>& messages) {
        for (const NftTable& table : drop_tables()) {
            if (is_foreign(seen.of(table))) {
                return fail(ErrorKind::kRefused,
                            fmt::format("there is an nftables table {} that railbreak did not make", table.name));
            }
            if (!seen.of(table).present) {
                messages.push_back(nft_new_table(table, kDropTableComment));
            }
        }
        std::uint32_t set_id = 1;
        for (const DropPlace& place : places) {
            const auto keys = drop_keys(place, wanted);
            if (!keys) {
                return tl::unexpected(keys.error());
            }
            const NftTableRecord& table = seen.of(place.table);
            const bool whole = is_whole(table, place);
            if (!whole) {
                delete_place(messages, table, place);
                add_place(messages, place, set_id);
                set_id += 3;
            }
            set_elements(messages, place, *keys, timeout, whole);
        }
        return {};
    }

    static Result<bool> has_elements(HostOps& ops, const DropPlace& place, const WantedState& wanted) {
        const auto keys = drop_keys(place, wanted);
        if (!keys) {
            return tl::unexpected(keys.error());
        }
        const auto sets = drop_sets(place);
        for (std::size_t i = 0; i < sets.size(); ++i) {
            const auto elements = read_nft_elements(ops, place.table, sets[i].name);
            if (!elements) {
                return tl::unexpected(elements.error());
            }
            const auto same = [](const NftElementRecord& element, const std::string& key) {
                return element.key == key && element.left > Nanoseconds(0);
            };
            if (!std::equal(elements->begin(), elements->end(), (*keys)[i].begin(), (*keys)[i].end(), same)) {
                return false;
            }
        }
        return true;
    }
};

} // namespace

const Facet& drops_facet() {
    static const DropsFacet facet;
    return facet;
}

} // namespace railbreak::injectors
