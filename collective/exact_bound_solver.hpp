// A linear programme that grows row by row, solved by Clp.
//
// Clp is loaded when the first programme is made, not when the program starts: it brings a BLAS with it, some of which
// start threads when they are loaded, and a process with threads cannot enter a user namespace any more.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"

namespace railbreak::collective {

/// One coefficient of a row.
struct Coefficient {
    int column = 0;
    double value = 0;
};

/// Maximise one column subject to rows "lower <= coefficients . x <= upper" and x >= 0. Not thread-safe.
class LinearProgramme {
public:
    /// A programme with `columns` columns, all from 0 upwards; column `objective` is to be maximised. Error (kHarness)
    /// when the solver library is not there.
    [[nodiscard]] static Result<LinearProgramme> create(int columns, int objective);

    void add_row(double lower, double upper, const std::vector<Coefficient>& coefficients);
    /// Continues from the solution before. Error (kInternal) unless an optimum was found.
    [[nodiscard]] Result<void> solve();
    /// Values of the columns; valid until the next call of a member.
    [[nodiscard]] std::span<const double> solution() const;

private:
    struct Model; // what Clp calls Clp_Simplex, with the functions that act on it
    struct Free {
        void operator()(Model* model) const;
    };
    explicit LinearProgramme(std::unique_ptr<Model, Free> model) : model_(std::move(model)) {}

    std::unique_ptr<Model, Free> model_;
};

} // namespace railbreak::collective
