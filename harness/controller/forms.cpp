#include "harness/controller/forms.hpp"

namespace railbreak::controller {

std::vector<Form> forms_of(const std::string& algorithm) {
    if (algorithm != "optcc") {
        return {{algorithm, {}}};
    }
    return {{"optcc", {}},
            {"optcc", {{"plan", "star"}, {"k", "16"}}, true},
            {"optcc", {{"plan", "star"}, {"k", "32"}}, true},
            {"optcc-shared", {}}};
}

} // namespace railbreak::controller
