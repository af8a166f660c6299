#include "scenarios/load.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/reader.hpp"
#include "scenarios/rules.hpp"
#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

namespace {

tl::unexpected<Diagnostics> refuse(const std::string& source, std::string message, std::string allowed) {
    return tl::unexpected<Diagnostics>(Diagnostics{{source, {}, std::move(message), std::move(allowed)}});
}

} // namespace

/// Opens without blocking, so that a FIFO nobody writes to is refused rather than waited for.
Checked<std::string> read_text_file(const std::string& path, std::string_view what) {
    const auto cannot_read = [&](int errno_value) {
        return refuse(path, fmt::format("cannot read the file: {}", ::strerrordesc_np(errno_value)),
                      fmt::format("give the path of {} that you may read", what));
    };
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd.valid()) {
        return cannot_read(errno);
    }
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) {
        return cannot_read(errno);
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse(path, S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file",
                      fmt::format("give the path of {}", what));
    }
    std::string text(kMaxFileBytes + 1, '\0'); // one byte more than allowed tells that the file is too large
    std::size_t used = 0;
    while (used < text.size()) {
        const ssize_t count = ::read(fd.get(), text.data() + used, text.size() - used);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return cannot_read(errno);
        }
        if (count == 0) {
            break;
        }
        used += static_cast<std::size_t>(count);
    }
    text.resize(used);
    return text;
}

Checked<Scenario> load_scenario(std::string_view text, std::string_view source_name, const KnownAlgorithms& known) {
    const std::string source(source_name);
    if (text.starts_with("\xef\xbb\xbf")) {
        text.remove_prefix(3); // a byte order mark says nothing in UTF-8
    }
    if (const auto checked = check_text(text, source); !checked) {
        return tl::unexpected<Diagnostics>(Diagnostics{checked.error()});
    }
    const auto root = parse_yaml(std::string(text), source);
    if (!root) {
        return tl::unexpected<Diagnostics>(Diagnostics{root.error()});
    }
    Checked<Scenario> scenario = load_scenario_tree(*root, source, known);
    if (scenario) {
        scenario->source_text = std::string(text);
    }
    return scenario;
}

Checked<Scenario> load_scenario_tree(const YamlNode& root, const std::string& source, const KnownAlgorithms& known) {
    DiagnosticSink sink(source);
    Origins origins;
    Scenario scenario = read_scenario(root, known, sink, origins);
    if (sink.empty()) {
        check_rules(scenario, origins, known, sink);
    }
    if (!sink.empty()) {
        return tl::unexpected<Diagnostics>(std::move(sink).take());
    }
    scenario.source_name = source;
    return scenario;
}

Checked<Scenario> load_scenario_file(const std::string& path, const KnownAlgorithms& known) {
    Checked<std::string> text = read_text_file(path, "a scenario file");
    if (!text) {
        return tl::unexpected<Diagnostics>(std::move(text.error()));
    }
    return load_scenario(*text, path, known);
}

} // namespace railbreak::scenarios
