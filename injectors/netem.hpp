// The netem qdisc as bytes, apart from the requests that send them (add_netem and change_netem of traffic_control.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

/// A probability as netem wants it, a part of 2^32 - 1, rounded; and back. Every count of millionths survives the way
/// there and back.
[[nodiscard]] std::uint32_t netem_fraction(Millionths part);
[[nodiscard]] Millionths netem_millionths(std::uint32_t fraction);

/// The whole RTM_NEWQDISC message, with every attribute that a treatment can set.
[[nodiscard]] NetlinkMessage netem_message(int flags, int ifindex, TcHandle parent, TcHandle handle,
                                           const NetemShape& shape);

/// What a dump's TCA_OPTIONS say; nothing when they are no netem's.
[[nodiscard]] std::optional<NetemShape> parse_netem(const nlattr* options);

} // namespace railbreak::injectors
