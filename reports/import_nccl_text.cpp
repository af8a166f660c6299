// Reads what all_reduce_perf prints. Its columns change with its options, so a row is read by the names in the header
// above it. Other lines may stand between: what NCCL prints with NCCL_DEBUG set goes to the same place.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/nccl_file.hpp"

namespace railbreak::reports {

namespace {

using Words = std::vector<std::string_view>;

constexpr std::array<std::string_view, 5> kLeading{"size", "count", "type", "redop", "root"};
constexpr std::array<std::string_view, 9> kColumns{"time",  "algbw", "busbw", "#wrong", "#bitdiff",
                                                   "i_min", "i_max", "i_p99", "i_cv%"};
constexpr std::string_view kHeader = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong";

Words words_of(std::string_view line) {
    Words words;
    while (true) {
        const std::size_t from = line.find_first_not_of(" \t\r");
        if (from == std::string_view::npos) {
            return words;
        }
        line.remove_prefix(from);
        const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
        words.push_back(line.substr(0, end));
        line.remove_prefix(end);
    }
}

bool digits(std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class TextReader {
public:
    TextReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

    Result<NcclFile> read() {
        while (!text_.empty()) {
            ++line_;
            const std::size_t end = std::min(text_.find('\n'), text_.size());
            const std::string_view line = text_.substr(0, end);
            text_.remove_prefix(std::min(end + 1, text_.size()));
            if (const Result<void> read = read_line(words_of(line)); !read) {
                return tl::unexpected(read.error());
            }
        }
        return std::move(file_);
    }

private:
    [[nodiscard]] NcclPlace here() const { return {name_, fmt::format("{}", line_)}; }

    Result<void> read_line(const Words& words) {
        if (words.empty()) {
            return {};
        }
        if (words.front().starts_with('#')) {
            Words rest = words; // "#" may stand by itself or touch the first word
            rest.front().remove_prefix(1);
            if (rest.front().empty()) {
                rest.erase(rest.begin());
            }
            return rest.empty() ? Result<void>() : read_comment(rest);
        }
        if (digits(words.front()) && words.size() > kLeading.size()) {
            return read_result(words);
        }
        ++file_.ignored_lines;
        return {};
    }

    Result<void> read_comment(const Words& words) {
        const auto begins = [&](const Words& with) {
            return words.size() >= with.size() && std::equal(with.begin(), with.end(), words.begin());
        };
        if (begins({"size", "count"})) {
            return read_header(words);
        }
        if (begins({"Rank"})) {
            return read_rank(words);
        }
        if (begins({"nThread"})) {
            return read_options(words);
        }
        if (words.front() == "railbreak") {
            return nccl_error(here(), "the file", "a report of railbreak in the columns of nccl-tests",
                              "what nccl-tests printed; the run itself is in railbreak's database");
        }
        if ((begins({"Collective", "test", "starting:"}) || begins({"Collective", "test", "concluded:"})) &&
            words.size() >= 4 && words[3].find("all_reduce_perf") == std::string_view::npos) {
            return nccl_error(here(), "the test", words[3], "all_reduce_perf");
        }
        file_.complete = file_.complete || begins({"Out", "of", "bounds", "values"});
        if (begins({"nccl-tests", "version"}) && words.size() >= 3) {
            file_.environment.emplace_back("nccl_tests_version", words[2]);
        }
        return {};
    }

    Result<void> read_header(const Words& words) {
        columns_.assign(words.begin(), words.end());
        std::size_t times = 0;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const std::string& column = columns_[i];
            const bool known = i < kLeading.size()
                                   ? column == kLeading.at(i)
                                   : std::find(kColumns.begin(), kColumns.end(), column) != kColumns.end() ||
                                         (column == "timestamp" && i + 1 == columns_.size());
            if (!known) {
                return nccl_error(here(), "a column", column, fmt::format("a header like \"{}\"", kHeader));
            }
            times += column == "time" ? 1 : 0;
        }
        const auto count = [&](std::string_view column) {
            return static_cast<std::size_t>(std::count(columns_.begin(), columns_.end(), column));
        };
        if (times != 2 || count("algbw") != 2 || count("busbw") != 2 || count("#wrong") != 2) {
            return nccl_error(here(), "the header", fmt::format("{}", fmt::join(columns_, " ")),
                              fmt::format("a header like \"{}\"", kHeader));
        }
        return {};
    }

    // "Rank  0 Group  0 Pid  123 on  node1 device  0 [0000:07:00] NVIDIA H100": also "[0x07]" before the name.
    Result<void> read_rank(const Words& words) {
        constexpr std::string_view kAllowed = "# Rank N Group N Pid N on HOST device N ...";
        if (words.size() < 10 || words[4] != "Pid" || words[6] != "on" || words[8] != "device") {
            // Before groups came: "Rank  0 Pid  123 on  node1 device  0 ...".
            if (words.size() < 8 || words[2] != "Pid" || words[4] != "on" || words[6] != "device") {
                return nccl_error(here(), "a rank", fmt::format("{}", fmt::join(words, " ")), kAllowed);
            }
            return add_rank(words[1], words[3], words[5]);
        }
        if (words[2] != "Group") {
            return nccl_error(here(), "a rank", fmt::format("{}", fmt::join(words, " ")), kAllowed);
        }
        if (words[3] != "0") {
            return nccl_error(here(), "a rank's group", words[3], "0: runs that are split into groups are not read");
        }
        return add_rank(words[1], words[5], words[7]);
    }

    Result<void> add_rank(std::string_view rank, std::string_view pid, std::string_view host) {
        const auto number = nccl_integer(here(), "a rank's number", rank, 0, kMostNcclRanks);
        const auto process = number ? nccl_integer(here(), "a rank's process", pid, 0, INT32_MAX) : number;
        if (!process) {
            return tl::unexpected(process.error());
        }
        if (!numbers_.insert(*number).second) {
            return nccl_error(here(), "a rank's number", rank, "each rank once: this file holds several runs");
        }
        file_.ranks.push_back({static_cast<std::int32_t>(*number), *process, std::string(host)});
        return {};
    }

    // "nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 ...".
    Result<void> read_options(const Words& words) {
        for (std::size_t i = 1; i + 1 < words.size(); ++i) {
            if (words[i] == "iters:" && words[i - 1] != "warmup" && words[i - 1] != "agg") {
                const auto iterations = nccl_integer(here(), "iters", words[i + 1], 1, INT32_MAX);
                if (!iterations) {
                    return tl::unexpected(iterations.error());
                }
                file_.iterations = *iterations;
            }
        }
        return {};
    }

    Result<void> read_result(const Words& words) {
        if (columns_.empty()) {
            return nccl_error(here(), "a result without a header", words.front(), fmt::format("\"{}\" above", kHeader));
        }
        const std::size_t wanted = columns_.size() + (columns_.back() == "timestamp" ? 1 : 0); // a date and a time
        if (words.size() != wanted) {
            return nccl_error(here(), "a result", fmt::format("{} words", words.size()),
                              fmt::format("{}, as the header has columns", wanted));
        }
        if (file_.results.size() >= kMostNcclResults) {
            return nccl_error(here(), "results", "more", fmt::format("at most {}", kMostNcclResults));
        }
        NcclResult result;
        result.where = fmt::format("line {}", line_);
        const auto size = nccl_integer(here(), "size", words[0], 1, kMostNcclBytes);
        const auto count = size ? nccl_integer(here(), "count", words[1], 1, kMostNcclBytes) : size;
        if (!count) {
            return tl::unexpected(count.error());
        }
        result.size = *size;
        result.type = words[2];
        result.redop = words[3];
        if (const Result<void> checked = check_nccl_result(here(), result, *count, words[4]); !checked) {
            return checked;
        }
        const auto second =
            static_cast<std::size_t>(std::find(columns_.rbegin(), columns_.rend(), "time").base() - columns_.begin()) -
            1;
        return read_times(words, kLeading.size(), second, result.out_of_place)
            .and_then([&] { return read_times(words, second, columns_.size(), result.in_place); })
            .and_then([&] {
                file_.results.push_back(std::move(result));
                return Result<void>();
            });
    }

    // The columns from..until of a row; nothing where its time is N/A.
    Result<void> read_times(const Words& words, std::size_t from, std::size_t until, std::optional<NcclTimes>& into) {
        NcclTimes times;
        for (std::size_t i = from; i < until; ++i) {
            const std::string& column = columns_[i];
            const std::string_view word = words[i];
            if (column == "time" && word == "N/A") {
                return {};
            }
            if (column == "#wrong") {
                if (const Result<void> read = read_wrong(word, times); !read) {
                    return read;
                }
                continue;
            }
            double* const value = column == "time"    ? &times.time_us
                                  : column == "algbw" ? &times.algbw
                                  : column == "busbw" ? &times.busbw
                                                      : nullptr;
            if (value == nullptr) {
                continue; // figures of the single iterations without the iterations
            }
            const auto number = read_number(column, word, column == "time" ? 1e-3 : 0);
            if (!number) {
                return tl::unexpected(number.error());
            }
            *value = *number;
        }
        into = times;
        return {};
    }

    Result<double> read_number(std::string_view column, std::string_view word, double least) const {
        double value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size()) {
            return nccl_error(here(), column, word, "a number");
        }
        return nccl_number(here(), column, value, least, kMostNcclMicroseconds);
    }

    // Counts of wrong elements are printed as floating point: "0", "1.2e+06".
    Result<void> read_wrong(std::string_view word, NcclTimes& times) const {
        if (word == "N/A") {
            return {};
        }
        const auto number = read_number("#wrong", word, 0);
        if (!number) {
            return tl::unexpected(number.error());
        }
        times.wrong = std::llround(*number);
        return {};
    }

    std::string_view text_;
    std::string_view name_;
    std::size_t line_ = 0;
    std::vector<std::string> columns_;
    std::set<std::int64_t> numbers_;
    NcclFile file_;
};

} // namespace

Result<NcclFile> read_nccl_text(std::string_view text, std::string_view file) {
    return TextReader(text, file).read();
}

} // namespace railbreak::reports
