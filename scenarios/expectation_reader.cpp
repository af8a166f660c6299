#include "scenarios/expectation_reader.hpp"

#include <fmt/format.h>

#include "scenarios/limits.hpp"
#include "scenarios/map_reader.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::string_view kSigma = "sigma";

/// What "metric" may say: the metrics, and "overhead" beside "model".
constexpr std::string_view kOverhead = "overhead";
constexpr std::array<std::string_view, 3> kModels{"exclusive", "fluid", "both"};

class ExpectationReader : private MapReader {
public:
    ExpectationReader(DiagnosticSink& sink, FieldReader& fields) : MapReader(sink, fields) {}

    void read(const Field& map, std::int32_t place, std::vector<Expectation>& expectations) {
        Expectation& expectation = expectations.emplace_back();
        expectation.place = place;
        if (!fields_.check_map(map, format_section("expect[]"))) {
            return;
        }
        with(map, "algorithm", [&](const Field& field) { expectation.algorithm = fields_.text(field); });
        with(map, "phase", [&](const Field& field) { store_choice(field, kPhases, expectation.phase); });
        with(map, "fault", [&](const Field& field) { expectation.fault = fields_.text(field); });
        const bool both = read_metric(map, expectation);
        read_limits(map, expectation);
        with(map, "baseline", [&](const Field& field) { read_baseline(field, expectation); });
        with(map, "band", [&](const Field& field) {
            if (const auto band = read_band(field); band && band->in_sigmas) {
                fields_.complain(field, fmt::format("{} is not a part of the steady median", quote(field.node->text)),
                                 "allowed here: a share, like 5%");
            } else if (band) {
                expectation.band = band->band;
            }
        });
        with(map, "outcome",
             [&](const Field& field) { store_choice(field, kOutcomes, expectation.outcome.emplace(Outcome::kError)); });
        with(map, "within", [&](const Field& field) {
            expectation.within = fields_.duration(field, Nanoseconds(1), 2 * kMaxIterationTimeout);
        });
        if (both) {
            Expectation second = expectation;
            second.metric = Metric::kOverheadFluid;
            expectations.push_back(std::move(second));
        }
    }

private:
    /// Reads "metric" and "model"; gives whether the overhead is meant in both port models.
    bool read_metric(const Field& map, Expectation& expectation) {
        std::vector<std::string_view> words{kOverhead};
        for (const Metric metric : kMetrics) {
            words.push_back(to_string(metric));
        }
        std::optional<std::size_t> chosen;
        with(map, "metric", [&](const Field& field) { chosen = fields_.choice(field, words); });
        if (chosen && *chosen > 0) {
            expectation.metric = kMetrics[*chosen - 1];
        }
        std::optional<std::size_t> model;
        const std::optional<Field> written = fields_.find(map, "model");
        with(map, "model", [&](const Field& field) { model = fields_.choice(field, kModels); });
        if (chosen == 0U && !written) {
            fields_.complain(map, "an overhead is over the bound of a port model, and none is named",
                             "add \"model: exclusive\", \"model: fluid\" or \"model: both\"");
        } else if (chosen && *chosen > 0 && written) {
            fields_.complain(*written, fmt::format("metric {} has no choice of port models", words[*chosen]),
                             "remove the key, or write \"metric: overhead\"");
        }
        if (chosen == 0U && model) {
            expectation.metric = *model == 1 ? Metric::kOverheadFluid : Metric::kOverheadExclusive;
        }
        return chosen == 0U && model == 2U;
    }

    void read_limits(const Field& map, Expectation& expectation) {
        if (is_duration(expectation.metric)) {
            const auto read = [&](const Field& field) {
                return fields_.duration(field, Nanoseconds(0), 2 * kMaxIterationTimeout);
            };
            with(map, "min", [&](const Field& field) { expectation.min_time = read(field); });
            with(map, "max", [&](const Field& field) { expectation.max_time = read(field); });
        } else if (expectation.metric == Metric::kCollateral) {
            with(map, "max", [&](const Field& field) {
                if (const auto most = fields_.integer(field, 0, kMaxHosts * kMaxNicsPerHost)) {
                    expectation.max = static_cast<double>(*most);
                }
            });
        } else {
            with(map, "min", [&](const Field& field) { expectation.min = fields_.limit(field); });
            with(map, "max", [&](const Field& field) { expectation.max = fields_.limit(field); });
        }
    }

    void read_baseline(const Field& field, Expectation& expectation) {
        if (field.node->kind != YamlNode::Kind::kMap) {
            expectation.baseline = read_band(field);
            return;
        }
        if (!fields_.check_map(field, format_section("expect[].baseline"))) {
            return;
        }
        BaselineLimit limit;
        with(field, "band", [&](const Field& band) { limit = read_band(band).value_or(limit); });
        read_integer(field, "min_runs", kMinBaselineRuns, kMaxBaselineRuns, limit.min_runs);
        with(field, "side", [&](const Field& side) { store_choice(side, kSides, limit.side); });
        expectation.baseline = limit;
    }

    /// "5%", "0.05" or "3sigma".
    std::optional<BaselineLimit> read_band(const Field& field) {
        const std::string allowed = fmt::format(
            "allowed: a share above 0 and at most 1, like 5%, or up to {0} standard deviations, like 3sigma, "
            "in whole millionths",
            kMaxSigmas);
        const auto text = fields_.text(field);
        if (!text) {
            return std::nullopt;
        }
        const bool sigmas = text->ends_with(kSigma);
        const bool percent = text->ends_with('%');
        const std::size_t unit = sigmas ? kSigma.size() : percent ? 1 : 0;
        const Result<Rational> number = parse_rational(std::string_view(*text).substr(0, text->size() - unit));
        if (!number) {
            fields_.complain(field, fmt::format("{} is not a band", quote(*text)), allowed);
            return std::nullopt;
        }
        const Rational millionths = *number * (percent ? kMillion / 100 : kMillion);
        if (millionths <= 0 || millionths > (sigmas ? kMaxSigmas : 1) * std::int64_t{kMillion} ||
            denominator(millionths) != 1) {
            fields_.complain(field, fmt::format("{} is out of range", quote(*text)), allowed);
            return std::nullopt;
        }
        return BaselineLimit{.band = static_cast<std::uint32_t>(numerator(millionths)), .in_sigmas = sigmas};
    }
};

} // namespace

void read_expectation(DiagnosticSink& sink, FieldReader& fields, const Field& map, std::int32_t place,
                      std::vector<Expectation>& expectations) {
    ExpectationReader(sink, fields).read(map, place, expectations);
}

} // namespace railbreak::scenarios
