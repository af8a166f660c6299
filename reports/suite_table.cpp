#include "reports/suite_table.hpp"

#include <map>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "harness/analyse/suite.hpp"
#include "reports/facts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

namespace {

constexpr std::size_t kHashDigits = 12;

std::string utc_or_not_yet(std::int64_t realtime_ns) {
    return realtime_ns > 0 ? utc(realtime_ns) : "not yet";
}

} // namespace

std::string suite_table(const record::SuiteData& data) {
    const analyse::SuiteOutcome outcome = analyse::judge_suite(data);
    const record::SuiteRow& suite = data.suite;
    std::string out =
        wrapped(fmt::format("Suite {}  {}, plan {}, seed {}, {}", printable(suite.suite_id), printable(suite.name),
                            printable(suite.plan_hash.substr(0, kHashDigits)), suite.seed, printable(suite.cluster)),
                2);
    out += fmt::format("started {}, finished {}\n\n", utc_or_not_yet(suite.started_realtime_ns),
                       utc_or_not_yet(suite.finished_realtime_ns));
    std::vector<std::vector<std::string>> rows{{"#", "item", "verdict", "tries", "run", "reason"}};
    std::map<std::string, std::size_t> counts;
    for (std::size_t i = 0; i < data.items.size(); ++i) {
        const std::string& word = outcome.items[i].word;
        ++counts[word];
        rows.push_back({std::to_string(i + 1), printable(data.items[i].name), printable(word),
                        std::to_string(data.items[i].attempts), printable(run_cell(data, i)),
                        printable(data.reasons[i])});
    }
    out += aligned(rows, "rllrll");
    out += fmt::format("\n{} items:", data.items.size());
    for (const auto& [word, count] : counts) {
        out += fmt::format(" {} {}", count, printable(word));
    }
    out += "\n";
    return out + wrapped(fmt::format("VERDICT {}{}{}", to_string(outcome.verdict), outcome.reason.empty() ? "" : ": ",
                                     printable(outcome.reason)),
                         2);
}

} // namespace railbreak::reports
