// Every facet, one function each. They live in one file each: facet_<name>.cpp.
#pragma once

#include "injectors/facet.hpp"

namespace railbreak::injectors {

[[nodiscard]] const Facet& send_rate_facet();
[[nodiscard]] const Facet& receive_facet();
[[nodiscard]] const Facet& send_packets_facet();
[[nodiscard]] const Facet& drops_facet();
[[nodiscard]] const Facet& reroute_facet();
[[nodiscard]] const Facet& link_facet();
[[nodiscard]] const Facet& cpu_facet();
[[nodiscard]] const Facet& stop_facet();
[[nodiscard]] const Facet& kill_facet();
[[nodiscard]] const Facet& disk_facet();
[[nodiscard]] const Facet& port_speed_facet();
[[nodiscard]] const Facet& class_rate_facet();
[[nodiscard]] const Facet& vf_rate_facet();
[[nodiscard]] const Facet& devlink_rate_facet();
[[nodiscard]] const Facet& ib_port_facet();
[[nodiscard]] const Facet& pcie_speed_facet();
[[nodiscard]] const Facet& pci_presence_facet();

} // namespace railbreak::injectors
