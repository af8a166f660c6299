#include "scenarios/rule_reporter.hpp"

#include <fmt/format.h>

namespace railbreak::scenarios {

std::string RuleReporter::text_of(const std::string& path) const {
    const auto found = origins_.find(path);
    return quote(found == origins_.end() ? "" : found->second.text);
}

void RuleReporter::report(const std::string& path, std::string_view what, std::string allowed) {
    std::string at = path;
    while (!at.empty() && !written(at)) {
        const std::size_t cut = at.find_last_of(".[");
        at.resize(cut == std::string::npos ? 0 : cut);
    }
    const auto found = origins_.find(at);
    sink_.add(found == origins_.end() ? Position{} : found->second.at, fmt::format("{}: {}", path, what),
              std::move(allowed));
}

} // namespace railbreak::scenarios
