// Which module may include which. A module not named here is a finding, so that a new folder takes its place on
// purpose.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/tidy/rules.hpp"

namespace railbreak::tidy {

namespace {

struct Layer {
    std::string_view module;
    std::vector<std::string_view> may_include; // besides itself
};

const std::vector<Layer>& layers() {
    static const std::vector<Layer> kLayers{
        {"base", {}},
        {"kernels", {"base"}},
        {"collective", {"base", "kernels"}},
        {"injectors", {"base"}},
        {"scenarios", {"base", "kernels"}}, // for the names of element types
        {"harness/record", {"base"}},
        {"harness/lab", {"base", "injectors"}},
        {"harness/launch", {"base"}},
        {"harness/planner", {"base", "collective"}},
        {"harness/analyse", {"base", "collective", "scenarios", "harness/record"}},
        {"harness/agent", {"base", "kernels", "collective", "injectors", "scenarios", "harness/launch"}},
        {"harness/controller",
         {"base", "kernels", "collective", "injectors", "scenarios", "harness/record", "harness/analyse", "harness/lab",
          "harness/launch", "harness/planner", "harness/agent"}},
        {"harness/simulate",
         {"base", "kernels", "collective", "scenarios", "harness/record", "harness/analyse", "harness/controller"}},
        {"harness/cli",
         {"base", "kernels", "collective", "injectors", "scenarios", "harness/record", "harness/analyse", "harness/lab",
          "harness/launch", "harness/planner", "harness/agent", "harness/controller", "harness/simulate", "reports"}},
        {"reports", {"base", "scenarios", "harness/record", "harness/analyse"}},
        {"tests",
         {"base", "kernels", "collective", "injectors", "scenarios", "harness/record", "harness/analyse", "harness/lab",
          "harness/launch", "harness/planner", "harness/agent", "harness/controller", "harness/simulate", "harness/cli",
          "reports"}},
    };
    return kLayers;
}

struct Library {
    std::string_view prefix; // of the path in angle brackets
    std::string_view owner;  // one module, or several separated by spaces
};
constexpr std::array<Library, 6> kLibraries{{{"SQLiteCpp/", "harness/record"},
                                             {"sqlite3.h", "harness/record"},
                                             {"yaml-cpp/", "scenarios"},
                                             {"pugixml", "harness/planner reports"},
                                             {"CLI/", "harness/cli"},
                                             {"coin/", "collective"}}};

bool owns(const Library& library, std::string_view module) {
    for (std::string_view rest = library.owner; !rest.empty();) {
        const std::string_view owner = rest.substr(0, rest.find(' '));
        if (owner == module) {
            return true;
        }
        rest.remove_prefix(std::min(owner.size() + 1, rest.size()));
    }
    return module == "tests";
}

/// The layer that a path belongs to, or null.
const Layer* layer_of(std::string_view path) {
    for (const Layer& layer : layers()) {
        if (path.starts_with(layer.module) && path.substr(layer.module.size()).starts_with('/')) {
            return &layer;
        }
    }
    return nullptr;
}

} // namespace

void check_layers(const SourceFile& file, Findings& out) {
    if (!file.is_cpp()) {
        return;
    }
    const Layer* own = layer_of(file.path);
    if (own == nullptr) {
        out.push_back({"layers", file.path, 0, "this folder has no place in the table of layers"});
        return;
    }
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        const int line = static_cast<int>(i) + 1;
        const std::string angled = angled_include(file.lines[i]);
        for (const Library& library : kLibraries) {
            if (angled.starts_with(library.prefix) && !owns(library, own->module)) {
                out.push_back({"layers", file.path, line, fmt::format("<{}> belongs to {}", angled, library.owner)});
            }
        }
        const std::string quoted = quoted_include(file.lines[i]);
        if (quoted.empty()) {
            continue;
        }
        const Layer* other = layer_of(quoted);
        if (other == nullptr) {
            out.push_back({"layers", file.path, line, fmt::format("\"{}\" is no path from the root", quoted)});
        } else if (other != own && std::ranges::find(own->may_include, other->module) == own->may_include.end()) {
            out.push_back(
                {"layers", file.path, line, fmt::format("{} may not include {}", own->module, other->module)});
        }
    }
}

} // namespace railbreak::tidy
