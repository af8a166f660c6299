#include "harness/cli/man_page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railbreak::cli {

namespace {

using Entry = std::pair<std::string_view, std::string_view>;

constexpr std::array<Entry, 8> kExitStatus{
    {{"0", "Pass; of a command that judges nothing: done."},
     {"1", "Fail: the system under test failed, a limit was missed, or what was looked at has a problem."},
     {"2", "Inconclusive: no proof either way."},
     {"3", "Refused: unsafe or not permitted. Nothing was changed."},
     {"4", "Aborted by an error of railbreak itself or by the user, and reverted."},
     {"5", "Teardown not verified: a host may not be as it was. See railbreak recover."},
     {"64", "Bad usage or bad input."},
     {"70", "Internal error."}}};

constexpr std::array<Entry, 10> kEnvironment{
    {{"RAILBREAK_DB", "The database, unless --db names one."},
     {"RAILBREAK_STATE_DIR", "Folder for journals and labs, in the place of the default one."},
     {"RAILBREAK_POLICY", "A site policy to obey besides those of the host and of --policy."},
     {"XDG_STATE_HOME", "Where the database lies by default, in its subfolder railbreak."},
     {"XDG_RUNTIME_DIR", "Where journals and labs of a user lie by default, in its subfolder railbreak."},
     {"HOME", "Where the database lies by default when XDG_STATE_HOME is not set."},
     {"NO_COLOR", "When set and not empty, nothing is printed in colours."},
     {"TERM", "When it is dumb or not set, nothing is printed in colours."},
     {"SSH_CONNECTION", "The connection that it names is protected: faults may not cut it."},
     {"TMPDIR", "Where short-lived files are made, instead of /tmp."}}};

constexpr std::array<Entry, 7> kFiles{
    {{"~/.local/state/railbreak/railbreak.db", "The database of runs (SQLite)."},
     {"/etc/railbreak/policy.yaml", "What the site allows to be broken on this host; always obeyed."},
     {"/run/railbreak", "Labs and journals of root."},
     {"$XDG_RUNTIME_DIR/railbreak", "Labs and journals of a user."},
     {"/tmp/railbreak-UID", "The same where there is no such folder."},
     {".../journal", "In those: what is to be undone, written before a fault is applied; railbreak recover reads it."},
     {".../halt", "While it is there no run may start; see railbreak halt."}}};

/// Text that roff takes as it is, nothing of it for a request or an escape; minus signs that can be copied.
std::string literal(std::string_view text) {
    std::string out;
    for (const char letter : text) {
        switch (letter) {
        case '\\': out += "\\e"; break;
        case '-': out += "\\-"; break;
        case '\'': out += "\\(aq"; break;
        case '`': out += "\\(ga"; break;
        case '^': out += "\\(ha"; break;
        case '~': out += "\\(ti"; break;
        default: out += letter; // not an enum
        }
    }
    return out;
}

/// Paragraph text: a sentence's full stop, and lines that cannot be taken for requests.
std::string sentence(std::string_view text) {
    std::string out;
    bool at_start = true;
    for (const char letter : text) {
        if (letter == '\n') {
            out += "\n.br\n";
            at_start = true;
            continue;
        }
        out += at_start && letter == '.' ? "\\&." : literal(std::string_view(&letter, 1));
        at_start = false;
    }
    const bool ended = text.empty() || text.ends_with('.') || text.ends_with('?') || text.ends_with('!');
    return out + (ended ? "" : ".");
}

std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::toupper(letter); });
    return text;
}

/// What a command does, in its first line; the program's speaks of itself by name.
std::string summary(const CommandModel& command) {
    constexpr std::string_view kName = "railbreak ";
    const std::string line = command.purpose.substr(0, command.purpose.find('\n'));
    return command.path.empty() && line.starts_with(kName) ? line.substr(kName.size()) : line;
}

std::string header(const CommandModel& command, std::string_view version) {
    const std::string title = page_file(command).substr(0, page_file(command).size() - 2);
    // No date: the page belongs to a version, and the same version gives the same page.
    return fmt::format(".TH {} 1 \"\" \"railbreak {}\" \"railbreak\"\n.SH NAME\n{} \\- {}\n", upper(literal(title)),
                       version, literal(title), literal(summary(command)));
}

/// "\fB\-o\fR, \fB\-\-output\fR \fIDIR\fR"
std::string names_of(const ValueModel& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) {
        names.push_back(fmt::format("\\fB{}\\fR", literal(name)));
    }
    return fmt::format(
        "{}{}", fmt::join(names, ", "),
        option.label.empty() ? "" : fmt::format(" \\fI{}\\fR{}", literal(option.label), option.list ? ",..." : ""));
}

std::string value_text(const ValueModel& value) {
    std::string text = sentence(value.description) + "\n";
    const auto add = [&](const std::string& more) { text += more + "\n"; };
    if (!value.choices.empty()) {
        add(fmt::format("One of: {}.", literal(fmt::format("{}", fmt::join(value.choices, ", ")))));
    }
    if (!value.range.empty()) {
        add(fmt::format("Allowed: {}.", literal(value.range)));
    }
    if (!value.default_text.empty()) {
        add(fmt::format("Default: {}.", literal(value.default_text)));
    }
    return text;
}

/// Arguments, then options, as a list. Help comes once, on the page of the program.
std::string values_of(const CommandModel& command) {
    std::string text;
    for (const ValueModel& argument : command.arguments) {
        text += fmt::format(".TP\n\\fI{}\\fR{}\n{}", literal(argument.label), argument.repeats ? " ..." : "",
                            value_text(argument));
    }
    for (const ValueModel& option : command.options) {
        const bool help = std::ranges::find(option.names, "--help") != option.names.end();
        if (!help || command.path.empty()) {
            text += fmt::format(".TP\n{}\n{}", names_of(option), value_text(option));
        }
    }
    return text;
}

std::string synopsis(const CommandModel& command) {
    std::string line = fmt::format("\\fBrailbreak{}{}\\fR [\\fIOPTION\\fR]...", command.path.empty() ? "" : " ",
                                   literal(command.name()));
    if (!command.commands.empty()) {
        return line + " \\fICOMMAND\\fR";
    }
    for (const ValueModel& argument : command.arguments) {
        const std::string word = fmt::format("\\fI{}\\fR{}", literal(argument.label), argument.repeats ? "..." : "");
        line += argument.required ? " " + word : " [" + word + "]";
    }
    return line;
}

template <std::size_t Size> std::string entries(std::string_view title, const std::array<Entry, Size>& list) {
    std::string text = fmt::format(".SH {}\n", title);
    for (const auto& [name, what] : list) {
        text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", literal(name), sentence(what));
    }
    return text;
}

std::string page_name(const CommandModel& command) {
    return literal(page_file(command).substr(0, page_file(command).size() - 2));
}

} // namespace

std::string page_file(const CommandModel& command) {
    return fmt::format("railbreak{}{}.1", command.path.empty() ? "" : "-", fmt::join(command.path, "-"));
}

std::string program_page(const CommandModel& program, std::string_view version) {
    std::string page = header(program, version);
    page += fmt::format(".SH SYNOPSIS\n{}\n.SH DESCRIPTION\n{}\n", synopsis(program),
                        sentence(program.purpose.substr(0, program.purpose.find('\n'))));
    page += ".PP\nResults go to standard output, progress and reasons to standard error.\n";
    page += "Every command takes the options of this page, before or after its own.\n.SH COMMANDS\n";
    for (const CommandModel& command : program.commands) {
        page += fmt::format(".TP\n\\fB{}\\fR\n{}\nSee {}(1).\n", literal(command.name()), sentence(command.purpose),
                            page_name(command));
    }
    page += ".SH OPTIONS\n" + values_of(program);
    page += entries("EXIT STATUS", kExitStatus) + entries("ENVIRONMENT", kEnvironment) + entries("FILES", kFiles);
    std::vector<std::string> pages;
    for (const CommandModel& command : program.commands) {
        pages.push_back(fmt::format("\\fB{}\\fR(1)", page_name(command)));
    }
    return page + fmt::format(".SH \"SEE ALSO\"\n{}\n", fmt::join(pages, ",\n"));
}

std::string command_page(const CommandModel& program, const CommandModel& command, std::string_view version) {
    std::string page = header(command, version) + ".SH SYNOPSIS\n";
    const std::vector<const CommandModel*> all = all_commands(command);
    bool first = true;
    for (const CommandModel* one : all) {
        if (one->commands.empty()) {
            page += fmt::format("{}{}\n", first ? "" : ".br\n", synopsis(*one));
            first = false;
        }
    }
    page += fmt::format(".SH DESCRIPTION\n{}\n", sentence(command.purpose));
    if (const std::string values = values_of(command); !values.empty()) {
        page += ".SH OPTIONS\n" + values;
    }
    if (all.size() > 1) {
        page += ".SH COMMANDS\n";
        for (const CommandModel* one : all) {
            if (one->commands.empty()) {
                page +=
                    fmt::format(".SS {}\n{}\n{}", literal(one->path.back()), sentence(one->purpose), values_of(*one));
            }
        }
    }
    std::vector<std::string> everywhere;
    for (const ValueModel& option : program.options) {
        everywhere.push_back(fmt::format("\\fB{}\\fR", literal(option.names.back())));
    }
    return page + fmt::format(".PP\nThe options {} of \\fBrailbreak\\fR(1) may be given, too.\n.SH \"SEE ALSO\"\n"
                              "\\fBrailbreak\\fR(1): exit status, environment and files\n",
                              fmt::join(everywhere, ", "));
}

} // namespace railbreak::cli
