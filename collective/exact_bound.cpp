// The linear program: choose a fractional spanning tree x of the complete graph so that the largest of the loads
// sum_e c_e x_e of the ranks is least. The healthy ranks are alike, so their edges are lumped together:
//   f     total of healthy-healthy edges            d_i   total of edges from straggler i to healthy ranks
//   u_ij  edge between stragglers i and j           T     the load
// Minimise T subject to f + sum d + sum u = p-1, for every set S of stragglers u(S) <= |S|-1 and
// f + d(S) + u(S) <= h+|S|-1 (no cycles), 2f + sum l_i d_i <= h T and l_i d_i + sum_j max(l_i,l_j) u_ij <= T.
// Solved with the simplex method on a dense tableau, Bland's rule against cycling, and a penalty-free first phase:
// one artificial variable for the single equation is enough, because every other row starts with its slack.
#include "collective/exact_bound.hpp"

#include <algorithm>
#include <optional>

#include "base/check.hpp"

namespace railbreak::collective::bounds {

namespace {

using Row = std::vector<Rational>;

/// Rows "coefficients . x = right side" in canonical form for `basis`; the right side is the last column.
class Tableau {
public:
    void add(Row row, std::size_t basic) {
        rows_.push_back(std::move(row));
        basis_.push_back(basic);
    }

    /// Minimises objective . x using the first `usable` columns. Returns the minimum.
    Rational minimise(Row objective, std::size_t usable) {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            eliminate(objective, objective[basis_[i]], rows_[i]);
        }
        while (const std::optional<std::size_t> column = entering(objective, usable)) {
            pivot(leaving(*column), *column);
            eliminate(objective, objective[*column], rows_[basic_row(*column)]);
        }
        return -objective.back();
    }

    /// Takes a variable that is basic with value 0 out of the basis, so that it stays 0.
    void drive_out(std::size_t variable) {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            for (std::size_t j = 0; basis_[i] == variable && j < variable; ++j) {
                if (rows_[i][j] != 0) {
                    pivot(i, j);
                }
            }
        }
    }

private:
    void pivot(std::size_t row, std::size_t column) {
        const Rational divisor = rows_[row][column];
        for (Rational& value : rows_[row]) {
            value /= divisor;
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (i != row) {
                eliminate(rows_[i], rows_[i][column], rows_[row]);
            }
        }
        basis_[row] = column;
    }

    [[nodiscard]] std::size_t basic_row(std::size_t variable) const {
        return static_cast<std::size_t>(std::find(basis_.begin(), basis_.end(), variable) - basis_.begin());
    }

    static void eliminate(Row& target, Rational factor, const Row& source) {
        if (factor == 0) {
            return;
        }
        for (std::size_t j = 0; j < target.size(); ++j) {
            if (source[j] != 0) {
                target[j] -= factor * source[j];
            }
        }
    }

    static std::optional<std::size_t> entering(const Row& objective, std::size_t usable) {
        for (std::size_t j = 0; j < usable; ++j) {
            if (objective[j] < 0) {
                return j;
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::size_t leaving(std::size_t column) const {
        std::optional<std::size_t> best;
        Rational least;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i][column] <= 0) {
                continue;
            }
            const Rational ratio = rows_[i].back() / rows_[i][column];
            if (!best || ratio < least || (ratio == least && basis_[i] < basis_[*best])) {
                best = i;
                least = ratio;
            }
        }
        RB_CHECK(best.has_value(), "the load of a tree is bounded from below");
        return *best;
    }

    std::vector<Row> rows_;
    std::vector<std::size_t> basis_;
};

/// The program, with numbers for its variables.
class Program {
public:
    Program(Rank ranks, const std::vector<Rational>& stragglers)
        : m_(stragglers.size()), healthy_(ranks - static_cast<Rank>(m_)), ell_(stragglers),
          variables_(1 + m_ + m_ * (m_ - (m_ > 0 ? 1 : 0)) / 2 + 1) {
        add_loads();
        for (std::size_t set = 0; set < (std::size_t{1} << m_); ++set) {
            add_no_cycle(set);
        }
    }

    Rational solve() {
        // Columns: variables, one slack per row, the artificial variable of the equation, the right side.
        const std::size_t slacks = rows_.size();
        const std::size_t artificial = variables_ + slacks;
        Tableau tableau;
        for (std::size_t i = 0; i < slacks; ++i) {
            Row row = widened(rows_[i], artificial);
            row[variables_ + i] = 1;
            tableau.add(std::move(row), variables_ + i);
        }
        Row tree(variables_, Rational(1));
        tree[load()] = 0;
        tree.push_back(Rational(healthy_ + static_cast<Rank>(m_) - 1));
        Row equation = widened(tree, artificial);
        equation[artificial] = 1;
        tableau.add(std::move(equation), artificial);

        Row first(artificial + 2);
        first[artificial] = 1;
        RB_CHECK(tableau.minimise(std::move(first), artificial + 1) == 0, "a spanning tree exists");
        tableau.drive_out(artificial);
        Row second(artificial + 2);
        second[load()] = 1;
        return tableau.minimise(std::move(second), artificial);
    }

private:
    [[nodiscard]] std::size_t load() const { return variables_ - 1; }
    [[nodiscard]] static std::size_t to_healthy(std::size_t i) { return 1 + i; }
    [[nodiscard]] std::size_t between(std::size_t i, std::size_t j) const {
        const std::size_t low = std::min(i, j);
        return 1 + m_ + low * m_ - low * (low + 1) / 2 + (std::max(i, j) - low - 1);
    }

    static Row widened(const Row& row, std::size_t artificial) {
        Row wide(row.begin(), row.end() - 1);
        wide.resize(artificial + 1);
        wide.push_back(row.back());
        return wide;
    }

    void add_loads() {
        Row shared(variables_ + 1);
        shared[0] = 2;
        shared[load()] = -healthy_;
        for (std::size_t i = 0; i < m_; ++i) {
            shared[to_healthy(i)] = ell_[i];
            Row own(variables_ + 1);
            own[to_healthy(i)] = ell_[i];
            for (std::size_t j = 0; j < m_; ++j) {
                if (j != i) {
                    own[between(i, j)] = std::max(ell_[i], ell_[j]);
                }
            }
            own[load()] = -1;
            rows_.push_back(std::move(own));
        }
        rows_.push_back(std::move(shared));
    }

    void add_no_cycle(std::size_t set) {
        Row inner(variables_ + 1);
        Rational size(0);
        for (std::size_t i = 0; i < m_; ++i) {
            if ((set >> i & 1U) == 0) {
                continue;
            }
            size += 1;
            for (std::size_t j = i + 1; j < m_; ++j) {
                if ((set >> j & 1U) != 0) {
                    inner[between(i, j)] = 1;
                }
            }
        }
        Row outer = inner;
        if (size >= 2) {
            inner.back() = size - 1;
            rows_.push_back(std::move(inner));
        }
        outer[0] = 1;
        for (std::size_t i = 0; i < m_; ++i) {
            if ((set >> i & 1U) != 0) {
                outer[to_healthy(i)] = 1;
            }
        }
        outer.back() = healthy_ + size - 1;
        rows_.push_back(std::move(outer));
    }

    std::size_t m_;
    Rank healthy_;
    std::vector<Rational> ell_;
    std::size_t variables_;
    std::vector<Row> rows_;
};

} // namespace

Rational exact_optimum(Rank ranks, const std::vector<Rational>& stragglers) {
    RB_CHECK(stragglers.size() <= 6, "the program doubles with each straggler");
    RB_CHECK(ranks > static_cast<Rank>(stragglers.size()) && ranks >= 2, "at least one rank is healthy");
    return Program(ranks, stragglers).solve();
}

} // namespace railbreak::collective::bounds
