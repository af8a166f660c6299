#include "scenarios/fault_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/fault_keys.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/map_reader.hpp"

namespace railbreak::scenarios {

namespace {

class FaultReader : private MapReader {
public:
    FaultReader(DiagnosticSink& sink, FieldReader& fields, const ClusterSpec& cluster)
        : MapReader(sink, fields), cluster_(cluster) {}

    void read(const Field& map, FaultSpec& fault) {
        if (!fields_.check_map(map, format_section("faults[]"))) {
            return;
        }
        read_name(map, fault.name);
        bool kind_known = false;
        with(map, "kind", [&](const Field& field) { kind_known = store_choice(field, kFaultKinds, fault.kind); });
        if (kind_known && check_keys(map, fault.kind)) { // without its kind a fault's other keys mean nothing
            with(map, "target", [&](const Field& field) { read_target(field, fault); });
            read_rates(map, fault);
            read_packets(map, fault);
            read_network(map, fault);
            read_others(map, fault);
            if (fault.kind == FaultKind::kFlap) {
                read_flap(map, fault.flap.emplace());
            }
        }
        read_time(map, fault);
    }

private:
    /// A key of another kind, or one that is missing.
    bool check_keys(const Field& map, FaultKind kind) {
        const std::span<const KeySpec> own = fault_keys(kind);
        bool good = true;
        for (const std::string_view key : particular_fault_keys()) {
            const bool allowed = std::ranges::find(own, key, &KeySpec::name) != own.end();
            if (const auto field = fields_.find(map, key); field && !allowed) {
                fields_.complain(*field, fmt::format("{} has no {}", with_article(kind), key), keys_of(own));
                good = false;
            }
        }
        for (const KeySpec& key : own) {
            if (key.required && !fields_.find(map, key.name)) {
                fields_.complain(map, fmt::format("{} needs \"{}\"", with_article(kind), key.name), keys_of(own));
                good = false;
            }
        }
        return good;
    }

    static std::string keys_of(std::span<const KeySpec> own) {
        std::string names;
        for (const KeySpec& key : own) {
            names += fmt::format("{}{}", names.empty() ? "" : ", ", key.name);
        }
        return names.empty() ? "remove the key: this kind has no keys of its own"
                             : fmt::format("its own keys: {}", names);
    }

    void read_target(const Field& field, FaultSpec& fault) {
        const TargetKind kind = target_kind(fault.kind);
        if (kind == TargetKind::kRecorder) {
            constexpr std::array<std::string_view, 1> kWords{"recorder"};
            static_cast<void>(fields_.choice(field, kWords));
            return;
        }
        if (!fields_.check_map(field, format_section("faults[].target"))) {
            return;
        }
        const bool on_rank = kind == TargetKind::kRank;
        const std::string_view wrong = on_rank ? "nic" : "rank";
        const std::string_view form =
            on_rank ? "{host: 1, rank: 0}, or {rank: 3} counted over all hosts" : "{host: 1, nic: 0}";
        if (const auto other = fields_.find(field, wrong)) {
            fields_.complain(*other, fmt::format("{} acts on a {}", with_article(fault.kind), on_rank ? "rank" : "NIC"),
                             fmt::format("write {}", form));
            return;
        }
        const bool has_host = fields_.find(field, "host").has_value();
        if (const std::string_view needed = on_rank ? "rank" : "host"; !fields_.find(field, needed)) {
            sink_.add(field.node->at, fmt::format("key \"{}\" is missing in {}", needed, field.path),
                      fmt::format("add \"{}: ...\"", needed));
            return;
        }
        with(field, "host", [&](const Field& host) { read_host(host, fault.target); });
        read_integer(field, "nic", 0, kMaxNicsPerHost - 1, fault.target.nic);
        if (has_host) {
            read_integer(field, "rank", 0, kMaxRanksPerHost - 1, fault.target.rank);
        } else {
            std::int32_t rank = 0;
            read_integer(field, "rank", 0, kMaxHosts * kMaxRanksPerHost - 1, rank);
            fault.target.host = rank / cluster_.ranks_per_host;
            fault.target.rank = rank % cluster_.ranks_per_host;
        }
    }

    void read_host(const Field& field, TargetSpec& target) {
        const YamlNode& node = *field.node;
        if (node.kind == YamlNode::Kind::kScalar && !node.text.empty() &&
            node.text.find_first_not_of("-0123456789") != std::string::npos) {
            const auto word = fields_.text(field);
            if (word && *word != "random") {
                fields_.complain(field, fmt::format("{} is not a host", quote(*word)),
                                 "allowed: a host number from 0, or random (chosen from the seed)");
            }
            target.host.reset();
        } else {
            target.host = 0;
            store(fields_.integer(field, 0, kMaxHosts - 1), *target.host);
        }
    }

    void read_rates(const Field& map, FaultSpec& fault) {
        with(map, "direction", [&](const Field& field) { store_choice(field, kDirections, fault.direction); });
        with(map, "rate", [&](const Field& field) { fault.rate = fields_.rate(field, kMinRate, kMaxRate); });
        with(map, "mechanism", [&](const Field& field) { read_mechanism(field, fault); });
        with(map, "fraction", [&](const Field& field) { fault.fraction = fields_.fraction(field); });
    }

    /// The usual one is as good as none.
    void read_mechanism(const Field& field, FaultSpec& fault) {
        const auto read = [&](const auto& choices) {
            Mechanism mechanism = choices.front();
            if (store_choice(field, choices, mechanism) && mechanism != choices.front()) {
                fault.strength.mechanism = mechanism;
            }
        };
        if (fault.kind == FaultKind::kCap) {
            read(kCapMechanisms);
        } else {
            read(kLinkDownMechanisms);
        }
    }

    void read_packets(const Field& map, FaultSpec& fault) {
        FaultStrength& strength = fault.strength;
        with(map, "probability", [&](const Field& field) { store(fields_.probability(field), strength.probability); });
        with(map, "bursts", [&](const Field& field) { read_bursts(field, strength.bursts.emplace()); });
        with(map, "delay",
             [&](const Field& field) { store(fields_.duration(field, Nanoseconds(0), kMaxDelay), strength.delay); });
        if (fault.kind == FaultKind::kDelay) {
            with(map, "jitter", [&](const Field& field) {
                store(fields_.duration(field, Nanoseconds(0), kMaxDelay), strength.jitter);
            });
        }
    }

    void read_bursts(const Field& map, LossBursts& bursts) {
        if (!fields_.check_map(map, format_section("faults[].bursts"))) {
            return;
        }
        const auto read = [&](std::string_view key, Millionths& to) {
            with(map, key, [&](const Field& field) { store(fields_.probability(field), to); });
        };
        read("good_to_bad", bursts.good_to_bad);
        read("bad_to_good", bursts.bad_to_good);
        read("loss_in_bad", bursts.loss_in_bad);
        read("loss_in_good", bursts.loss_in_good);
    }

    void read_network(const Field& map, FaultSpec& fault) {
        FaultStrength& strength = fault.strength;
        with(map, "peers", [&](const Field& field) {
            for (const Field& element : fields_.list(field, 1, static_cast<std::size_t>(kMaxHosts))) {
                if (const auto host = fields_.integer(element, 0, kMaxHosts - 1)) {
                    strength.peers.push_back(static_cast<std::int32_t>(*host));
                }
            }
        });
        with(map, "mtu", [&](const Field& field) {
            if (const auto mtu = fields_.byte_count(field, kMinMtu, kMaxMtu)) {
                strength.mtu_bytes = static_cast<std::int32_t>(mtu->bytes());
            }
        });
        read_integer(map, "via", 0, kMaxNicsPerHost - 1, strength.via_nic);
    }

    void read_others(const Field& map, FaultSpec& fault) {
        FaultStrength& strength = fault.strength;
        with(map, "share", [&](const Field& field) {
            if (const auto share = fields_.fraction(field)) {
                strength.cpu = to_millionths(*share);
                if (strength.cpu < kMinCpu) {
                    fields_.complain(field, fmt::format("{} is out of range", quote(field.node->text)),
                                     "allowed: at least 1/100 of a CPU");
                }
            }
        });
        with(map, "by", [&](const Field& field) {
            store(fields_.duration(field, Nanoseconds(0), kMaxIterationTimeout), strength.late);
        });
        with(map, "leave", [&](const Field& field) {
            store(fields_.byte_count(field, ByteCount::bytes(0), kMaxVector), strength.leave);
        });
    }

    void read_flap(const Field& map, FlapSpec& flap) {
        with(map, "period", [&](const Field& field) {
            store(fields_.duration(field, kMinFlapDown + kMinFlapUp, kMaxIterationTimeout), flap.period);
        });
        with(map, "down", [&](const Field& field) {
            store(fields_.duration(field, kMinFlapDown, kMaxIterationTimeout), flap.down);
        });
        with(map, "duty", [&](const Field& field) {
            if (const auto duty = fields_.fraction(field)) {
                flap.down = part_of(flap.period, *duty);
            }
        });
        read_integer(map, "count", 1, kMaxFlaps, flap.count);
        with(map, "jitter", [&](const Field& field) { store(fields_.fraction(field), flap.jitter); });
    }

    void read_time(const Field& map, FaultSpec& fault) {
        with(map, "during", [&](const Field& field) {
            constexpr std::array<std::string_view, 1> kWords{"degraded"};
            static_cast<void>(fields_.choice(field, kWords));
        });
        with(map, "at", [&](const Field& field) {
            if (fields_.check_map(field, format_section("faults[].at"))) {
                fault.at_iteration = 1;
                read_integer(field, "iteration", 1, kMaxIterations, *fault.at_iteration);
                with(field, "offset", [&](const Field& offset) {
                    store(fields_.duration(offset, Nanoseconds(0), kMaxIterationTimeout), fault.offset);
                });
            }
        });
        with(map, "for", [&](const Field& field) {
            fault.duration = fields_.duration(field, Nanoseconds(1), kMaxIterationTimeout);
        });
    }

    const ClusterSpec& cluster_;
};

} // namespace

void read_fault(DiagnosticSink& sink, FieldReader& fields, const ClusterSpec& cluster, const Field& map,
                FaultSpec& fault) {
    FaultReader(sink, fields, cluster).read(map, fault);
}

} // namespace railbreak::scenarios
