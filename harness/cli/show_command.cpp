// railbreak show: one part of a recorded run, or one artefact of it.
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/output_file.hpp"
#include "harness/cli/everyday_commands.hpp"
#include "harness/cli/scenario_input.hpp"
#include "harness/record/reader.hpp"
#include "reports/section.hpp"

namespace railbreak::cli {

namespace {

struct ShowOptions {
    std::string run = "latest";
    std::string section = "summary";
    std::string artefact; ///< name; empty: a section is asked for
    std::string output;   ///< file; empty: standard output
};

/// What was asked for, ready to be printed or written. Only a terminal is spared what an artefact may hold.
Result<std::string> chosen_part(const CommonOptions& common, const ShowOptions& options, const record::RunData& data) {
    if (options.artefact.empty()) {
        return common.json ? reports::section_json(data, options.section)
                           : reports::section_text(data, options.section);
    }
    const Result<const record::ArtefactRow*> artefact = reports::find_artefact(data, options.artefact);
    if (!artefact) {
        return tl::unexpected(artefact.error());
    }
    if (options.output.empty() && common.json) {
        return reports::artefact_json(data, **artefact);
    }
    const std::string& content = (*artefact)->content;
    return options.output.empty() && ::isatty(STDOUT_FILENO) == 1 ? reports::for_terminal(content) : content;
}

int show(const CommonOptions& common, const ShowOptions& options) {
    const Result<record::RunReader> reader = record::RunReader::open_readonly(common.database);
    if (!reader) {
        return tell(common, reader.error());
    }
    const Result<record::RunData> data = reader->load_run(options.run);
    if (!data) {
        return tell(common, data.error());
    }
    const Result<std::string> part = chosen_part(common, options, *data);
    if (!part) {
        return tell(common, part.error());
    }
    if (options.output.empty()) {
        print_result(*part);
        return 0;
    }
    const Result<void> written = write_file(options.output, [&](std::ostream& out) -> Result<void> {
        out << *part;
        return {};
    });
    if (!written) {
        return tell(common, written.error());
    }
    if (common.json) {
        const nlohmann::ordered_json document{{"schema", "railbreak-show-file"},
                                              {"version", 1},
                                              {"run_id", data->run.run_id},
                                              {"path", options.output},
                                              {"size_bytes", part->size()}};
        print_result(json_text(document));
    } else {
        print_result(fmt::format("wrote {}\n", options.output));
    }
    return 0;
}

} // namespace

void add_show_command(CLI::App& app, CommonOptions& common, const Choose& choose) {
    CLI::App* command = app.add_subcommand("show", "Show one part of a recorded run");
    auto options = std::make_shared<ShowOptions>();
    command->add_option("RUN", options->run, "Run id, the beginning of one, or latest")->capture_default_str();
    CLI::Option* section =
        command->add_option("--section", options->section, "Which part")
            ->check(CLI::IsMember(std::vector<std::string>(reports::kSections.begin(), reports::kSections.end())))
            ->type_name("PART")
            ->capture_default_str();
    command
        ->add_option("--artefact", options->artefact, "What the run keeps under this name; the summary has the names")
        ->type_name("ARTEFACT")
        ->excludes(section);
    command->add_option("-o,--output", options->output, "Write it into this file, byte by byte")->type_name("FILE");
    command->callback([&common, options, choose] {
        choose(
            [&common, options] { return choose_database(common) ? show(common, *options) : exit_code_of_bad_usage(); });
    });
}

} // namespace railbreak::cli
