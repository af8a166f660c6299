#include "scenarios/map_reader.hpp"

#include <fmt/format.h>

#include "scenarios/limits.hpp"

namespace railbreak::scenarios {

void MapReader::read_name(const Field& map, std::string& to) {
    with(map, "name", [&](const Field& field) {
        const auto text = fields_.text(field);
        if (!text) {
            return;
        }
        if (text->empty() || text->size() > kMaxNameLength ||
            text->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
            fields_.complain(field, fmt::format("{} is not a name", quote(*text)),
                             fmt::format("allowed: 1 to {} of the characters a-z, 0-9 and -", kMaxNameLength));
            return;
        }
        to = *text;
    });
}

} // namespace railbreak::scenarios
