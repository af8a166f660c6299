#include "scenarios/map_reader.hpp"

#include <fmt/format.h>

#include "scenarios/limits.hpp"

namespace railbreak::scenarios {

void MapReader::read_name(const Field& map, std::string& to, std::string_view key) {
    with(map, key, [&](const Field& field) {
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

bool MapReader::read_version(const Field& root) {
    bool supported = true;
    with(root, "railbreak", [&](const Field& field) {
        const auto text = fields_.text(field);
        supported = text == "1";
        if (text && !supported) {
            fields_.complain(field, fmt::format("format version {} is not supported", quote(*text)),
                             "this build reads version 1: write \"railbreak: 1\"");
        }
    });
    return supported;
}

void MapReader::read_description(const Field& root, std::string& to) {
    with(root, "description", [&](const Field& field) {
        const auto text = fields_.text(field);
        if (text && text->size() > kMaxDescriptionLength) {
            fields_.complain(field, fmt::format("has {} bytes", text->size()),
                             fmt::format("allowed: at most {}", kMaxDescriptionLength));
        }
        store(text, to);
    });
}

} // namespace railbreak::scenarios
