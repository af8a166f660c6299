#include "scenarios/suite.hpp"

namespace railbreak::scenarios {

std::string_view to_string(SuiteOrder order) {
    switch (order) {
    case SuiteOrder::kListed: return "listed";
    case SuiteOrder::kShuffled: return "shuffled";
    }
    return "listed";
}

std::string_view to_string(OnFailure what) {
    switch (what) {
    case OnFailure::kContinue: return "continue";
    case OnFailure::kStop: return "stop";
    case OnFailure::kSkipScenario: return "skip_scenario";
    }
    return "continue";
}

} // namespace railbreak::scenarios
