// TCA_OPTIONS payloads of htb and bfifo, in the kernel's layout (linux/pkt_sched.h).
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/units.hpp"

namespace railbreak::injectors {

/// Options of an htb root whose unclassified traffic goes to class :1.
[[nodiscard]] std::string htb_root_options();
/// Options of an htb class: rate = ceil, burst max(16 kB, 250 us of the rate), quantum 60000 bytes.
[[nodiscard]] std::string htb_class_options(BitRate rate);
/// The options of a dumped class with another rate and ceil; its burst stays the same number of bytes.
[[nodiscard]] Result<std::string> htb_with_rate(std::string_view options, BitRate rate);
/// The rate in a dumped class's options (whole bytes per second).
[[nodiscard]] Result<BitRate> htb_rate(std::string_view options);
/// Options of a bfifo whose limit is max(20 ms of the rate, 200 kB).
[[nodiscard]] std::string bfifo_options(BitRate rate);

} // namespace railbreak::injectors
