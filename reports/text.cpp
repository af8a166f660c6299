#include "reports/text.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace railbreak::reports {

namespace {

constexpr std::size_t kGap = 2;

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows, std::size_t columns) {
    std::vector<std::size_t> widths(columns, 0);
    for (const std::vector<std::string>& row : rows) {
        RB_CHECK(row.size() == columns, "every row has a cell for every column");
        for (std::size_t i = 0; i < columns; ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    return widths;
}

// Takes room away until the whole fits: from the last column, which holds the longest and least needed text, then from
// the widest.
void shrink(std::vector<std::size_t>& widths, std::size_t room) {
    constexpr std::size_t kEnough = 12;
    std::size_t total = kGap * (widths.size() - 1);
    for (const std::size_t width : widths) {
        total += width;
    }
    while (total > room) {
        auto victim = widths.back() > kEnough ? widths.end() - 1 : std::max_element(widths.begin(), widths.end());
        if (*victim <= 1) {
            return;
        }
        --*victim;
        --total;
    }
}

} // namespace

std::string printable(std::string_view text) {
    std::string out(text);
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return out;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::string_view alignment,
                    std::string_view indent) {
    std::vector<std::size_t> widths = widths_of(rows, alignment.size());
    shrink(widths, kColumns - indent.size());
    std::string out;
    for (const std::vector<std::string>& row : rows) {
        std::string line(indent);
        for (std::size_t i = 0; i < row.size(); ++i) {
            std::string cell = row[i];
            if (cell.size() > widths[i]) {
                cell.resize(widths[i]);
                cell.back() = '~';
            }
            const std::string padding(widths[i] - cell.size(), ' ');
            line += i == 0 ? "" : std::string(kGap, ' ');
            line += alignment[i] == 'r' ? padding + cell : cell + padding;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string wrapped(std::string_view text, std::size_t hanging) {
    std::string out;
    std::size_t room = kColumns;
    while (text.size() > room) {
        std::size_t end = text.rfind(' ', room);
        if (end == std::string_view::npos || end < room / 2) {
            end = room; // one long word: cut it
        }
        out += std::string(text.substr(0, end)) + "\n" + std::string(hanging, ' ');
        text.remove_prefix(end);
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        room = kColumns - hanging;
    }
    return out + std::string(text) + "\n";
}

} // namespace railbreak::reports
