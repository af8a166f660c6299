#include "collective/algorithms/auto_algorithm.hpp"

#include <fmt/format.h>

#include "collective/planner.hpp"

namespace railbreak::collective {

namespace {

Result<PortModel> model_of(const PlanRequest& request) {
    PortModel model = PortModel::kExclusive;
    for (const auto& [name, value] : request.options) {
        if (name != "model") {
            return fail(Error(ErrorKind::kInput, fmt::format("auto has no option \"{}\"", name))
                            .advise("its option is model (exclusive, fluid)"));
        }
        if (value != to_string(PortModel::kFluid) && value != to_string(PortModel::kExclusive)) {
            return fail(Error(ErrorKind::kInput, fmt::format("port model \"{}\" is unknown", value))
                            .advise("model is exclusive or fluid"));
        }
        model = value == to_string(PortModel::kFluid) ? PortModel::kFluid : PortModel::kExclusive;
    }
    return model;
}

} // namespace

std::string_view AutoAlgorithm::summary() const {
    return "the algorithm that the planner recommends for the measured slowdowns";
}

std::vector<OptionHelp> AutoAlgorithm::options() const {
    return {{"model", "exclusive, fluid", "how flows share a port"}};
}

Result<Plan> AutoAlgorithm::plan(const PlanRequest& request) const {
    const Result<PortModel> model = model_of(request);
    if (!model) {
        return tl::unexpected(model.error());
    }
    PlannerInput input{request, *model, plannable_algorithms(), false};
    input.request.options.clear();
    Result<Choice> choice = choose(input);
    if (!choice) {
        return tl::unexpected(choice.error());
    }
    if (!choice->recommended) {
        return fail(ErrorKind::kInput, fmt::format("auto finds no plan: {}", choice->why));
    }
    PlanRow& row = choice->rows[*choice->recommended];
    Plan plan = std::move(*row.plan);
    plan.reason = fmt::format("{} chosen: {}; {}", row.algorithm, choice->why, plan.reason);
    return plan;
}

} // namespace railbreak::collective
