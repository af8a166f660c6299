// What the checkers of rules share: finding the place of a value, and reporting there. Internal to scenarios.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/diagnostic.hpp"
#include "scenarios/fields.hpp"

namespace railbreak::scenarios {

/// Base of the rule checkers.
class RuleReporter {
protected:
    RuleReporter(const Origins& origins, DiagnosticSink& sink) : origins_(origins), sink_(sink) {}

    /// Whether the file has a value at that path.
    [[nodiscard]] bool written(const std::string& path) const { return origins_.contains(path); }
    /// The value as written, in quotes.
    [[nodiscard]] std::string text_of(const std::string& path) const;
    /// Reports at `path`, or at the nearest enclosing value that the file has.
    void report(const std::string& path, std::string_view what, std::string allowed);

private:
    const Origins& origins_;
    DiagnosticSink& sink_;
};

} // namespace railbreak::scenarios
