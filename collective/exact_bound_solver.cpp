#include "collective/exact_bound_solver.hpp"

#include <limits>

#include <dlfcn.h>

#include <coin/Clp_C_Interface.h>
#include <fmt/format.h>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

/// A row or a solution is right to this much; the tightest that Clp takes.
constexpr double kTolerance = 1e-9;
/// Far more than any programme of ours needs.
constexpr double kMostSeconds = 10;

/// The functions of Clp that are used here. The types are those of its header.
struct Clp {
    decltype(&Clp_newModel) new_model = nullptr;
    decltype(&Clp_deleteModel) delete_model = nullptr;
    decltype(&Clp_addColumns) add_columns = nullptr;
    decltype(&Clp_addRows) add_rows = nullptr;
    decltype(&Clp_setOptimizationDirection) set_direction = nullptr;
    decltype(&Clp_setLogLevel) set_log_level = nullptr;
    decltype(&Clp_setPrimalTolerance) set_primal_tolerance = nullptr;
    decltype(&Clp_setDualTolerance) set_dual_tolerance = nullptr;
    decltype(&Clp_setMaximumSeconds) set_maximum_seconds = nullptr;
    decltype(&Clp_dual) dual = nullptr;
    decltype(&Clp_status) status = nullptr;
    decltype(&Clp_primalColumnSolution) primal_column_solution = nullptr;
};

template <class Function> bool look_up(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name)); // POSIX: an object pointer may hold a function's
    return function != nullptr;
}

Result<Clp> load_clp() {
    // Never closed: its code may have left handlers and threads behind.
    void* library = ::dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);
    Clp clp;
    if (library != nullptr && look_up(library, "Clp_newModel", clp.new_model) &&
        look_up(library, "Clp_deleteModel", clp.delete_model) && look_up(library, "Clp_addColumns", clp.add_columns) &&
        look_up(library, "Clp_addRows", clp.add_rows) &&
        look_up(library, "Clp_setOptimizationDirection", clp.set_direction) &&
        look_up(library, "Clp_setLogLevel", clp.set_log_level) &&
        look_up(library, "Clp_setPrimalTolerance", clp.set_primal_tolerance) &&
        look_up(library, "Clp_setDualTolerance", clp.set_dual_tolerance) &&
        look_up(library, "Clp_setMaximumSeconds", clp.set_maximum_seconds) && look_up(library, "Clp_dual", clp.dual) &&
        look_up(library, "Clp_status", clp.status) &&
        look_up(library, "Clp_primalColumnSolution", clp.primal_column_solution)) {
        return clp;
    }
    const char* why = ::dlerror();
    return fail(Error(ErrorKind::kHarness, fmt::format("cannot load the solver Clp: {}", why != nullptr ? why : "?"))
                    .advise("install it with: apt-get install coinor-libclp1"));
}

} // namespace

struct LinearProgramme::Model {
    Clp clp;
    Clp_Simplex* simplex = nullptr;
    int columns = 0;
};

void LinearProgramme::Free::operator()(Model* model) const {
    model->clp.delete_model(model->simplex);
    delete model; // NOLINT: this is the deleter
}

Result<LinearProgramme> LinearProgramme::create(int columns, int objective) {
    RB_CHECK(objective >= 0 && objective < columns, "the objective is a column");
    static const Result<Clp> loaded = load_clp();
    if (!loaded) {
        return tl::unexpected(loaded.error());
    }
    const Clp& clp = *loaded;
    std::unique_ptr<Model, Free> model(new Model{clp, clp.new_model(), columns});
    clp.set_log_level(model->simplex, 0);
    clp.set_primal_tolerance(model->simplex, kTolerance);
    clp.set_dual_tolerance(model->simplex, kTolerance);
    clp.set_maximum_seconds(model->simplex, kMostSeconds);
    const auto count = static_cast<std::size_t>(columns);
    const std::vector<double> lower(count, 0.0);
    const std::vector<double> upper(count, std::numeric_limits<double>::max());
    std::vector<double> costs(count, 0.0);
    costs[static_cast<std::size_t>(objective)] = 1;
    clp.add_columns(model->simplex, columns, lower.data(), upper.data(), costs.data(), nullptr, nullptr, nullptr);
    clp.set_direction(model->simplex, -1);
    return LinearProgramme(std::move(model));
}

void LinearProgramme::add_row(double lower, double upper, const std::vector<Coefficient>& coefficients) {
    std::vector<int> columns;
    std::vector<double> values;
    for (const Coefficient& coefficient : coefficients) {
        columns.push_back(coefficient.column);
        values.push_back(coefficient.value);
    }
    const CoinBigIndex starts[2] = {0, static_cast<CoinBigIndex>(columns.size())};
    model_->clp.add_rows(model_->simplex, 1, &lower, &upper, starts, columns.data(), values.data());
}

Result<void> LinearProgramme::solve() {
    model_->clp.dual(model_->simplex, 0);
    if (const int status = model_->clp.status(model_->simplex); status != 0) {
        return fail(ErrorKind::kInternal, fmt::format("Clp ended with status {} instead of an optimum", status));
    }
    return {};
}

std::span<const double> LinearProgramme::solution() const {
    return {model_->clp.primal_column_solution(model_->simplex), static_cast<std::size_t>(model_->columns)};
}

} // namespace railbreak::collective
