// Reads the JSON that all_reduce_perf writes with -J, versions 1 to 3. Keys that are not needed are passed over; a
// needed one that is missing or of the wrong kind is an error that names its place in the document.
#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/nccl_file.hpp"

namespace railbreak::reports {

namespace {

using InputJson = nlohmann::json;

std::string short_dump(const InputJson& value) {
    std::string text = value.dump(-1, ' ', false, InputJson::error_handler_t::replace);
    if (text.size() > 60) {
        text.resize(60);
        text += "...";
    }
    return text;
}

class JsonReader {
public:
    JsonReader(const InputJson& root, std::string_view name) : root_(root), name_(name) {}

    Result<NcclFile> read() {
        return read_head().and_then([&] { return read_devices(); }).and_then([&] { return read_results(); }).map([&] {
            return std::move(file_);
        });
    }

private:
    [[nodiscard]] NcclPlace at(std::string where) const { return {name_, std::move(where)}; }

    /// A member of an object; an error when it is missing.
    Result<const InputJson*> member(const InputJson& object, const std::string& where, const char* key) const {
        if (!object.is_object()) {
            return nccl_error(at(where), "the value", short_dump(object), "an object");
        }
        const auto found = object.find(key);
        if (found == object.end()) {
            return nccl_error(at(where), "the key", fmt::format("\"{}\"", key), "this key, which is missing");
        }
        return &*found;
    }

    Result<std::int64_t> integer(const InputJson& object, const std::string& where, const char* key, std::int64_t least,
                                 std::int64_t most) const {
        const auto value = member(object, where, key);
        if (!value) {
            return tl::unexpected(value.error());
        }
        if (!(*value)->is_number_integer() ||
            ((*value)->is_number_unsigned() && (*value)->get<std::uint64_t>() > INT64_MAX)) {
            return nccl_error(at(where), key, short_dump(**value), "a whole number");
        }
        return nccl_integer(at(where), key, std::to_string((*value)->get<std::int64_t>()), least, most);
    }

    Result<double> number(const InputJson& value, const std::string& where, std::string_view what, double least) const {
        if (!value.is_number()) {
            return nccl_error(at(where), what, short_dump(value), "a number");
        }
        return nccl_number(at(where), what, value.get<double>(), least, kMostNcclMicroseconds);
    }

    Result<std::string> text(const InputJson& object, const std::string& where, const char* key) const {
        const auto value = member(object, where, key);
        if (!value) {
            return tl::unexpected(value.error());
        }
        if (!(*value)->is_string()) {
            return nccl_error(at(where), key, short_dump(**value), "a string");
        }
        return (*value)->get<std::string>();
    }

    Result<void> read_head() {
        const auto version = integer(root_, "the document", "version", 1, 3);
        if (!version) {
            return tl::unexpected(version.error());
        }
        if (root_.contains("railbreak_run")) {
            return nccl_error(at("railbreak_run"), "the file", "a report of railbreak in the shape of nccl-tests",
                              "what nccl-tests wrote; the run itself is in railbreak's database");
        }
        if (const auto args = root_.find("args"); args != root_.end() && args->is_array() && !args->empty()) {
            const std::string program = args->front().is_string() ? args->front().get<std::string>() : "";
            if (program.ends_with("_perf") && !program.ends_with("all_reduce_perf")) {
                return nccl_error(at("args[0]"), "the test", program, "all_reduce_perf");
            }
        }
        read_environment();
        file_.started_realtime_ns = time_of("start_time");
        file_.finished_realtime_ns = time_of("end_time");
        file_.complete = root_.contains("out_of_bounds");
        return {};
    }

    // What decides how fast NCCL is. The rest of the environment is nobody's business.
    void read_environment() {
        if (const auto version = root_.find("nccl_version"); version != root_.end() && version->is_number_integer()) {
            file_.environment.emplace_back("nccl_version", version->dump());
        }
        const auto list = root_.find("env");
        if (list == root_.end() || !list->is_array()) {
            return;
        }
        for (const InputJson& entry : *list) {
            const std::string line = entry.is_string() ? entry.get<std::string>() : "";
            const bool wanted = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                            [&](std::string_view prefix) { return line.starts_with(prefix); });
            if (const std::size_t equals = line.find('='); wanted && equals != std::string::npos) {
                file_.environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
            }
        }
    }

    // "2026-01-31 12:34:56" in the time of that machine, whose zone the file does not say: taken as UTC.
    [[nodiscard]] std::int64_t time_of(const char* key) const {
        const auto value = root_.find(key);
        std::tm time{};
        if (value == root_.end() || !value->is_string()) {
            return 0;
        }
        const char* const end = ::strptime(value->get_ref<const std::string&>().c_str(), "%Y-%m-%d %H:%M:%S", &time);
        const std::time_t seconds = end != nullptr && *end == '\0' ? ::timegm(&time) : 0;
        return seconds > 0 && seconds < kMostSeconds ? std::int64_t{seconds} * 1'000'000'000 : 0;
    }

    // A device stands for a process: with several GPUs each it is the first of as many ranks.
    Result<void> read_devices() {
        const auto config = member(root_, "the document", "config");
        if (!config) {
            return tl::unexpected(config.error());
        }
        const auto threads = integer(**config, "config", "nthreads", 1, kMostNcclRanks);
        const auto gpus = threads ? integer(**config, "config", "ngpus", 1, kMostNcclRanks) : threads;
        const auto iterations = gpus ? integer(**config, "config", "iterations", 1, INT32_MAX) : gpus;
        if (!iterations) {
            return tl::unexpected(iterations.error());
        }
        file_.iterations = *iterations;
        const auto devices = member(**config, "config", "devices");
        if (!devices) {
            return tl::unexpected(devices.error());
        }
        if (!(*devices)->is_array() || (*devices)->empty()) {
            return nccl_error(at("config.devices"), "the value", short_dump(**devices), "a list of devices");
        }
        std::set<std::int32_t> seen;
        const std::int64_t each = *threads * *gpus;
        for (std::size_t i = 0; i < (*devices)->size(); ++i) {
            if (const auto read = read_device((**devices)[i], fmt::format("config.devices[{}]", i), each, seen);
                !read) {
                return read;
            }
        }
        return {};
    }

    Result<void> read_device(const InputJson& device, const std::string& where, std::int64_t each,
                             std::set<std::int32_t>& seen) {
        const auto rank = integer(device, where, "rank", 0, kMostNcclRanks);
        const auto group = rank ? integer(device, where, "group", 0, 0) : rank;
        const auto pid = group ? integer(device, where, "pid", 0, INT32_MAX) : group;
        if (!pid) {
            return tl::unexpected(pid.error());
        }
        const auto host = text(device, where, "hostname");
        if (!host) {
            return tl::unexpected(host.error());
        }
        if (each > kMostNcclRanks || file_.ranks.size() + static_cast<std::size_t>(each) > kMostNcclRanks) {
            return nccl_error(at(where), "ranks", "more", fmt::format("at most {}", kMostNcclRanks));
        }
        for (std::int64_t i = 0; i < each; ++i) {
            const auto number = static_cast<std::int32_t>(*rank + i);
            if (!seen.insert(number).second) {
                return nccl_error(at(where), "rank", std::to_string(number), "each rank once");
            }
            file_.ranks.push_back({number, *pid, *host});
        }
        return {};
    }

    Result<void> read_results() {
        const auto results = member(root_, "the document", "results");
        if (!results) {
            return tl::unexpected(results.error());
        }
        if (!(*results)->is_array() || (*results)->size() > kMostNcclResults) {
            return nccl_error(at("results"), "the value", short_dump(**results),
                              fmt::format("a list of at most {} results", kMostNcclResults));
        }
        for (std::size_t i = 0; i < (*results)->size(); ++i) {
            if (const auto read = read_result((**results)[i], fmt::format("results[{}]", i)); !read) {
                return read;
            }
        }
        return {};
    }

    Result<void> read_result(const InputJson& json, const std::string& where) {
        NcclResult result;
        result.where = where;
        const auto size = integer(json, where, "size", 1, kMostNcclBytes);
        const auto count = size ? integer(json, where, "count", 1, kMostNcclBytes) : size;
        if (!count) {
            return tl::unexpected(count.error());
        }
        const auto type = text(json, where, "type");
        const auto redop = type ? text(json, where, "redop") : type;
        const auto root = redop ? text(json, where, "root") : redop;
        if (!root) {
            return tl::unexpected(root.error());
        }
        result.size = *size;
        result.type = *type;
        result.redop = *redop;
        const std::string_view trimmed =
            std::string_view(*root).substr(std::min(root->find_first_not_of(' '), root->size()));
        return check_nccl_result(at(where), result, *count, trimmed)
            .and_then([&] { return read_times(json, where, "out_of_place", result.out_of_place); })
            .and_then([&] { return read_times(json, where, "in_place", result.in_place); })
            .and_then([&] {
                file_.results.push_back(std::move(result));
                return Result<void>();
            });
    }

    Result<void> read_times(const InputJson& json, const std::string& result, const char* key,
                            std::optional<NcclTimes>& into) {
        const auto found = json.find(key);
        if (found == json.end() || found->is_null()) {
            return {};
        }
        const std::string where = fmt::format("{}.{}", result, key);
        NcclTimes times;
        for (const auto& [name, value] : {std::pair("time", &times.time_us), std::pair("alg_bw", &times.algbw),
                                          std::pair("bus_bw", &times.busbw)}) {
            const auto item = member(*found, where, name);
            const auto read = item ? number(**item, where, name, value == &times.time_us ? 1e-3 : 0)
                                   : Result<double>(tl::unexpected(item.error()));
            if (!read) {
                return tl::unexpected(read.error());
            }
            *value = *read;
        }
        const auto wrong = member(*found, where, "nwrong");
        if (!wrong) {
            return tl::unexpected(wrong.error());
        }
        if (!(*wrong)->is_null()) {
            const auto read = number(**wrong, where, "nwrong", 0);
            if (!read) {
                return tl::unexpected(read.error());
            }
            times.wrong = static_cast<std::int64_t>(*read);
        }
        into = std::move(times);
        return read_iterations(json, result, fmt::format("{}_per_iter", key), *into);
    }

    Result<void> read_iterations(const InputJson& json, const std::string& result, const std::string& key,
                                 NcclTimes& into) {
        const auto found = json.find(key);
        if (found == json.end() || found->is_null()) {
            return {};
        }
        const std::string where = fmt::format("{}.{}", result, key);
        const auto list = member(*found, where, "times_us");
        if (!list) {
            return tl::unexpected(list.error());
        }
        if (!(*list)->is_array() || (*list)->size() > kMostNcclIterations) {
            return nccl_error(at(where), "times_us", short_dump(**list),
                              fmt::format("a list of at most {} times", kMostNcclIterations));
        }
        for (std::size_t i = 0; i < (*list)->size(); ++i) {
            const auto time = number((**list)[i], fmt::format("{}.times_us[{}]", where, i), "the value", 1e-3);
            if (!time) {
                return tl::unexpected(time.error());
            }
            into.times_us.push_back(*time);
        }
        if (found->contains("skipped_iterations")) {
            const auto skipped =
                integer(*found, where, "skipped_iterations", 0,
                        std::max<std::int64_t>(static_cast<std::int64_t>(into.times_us.size()) - 1, 0));
            if (!skipped) {
                return tl::unexpected(skipped.error());
            }
            into.skipped = static_cast<std::size_t>(*skipped);
        }
        return {};
    }

    static constexpr std::array<std::string_view, 4> kPrefixes{"NCCL_", "UCX_", "OMPI_MCA_", "CUDA_VISIBLE_DEVICES="};
    static constexpr std::time_t kMostSeconds = 9'000'000'000; // what nanoseconds in 64 bits hold

    const InputJson& root_;
    std::string_view name_;
    NcclFile file_;
};

} // namespace

Result<NcclFile> read_nccl_json(std::string_view text, std::string_view file) {
    InputJson root;
    try {
        root = InputJson::parse(text);
    } catch (const InputJson::exception& error) {
        return nccl_error({file, "the document"}, "it is no JSON", error.what(), "nccl-tests' JSON (-J) whole");
    }
    return JsonReader(root, file).read();
}

} // namespace railbreak::reports
