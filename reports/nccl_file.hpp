// What a file that nccl-tests wrote says, before it becomes runs. Internal to reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace railbreak::reports {

/// What was measured of one size in place, or out of place.
struct NcclTimes {
    double time_us = 0;                ///< as listed: the mean over the iterations
    double algbw = 0;                  ///< GB/s
    double busbw = 0;                  ///< GB/s
    std::optional<std::int64_t> wrong; ///< elements; nothing: nccl-tests did not check (N/A)
    std::vector<double> times_us;      ///< of the single iterations, when the file has them
    std::size_t skipped = 0;           ///< of these, how many at the beginning do not count
};

/// One result.
struct NcclResult {
    std::string where; ///< "line 12" or "results[3]", for messages
    std::int64_t size = 0;
    std::string type;  ///< nccl-tests' name: "float"
    std::string redop; ///< "sum"
    std::optional<NcclTimes> out_of_place;
    std::optional<NcclTimes> in_place;
};

/// One rank.
struct NcclRank {
    std::int32_t rank = 0;
    std::int64_t pid = 0;
    std::string host;
};

/// The whole file.
struct NcclFile {
    std::vector<NcclResult> results;
    std::vector<NcclRank> ranks;
    std::int64_t started_realtime_ns = 0;  ///< 0: the file does not say
    std::int64_t finished_realtime_ns = 0; ///< 0: the file does not say
    std::int64_t iterations = 0;           ///< over which listed times are means; 0: the file does not say
    std::vector<std::pair<std::string, std::string>> environment;
    std::size_t ignored_lines = 0; ///< of the text: neither results nor comments, as what NCCL itself prints
    bool complete = false;         ///< the summary at the end is there
};

/// Messages of both readers: FILE, where in it, what stands there, what is allowed.
struct NcclPlace {
    std::string_view file;
    std::string where;
};
[[nodiscard]] tl::unexpected<Error> nccl_error(const NcclPlace& place, std::string_view what, std::string_view value,
                                               std::string_view allowed);

/// Strict readers of values, for both forms. `what` names the value in messages.
[[nodiscard]] Result<std::int64_t> nccl_integer(const NcclPlace& place, std::string_view what, std::string_view text,
                                                std::int64_t least, std::int64_t most);
[[nodiscard]] Result<double> nccl_number(const NcclPlace& place, std::string_view what, double value, double least,
                                         double most);
/// Checks size, count, type, operation and root of a result against each other.
[[nodiscard]] Result<void> check_nccl_result(const NcclPlace& place, const NcclResult& result, std::int64_t count,
                                             std::string_view root);

/// Upper limits of what is believed.
inline constexpr std::int64_t kMostNcclBytes = std::int64_t{1} << 50;
inline constexpr double kMostNcclMicroseconds = 1e12;
inline constexpr std::int64_t kMostNcclRanks = 65'536;
inline constexpr std::size_t kMostNcclResults = 10'000;
inline constexpr std::size_t kMostNcclIterations = 1'000'000; ///< of one result

/// Bytes of an element of nccl-tests' type; 0 for an unknown one.
[[nodiscard]] std::int64_t nccl_type_bytes(std::string_view type);

/// Readers of the two forms. Errors: kInput.
[[nodiscard]] Result<NcclFile> read_nccl_text(std::string_view text, std::string_view file);
[[nodiscard]] Result<NcclFile> read_nccl_json(std::string_view text, std::string_view file);

} // namespace railbreak::reports
