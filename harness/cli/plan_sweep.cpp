#include "harness/cli/plan_sweep.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "harness/cli/plan_arguments.hpp"
#include "harness/cli/plan_output.hpp"

namespace railbreak::cli {

namespace {

constexpr const char* kForm = "p=16..256,ell=1..4: p (servers), m (slow servers), ell (their slowdown), bytes; each a "
                              "value, LOW..HIGH (doubling), LOW..HIGH:STEP, or several joined by +";

tl::unexpected<Error> refuse(std::string_view what, std::string_view allowed) {
    return fail(Error(ErrorKind::kUsage, fmt::format("--sweep: {}", what)).advise(fmt::format("allowed: {}", allowed)));
}

using Reader = std::function<Result<Rational>(std::string_view)>;

/// A dimension of the sweep: how its values are written, and which are allowed.
struct Dimension {
    std::string_view name;
    std::vector<Rational>* values;
    Rational least;
    Rational most;
    bool whole;
};

Result<Rational> read_value(const Dimension& dimension, std::string_view text) {
    Result<Rational> value = parse_rational(text);
    if (dimension.name == "bytes") {
        const Result<std::int64_t> elements = read_elements(text);
        value = elements ? Result<Rational>(Rational(4 * *elements)) : tl::unexpected(elements.error());
    }
    if (!value) {
        return refuse(fmt::format("\"{}\" of {} is no value", text, dimension.name), kForm);
    }
    const bool whole = boost::multiprecision::denominator(*value) == 1;
    if (*value < dimension.least || *value > dimension.most || (dimension.whole && !whole)) {
        return refuse(fmt::format("{} = {} is out of range", dimension.name, text),
                      fmt::format("{}{} to {}", dimension.whole ? "whole numbers, " : "", dimension.least.str(),
                                  dimension.most.str()));
    }
    return value;
}

/// What a range adds: the values have to stay those that the dimension takes.
Result<Rational> read_step(const Dimension& dimension, std::string_view text) {
    if (dimension.name == "bytes") {
        const Result<std::int64_t> elements = read_elements(text);
        return elements
                   ? Result<Rational>(Rational(4 * *elements))
                   : refuse(fmt::format("\"{}\" is no step of bytes", text), "a size of whole elements of 4 bytes");
    }
    const Result<Rational> step = parse_rational(text);
    if (!step || *step <= 0 || (dimension.whole && boost::multiprecision::denominator(*step) != 1)) {
        return refuse(fmt::format("\"{}\" is no step of {}", text, dimension.name),
                      dimension.whole ? "a whole number above 0" : "a number above 0");
    }
    return step;
}

/// One value or range, appended to the dimension's values.
Result<void> read_item(const Dimension& dimension, std::string_view text) {
    const std::size_t dots = text.find("..");
    const Result<Rational> low = read_value(dimension, text.substr(0, dots));
    if (!low) {
        return tl::unexpected(low.error());
    }
    if (dots == std::string_view::npos) {
        dimension.values->push_back(*low);
        return {};
    }
    const std::string_view rest = text.substr(dots + 2);
    const std::size_t colon = rest.find(':');
    const Result<Rational> high = read_value(dimension, rest.substr(0, colon));
    if (!high) {
        return tl::unexpected(high.error());
    }
    std::optional<Rational> step;
    if (colon != std::string_view::npos) {
        const Result<Rational> read = read_step(dimension, rest.substr(colon + 1));
        if (!read) {
            return tl::unexpected(read.error());
        }
        step = *read;
    }
    if (*high < *low) {
        return refuse(fmt::format("\"{}\" of {} is no range", text, dimension.name), kForm);
    }
    if (*low == 0 && !step) {
        return refuse(
            fmt::format("\"{}\" of {} does not get from 0 to {} by doubling", text, dimension.name, high->str()),
            fmt::format("{}={}:1", dimension.name, text));
    }
    for (Rational value = *low; value <= *high; value = step ? Rational(value + *step) : Rational(2 * value)) {
        dimension.values->push_back(value);
        if (dimension.values->size() > kMostPoints) {
            return refuse(fmt::format("{} has too many values", dimension.name), fmt::format("{} points", kMostPoints));
        }
    }
    return {};
}

std::string_view next_part(std::string_view& text, char separator) {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return part;
}

/// The point of the sweep as a request. Nothing when more servers would be slow than there are.
std::optional<collective::PlannerInput> point(const collective::PlannerInput& input, const SweepRow& row) {
    if (row.slow > row.servers) {
        return std::nullopt;
    }
    collective::PlannerInput one = input;
    const auto slow = static_cast<std::size_t>(row.slow);
    one.request.topology.servers =
        collective::stragglers_first(row.servers, std::vector<Rational>(slow, row.slowdown)).servers;
    one.request.elements = static_cast<std::int64_t>(row.bytes / one.request.element_bytes);
    return one;
}

Result<void> evaluate_point(const collective::PlannerInput& input, const SweepRow& where, std::vector<SweepRow>& rows) {
    const std::optional<collective::PlannerInput> one = point(input, where);
    if (!one) {
        return {};
    }
    const Result<collective::Evaluation> evaluation = collective::evaluate(*one);
    if (!evaluation) {
        return tl::unexpected(evaluation.error());
    }
    for (const collective::PlanRow& found : evaluation->choice.rows) {
        SweepRow row = where;
        row.algorithm = found.algorithm;
        if (!found.plan) {
            row.why_not = found.plan.error().message();
        } else if (found.simulated && !*found.simulated) {
            row.why_not = found.simulated->error().message();
        } else {
            row.schedule = found.plan->schedule->name();
            row.time = found.time();
            row.vs_healthy = evaluation->healthy_ring ? ratio(row.time, *evaluation->healthy_ring) : 0;
            row.vs_bound = ratio(row.time, evaluation->bound_time);
        }
        rows.push_back(std::move(row));
    }
    return {};
}

} // namespace

Result<SweepSpec> parse_sweep(std::string_view text, const collective::PlannerInput& input) {
    SweepSpec spec;
    const std::vector<Dimension> dimensions = {
        {"p", &spec.servers, 2, Rational(kMostRanks / input.request.topology.ranks_per_server), true},
        {"m", &spec.slow, 0, Rational(kMostServers), true},
        {"ell", &spec.slowdowns, 1, Rational(kMostSlowdown), false},
        {"bytes", &spec.bytes, 4, Rational(std::uint64_t{1} << 40), true},
    };
    while (!text.empty()) {
        if (text.ends_with(',')) {
            return refuse("nothing follows the last comma", kForm);
        }
        std::string_view part = next_part(text, ',');
        const std::string_view name = next_part(part, '=');
        const auto dimension = std::ranges::find(dimensions, name, &Dimension::name);
        if (dimension == dimensions.end() || part.empty() || !dimension->values->empty()) {
            return refuse(fmt::format("\"{}\" is not understood, or there twice", name), kForm);
        }
        if (part.ends_with('+')) {
            return refuse(fmt::format("nothing follows the last + of {}", name), kForm);
        }
        while (!part.empty()) {
            if (Result<void> item = read_item(*dimension, next_part(part, '+')); !item) {
                return tl::unexpected(item.error());
            }
        }
    }
    const auto or_else = [](std::vector<Rational>& values, const Rational& value) {
        if (values.empty()) {
            values.push_back(value);
        }
    };
    or_else(spec.servers, Rational(input.request.topology.server_count()));
    or_else(spec.slow, Rational(1));
    or_else(spec.slowdowns, Rational(1));
    or_else(spec.bytes, Rational(input.request.elements * input.request.element_bytes));
    if (spec.servers.size() * spec.slow.size() * spec.slowdowns.size() * spec.bytes.size() > kMostPoints) {
        return refuse("too many points", fmt::format("{} in all", kMostPoints));
    }
    if (*std::ranges::min_element(spec.slow) > *std::ranges::max_element(spec.servers)) {
        return refuse("more servers would be slow than there are", "m up to p");
    }
    return spec;
}

Result<std::vector<SweepRow>> sweep(const SweepSpec& spec, const collective::PlannerInput& input) {
    std::vector<SweepRow> rows;
    for (const Rational& servers : spec.servers) {
        for (const Rational& slow : spec.slow) {
            for (const Rational& slowdown : spec.slowdowns) {
                for (const Rational& bytes : spec.bytes) {
                    const SweepRow where{servers.convert_to<collective::Rank>(), slow.convert_to<collective::Rank>(),
                                         slowdown, bytes.convert_to<std::uint64_t>()};
                    if (Result<void> done = evaluate_point(input, where, rows); !done) {
                        return tl::unexpected(done.error());
                    }
                }
            }
        }
    }
    return rows;
}

std::string sweep_table(const std::vector<SweepRow>& rows, const collective::PlannerInput& input) {
    std::string out =
        fmt::format("{:>6} {:>4} {:>8} {:>10}  {:<17} {:>12} {:>12} {:>10}  schedule, or why none\n", "p", "m", "ell",
                    "bytes", "algorithm", input.simulate ? "simulated" : "predicted", "over healthy", "over bound");
    for (const SweepRow& row : rows) {
        out += fmt::format("{:>6} {:>4} {:>8} {:>10}  {:<17} ", row.servers, row.slow, row.slowdown.str(),
                           to_string(ByteCount::bytes(row.bytes)), row.algorithm);
        out += row.why_not.empty() ? fmt::format("{:>12} {:>10.2f} % {:>8.2f} %  {}\n", to_string(row.time),
                                                 100 * (row.vs_healthy - 1), 100 * (row.vs_bound - 1), row.schedule)
                                   : fmt::format("{:>12} {:>12} {:>10}  {}\n", "-", "-", "-", row.why_not);
    }
    return out;
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
    std::string out = "servers,slow_servers,slowdown,bytes,algorithm,schedule,time_ns,vs_healthy,vs_bound,why_not\n";
    const auto quoted = [](const std::string& text) {
        std::string inner;
        for (const char c : text) {
            inner += c == '"' ? "\"\"" : std::string(1, c);
        }
        return '"' + inner + '"';
    };
    for (const SweepRow& row : rows) {
        const std::string head =
            fmt::format("{},{},{},{},{},", row.servers, row.slow, to_double(row.slowdown), row.bytes, row.algorithm);
        out += head + (row.why_not.empty() ? fmt::format("{},{},{:.6f},{:.6f},\n", quoted(row.schedule),
                                                         row.time.count(), row.vs_healthy, row.vs_bound)
                                           : fmt::format(",,,,{}\n", quoted(row.why_not)));
    }
    return out;
}

std::string sweep_json(const std::vector<SweepRow>& rows, const collective::PlannerInput& input) {
    nlohmann::json list = nlohmann::json::array();
    for (const SweepRow& row : rows) {
        nlohmann::json one{{"servers", row.servers},
                           {"slow_servers", row.slow},
                           {"slowdown", to_double(row.slowdown)},
                           {"bytes", row.bytes},
                           {"algorithm", row.algorithm}};
        if (row.why_not.empty()) {
            one["schedule"] = row.schedule;
            one["time_ns"] = row.time.count();
            one["vs_healthy"] = row.vs_healthy;
            one["vs_bound"] = row.vs_bound;
        } else {
            one["why_not"] = row.why_not;
        }
        list.push_back(std::move(one));
    }
    return nlohmann::json{{"schema", "railbreak-plan-sweep"},
                          {"version", 1},
                          {"model", collective::to_string(input.model)},
                          {"simulated", input.simulate},
                          {"rows", std::move(list)}}
               .dump(2) +
           "\n";
}

} // namespace railbreak::cli
