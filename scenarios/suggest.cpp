#include "scenarios/suggest.hpp"

#include <algorithm>
#include <vector>

namespace railbreak::scenarios {

namespace {

constexpr std::size_t kMaxWord = 64; // longer ones are no slip of the finger, and the distance costs their square

/// Optimal string alignment distance: insert, delete, replace, or swap two neighbours, each at cost 1.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

} // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
    if (word.empty() || word.size() > kMaxWord) {
        return {};
    }
    std::string_view best;
    std::size_t best_cost = word.size() / 4 + 2; // exclusive: 1 edit up to 3 letters, 2 up to 7 ...
    for (const std::string_view candidate : known) {
        const std::size_t cost = edits(word, candidate);
        if (cost < best_cost && cost < candidate.size()) {
            best = candidate;
            best_cost = cost;
        }
    }
    return best;
}

std::string join(std::span<const std::string_view> words) {
    std::string line;
    for (const std::string_view word : words) {
        line += line.empty() ? "" : ", ";
        line += word;
    }
    return line;
}

} // namespace railbreak::scenarios
