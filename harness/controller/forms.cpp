#include "harness/controller/forms.hpp"

namespace railbreak::controller {

std::vector<Form> forms_of(const scenarios::AlgorithmSpec& algorithm) {
    if (algorithm.name != "optcc" || !algorithm.options.empty()) {
        return {{algorithm.name, algorithm.options}};
    }
    return {{"optcc", {}},
            {"optcc", {{"plan", "star"}, {"k", "16"}}, true},
            {"optcc", {{"plan", "star"}, {"k", "32"}}, true},
            {"optcc-shared", {}}};
}

} // namespace railbreak::controller
