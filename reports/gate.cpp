#include "reports/gate.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using Json = nlohmann::ordered_json;

namespace {

std::string_view word_of(analyse::GateVerdict verdict) {
    switch (verdict) {
    case analyse::GateVerdict::kNoRegression: return "fine";
    case analyse::GateVerdict::kCannotTell: return "cannot tell";
    case analyse::GateVerdict::kRegression: return "REGRESSION";
    }
    return "";
}

} // namespace

std::string gate_table(const analyse::Gate& gate, std::string_view tag) {
    std::string out =
        fmt::format("against the baseline {}, tolerated {:g} %\n", printable(tag), gate.options.tolerance * 100);
    for (const analyse::GateFinding& finding : gate.findings) {
        out += wrapped(fmt::format("  {:<11} {}: {}", word_of(finding.verdict), printable(finding.subject),
                                   printable(finding.reason)),
                       14);
    }
    return out + wrapped(printable(gate.sentence), 2);
}

std::string gate_json(const analyse::Gate& gate, std::string_view tag, int exit_code) {
    Json json{{"schema", "railbreak-gate-report"},
              {"version", 1},
              {"verdict", to_string(gate.verdict)},
              {"exit_code", exit_code},
              {"sentence", gate.sentence},
              {"baseline", tag},
              {"measure", to_string(gate.options.measure)},
              {"tolerance", gate.options.tolerance},
              {"confidence", gate.options.confidence}};
    json["findings"] = Json::array();
    for (const analyse::GateFinding& finding : gate.findings) {
        json["findings"].push_back(
            {{"verdict", to_string(finding.verdict)}, {"subject", finding.subject}, {"reason", finding.reason}});
    }
    return json_text(json);
}

} // namespace railbreak::reports
