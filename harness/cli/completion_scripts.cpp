#include "harness/cli/completion_scripts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"

namespace railbreak::cli {

namespace {

/// A word in single quotes, for bash and zsh.
std::string shell_quoted(std::string_view text) {
    std::string out = "'";
    for (const char letter : text) {
        out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    }
    return out + "'";
}

/// The same for fish, which knows escapes inside of quotes.
std::string fish_quoted(std::string_view text) {
    std::string out = "'";
    for (const char letter : text) {
        out += letter == '\'' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
    }
    return out + "'";
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

std::vector<std::string> shell_quoted_all(const std::vector<std::string>& words) {
    std::vector<std::string> out;
    out.reserve(words.size());
    for (const std::string& word : words) {
        out.push_back(shell_quoted(word));
    }
    return out;
}

std::vector<std::string> option_names(const CommandModel& command) {
    std::vector<std::string> names;
    for (const ValueModel& option : command.options) {
        names.insert(names.end(), option.names.begin(), option.names.end());
    }
    return names;
}

// bash. The function walks over the words before the cursor: which command, which option waits for its value, how many
// arguments. `case` tables then say what fits there.

/// What offers the values of an option or argument; empty where anything may stand.
std::string bash_offer(const ValueModel& value) {
    switch (value.kind) {
    case ValueKind::kChoice:
        return fmt::format("__railbreak_words {} {}", value.list ? "," : "''",
                           fmt::join(shell_quoted_all(value.choices), " "));
    case ValueKind::kFile: return "__railbreak_files -f";
    case ValueKind::kFolder: return "__railbreak_files -d";
    case ValueKind::kRuns:
    case ValueKind::kRunsOrSuite: return fmt::format("__railbreak_recorded {} ,..", list_option(value.kind));
    case ValueKind::kRun:
    case ValueKind::kRunOrSuite:
    case ValueKind::kScenario:
    case ValueKind::kSuite:
    case ValueKind::kBaseline:
    case ValueKind::kArtefact:
        return fmt::format("__railbreak_recorded {} {}", list_option(value.kind), value.list ? "," : "''");
    case ValueKind::kNone:
    case ValueKind::kText: return "";
    }
    return "";
}

/// "'report --format' | 'report -o'" of a command; "* --db" of the program, whose options hold everywhere.
std::string bash_pattern(const CommandModel& command, const ValueModel& option) {
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) {
        patterns.push_back(command.path.empty() ? fmt::format("*{}", shell_quoted(" " + name))
                                                : shell_quoted(command.name() + " " + name));
    }
    return fmt::format("{}", fmt::join(patterns, " | "));
}

/// The lines of a table about options that have a value; those of the program last, since a command may have its own.
template <class Line> std::string bash_option_table(const std::vector<const CommandModel*>& commands, Line line) {
    std::string own;
    std::string everywhere;
    for (const CommandModel* command : commands) {
        for (const ValueModel& option : command->options) {
            if (option.kind != ValueKind::kNone) {
                (command->path.empty() ? everywhere : own) += line(*command, option);
            }
        }
    }
    return own + everywhere;
}

std::string bash_arguments(const CommandModel& command) {
    std::string cases;
    for (std::size_t i = 0; i < command.arguments.size(); ++i) {
        const std::string offer = bash_offer(command.arguments[i]);
        const std::string place = command.arguments[i].repeats ? "*" : std::to_string(i);
        cases += fmt::format("                {}) {} ;;\n", place, offer.empty() ? ":" : offer);
    }
    if (!command.commands.empty()) {
        std::vector<std::string> words;
        for (const CommandModel& below : command.commands) {
            words.push_back(below.path.back());
        }
        cases = fmt::format("                *) __railbreak_words '' {} ;;\n", fmt::join(shell_quoted_all(words), " "));
    }
    return cases.empty() ? ""
                         : fmt::format("        {})\n            case $place in\n{}            esac ;;\n",
                                       shell_quoted(command.name()), cases);
}

constexpr std::string_view kBashHead = R"(# bash completion of railbreak, written by `railbreak completion bash`.

# Offers words as they are, never expanded. $1: what separates the values of a list (, or ,.. for both), or nothing.
__railbreak_words() {
    local done="" rest=$cur word
    case $1 in
        ,) rest=${cur##*,} ;;
        ,..) rest=${cur##*,} rest=${rest##*..} ;;
    esac
    done=${cur%"$rest"}
    shift
    for word in "$@"; do
        if [[ $done$word == "$cur"* ]]; then
            COMPREPLY+=("$done$word")
        fi
    done
}

# $1: -f for files and folders, -d for folders.
__railbreak_files() {
    mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
    compopt -o filenames 2>/dev/null
}

# What the database has. $1: --runs or another list; $2 as of __railbreak_words.
__railbreak_recorded() {
    local -a words
    mapfile -t words < <("${database[@]}" completion "$1" 2>/dev/null)
    __railbreak_words "$2" "${words[@]}"
}

_railbreak() {
    local cur=${COMP_WORDS[COMP_CWORD]} command="" option="" place=0 ended="" i word
    local -a database=("${COMP_WORDS[0]}")
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=""
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = ]]; then # --option=value is three words
            continue
        fi
        if [[ -n $option ]]; then
            if [[ $option == --db ]]; then
                database+=(--db "$word")
            fi
            option=""
            continue
        fi
        if [[ -z $ended && $word == -- ]]; then
            ended=1
            continue
        fi
        if [[ -z $ended && $word == -* ]]; then
            case "$command $word" in
)";

} // namespace

std::string list_option(ValueKind kind) {
    switch (kind) {
    case ValueKind::kRun:
    case ValueKind::kRuns: return "--runs";
    case ValueKind::kRunOrSuite:
    case ValueKind::kRunsOrSuite: return "--subjects";
    case ValueKind::kArtefact: return "--artefacts";
    case ValueKind::kScenario: return "--scenarios";
    case ValueKind::kSuite: return "--suites";
    case ValueKind::kBaseline: return "--tags";
    case ValueKind::kNone:
    case ValueKind::kText:
    case ValueKind::kChoice:
    case ValueKind::kFile:
    case ValueKind::kFolder: return "";
    }
    return "";
}

std::string bash_completion(const CommandModel& model) {
    const std::vector<const CommandModel*> commands = all_commands(model);
    std::string script(kBashHead);
    script += bash_option_table(commands, [](const CommandModel& command, const ValueModel& option) {
        return fmt::format("                {}) option=$word ;;\n", bash_pattern(command, option));
    });
    script += "            esac\n            continue\n        fi\n        case \"$command $word\" in\n";
    for (const CommandModel* command : commands) {
        if (!command->path.empty()) {
            const std::string above = command->path.size() > 1 ? command->path.front() : "";
            script += fmt::format("            {}) command={} ;;\n", shell_quoted(above + " " + command->path.back()),
                                  shell_quoted(command->name()));
        }
    }
    script += "            *) place=$((place + 1)) ;;\n        esac\n    done\n";
    script += "    if [[ -n $option ]]; then\n        case \"$command $option\" in\n";
    script += bash_option_table(commands, [](const CommandModel& command, const ValueModel& option) {
        const std::string offer = bash_offer(option);
        return offer.empty() ? "" : fmt::format("            {}) {} ;;\n", bash_pattern(command, option), offer);
    });
    script += "        esac\n        return\n    fi\n    if [[ -z $ended && $cur == -* ]]; then\n";
    script +=
        fmt::format("        __railbreak_words '' {}\n        case $command in\n", fmt::join(option_names(model), " "));
    for (const CommandModel* command : commands) {
        std::vector<std::string> names = option_names(*command);
        std::erase_if(names, [](const std::string& name) { return name == "-h" || name == "--help"; });
        if (!command->path.empty() && !names.empty()) {
            script += fmt::format("            {}) __railbreak_words '' {} ;;\n", shell_quoted(command->name()),
                                  fmt::join(names, " "));
        }
    }
    script += "        esac\n        return\n    fi\n    case $command in\n";
    for (const CommandModel* command : commands) {
        script += bash_arguments(*command);
    }
    return script + "    esac\n}\n\ncomplete -F _railbreak railbreak\n";
}

namespace {

// zsh. A function for each command hands its options and arguments to _arguments.

std::string escaped(std::string_view text, std::string_view special) {
    std::string out;
    for (const char letter : text) {
        out += special.find(letter) != std::string_view::npos ? std::string("\\") + letter : std::string(1, letter);
    }
    return out;
}

std::string zsh_action(const ValueModel& value) {
    switch (value.kind) {
    case ValueKind::kChoice:
        return value.list ? fmt::format("_values -s , {} {}", value.label, fmt::join(value.choices, " "))
                          : fmt::format("({})", fmt::join(value.choices, " "));
    case ValueKind::kFile: return "_files";
    case ValueKind::kFolder: return "_files -/";
    case ValueKind::kRuns:
    case ValueKind::kRunsOrSuite: return fmt::format("__railbreak_set {}", list_option(value.kind));
    case ValueKind::kRun:
    case ValueKind::kRunOrSuite:
    case ValueKind::kScenario:
    case ValueKind::kSuite:
    case ValueKind::kBaseline:
    case ValueKind::kArtefact: return fmt::format("__railbreak_recorded {}", list_option(value.kind));
    case ValueKind::kNone:
    case ValueKind::kText: return " ";
    }
    return " ";
}

std::string zsh_value(const ValueModel& value) {
    return fmt::format("{}:{}", escaped(value.label, ":\\"), zsh_action(value));
}

/// The specifications of an option, one for each of its names; a name keeps the others away.
std::string zsh_option(const ValueModel& option) {
    std::string lines;
    for (const std::string& name : option.names) {
        const std::string others = option.repeats ? "*" : fmt::format("({})", fmt::join(option.names, " "));
        const bool flag = option.kind == ValueKind::kNone;
        const std::string_view joint = flag ? "" : name.starts_with("--") ? "=" : "+";
        lines +=
            fmt::format(" \\\n        {}", shell_quoted(fmt::format("{}{}{}[{}]{}", others, name, joint,
                                                                    escaped(first_line(option.description), "[]\\:"),
                                                                    flag ? "" : ":" + zsh_value(option))));
    }
    return lines;
}

/// "_railbreak-db-check".
std::string zsh_function(const CommandModel& command) {
    return fmt::format("_railbreak{}{}", command.path.empty() ? "" : "-", fmt::join(command.path, "-"));
}

std::string zsh_command(const CommandModel& program, const CommandModel& command) {
    std::string body = "    local curcontext=$curcontext state line ret=1\n    typeset -A opt_args\n";
    body += command.path.empty() ? "    local program=$words[1]\n" : "";
    body += "    _arguments -C -s -S";
    for (const ValueModel& option : program.options) {
        const bool own = option.names.back() == "--help";
        body += own ? "" : zsh_option(option);
    }
    for (const ValueModel& option : command.options) {
        const bool shown = !command.path.empty() || option.names.back() == "--help";
        body += shown ? zsh_option(option) : "";
    }
    for (std::size_t i = 0; i < command.arguments.size(); ++i) {
        const ValueModel& argument = command.arguments[i];
        body += fmt::format(" \\\n        {}",
                            shell_quoted(fmt::format("{}:{}", argument.repeats ? "*" : std::to_string(i + 1) + ":",
                                                     zsh_value(argument))));
    }
    if (command.commands.empty()) {
        return fmt::format("{}() {{\n{}\n}}\n\n", zsh_function(command), body);
    }
    body += " \\\n        '1:command:->command' '*::argument:->argument' && ret=0\n    case $state in\n";
    body += "        command)\n            local -a commands=(\n";
    for (const CommandModel& below : command.commands) {
        body += fmt::format("                {}\n",
                            shell_quoted(escaped(below.path.back(), ":\\") + ":" + first_line(below.purpose)));
    }
    body += "            )\n            _describe command commands && ret=0 ;;\n        argument)\n"
            "            case $line[1] in\n";
    for (const CommandModel& below : command.commands) {
        body += fmt::format("                {}) {} && ret=0 ;;\n", below.path.back(), zsh_function(below));
    }
    body += "            esac ;;\n    esac\n    return ret\n";
    return fmt::format("{}() {{\n{}}}\n\n", zsh_function(command), body);
}

constexpr std::string_view kZshHead = R"zsh(#compdef railbreak
# zsh completion of railbreak, written by `railbreak completion zsh`.

# What the database has. The last argument is --runs or another list; those before it are for compadd.
__railbreak_recorded() {
    local -a found database
    if [[ -n ${opt_args[--db]} ]]; then
        database=(--db ${(Q)opt_args[--db]})
    fi
    found=(${(f)"$($program $database completion ${@[-1]} 2>/dev/null)"})
    compadd "${@[1,-2]}" -a found
}

# The same for one of several, A,B or A..B.
__railbreak_set() {
    compset -P '*(,|..)'
    __railbreak_recorded -S '' "$@"
}

)zsh";

constexpr std::string_view kZshTail = R"(if [[ $funcstack[1] == _railbreak ]]; then
    _railbreak "$@"
else
    compdef _railbreak railbreak
fi
)";

// fish. A function says which command the line is in; every `complete` line has a command as its condition.

std::string fish_values(const ValueModel& value) {
    switch (value.kind) {
    case ValueKind::kChoice:
        return fmt::format(" -x -a {}",
                           fish_quoted(value.list ? fmt::format("(__fish_complete_list , 'string split \" \" -- {}')",
                                                                fmt::join(value.choices, " "))
                                                  : fmt::format("{}", fmt::join(value.choices, " "))));
    case ValueKind::kFile: return " -r -F";
    case ValueKind::kFolder: return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kRuns:
    case ValueKind::kRunsOrSuite: return fmt::format(" -x -a '(__railbreak_set {})'", list_option(value.kind));
    case ValueKind::kRun:
    case ValueKind::kRunOrSuite:
    case ValueKind::kScenario:
    case ValueKind::kSuite:
    case ValueKind::kBaseline:
    case ValueKind::kArtefact: return fmt::format(" -x -a '(__railbreak_recorded {})'", list_option(value.kind));
    case ValueKind::kNone: return "";
    case ValueKind::kText: return " -x";
    }
    return "";
}

std::string fish_option(std::string_view condition, const ValueModel& option) {
    std::string line = fmt::format("complete -c railbreak{}", condition);
    for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    return line + fish_values(option) + fmt::format(" -d {}\n", fish_quoted(first_line(option.description)));
}

std::string fish_command(const CommandModel& command) {
    const std::string condition =
        fmt::format(" -n {}", fish_quoted(fmt::format("__railbreak_at {}", shell_quoted(command.name()))));
    std::string lines;
    for (const CommandModel& below : command.commands) {
        lines += fmt::format("complete -c railbreak{} -f -a {} -d {}\n", condition, below.path.back(),
                             fish_quoted(first_line(below.purpose)));
    }
    for (const ValueModel& option : command.options) {
        lines += fish_option(command.path.empty() ? "" : condition, option);
    }
    bool files = false;
    for (const ValueModel& argument : command.arguments) {
        files = files || argument.kind == ValueKind::kFile;
        const std::string values = fish_values(argument);
        if (argument.kind != ValueKind::kFile && argument.kind != ValueKind::kText) {
            lines += fmt::format("complete -c railbreak{} -f{}\n", condition, values.substr(3)); // without -x
        }
    }
    return lines + (files ? fmt::format("complete -c railbreak{} -F\n", condition)
                          : fmt::format("complete -c railbreak{} -f\n", condition));
}

constexpr std::string_view kFishHead = R"(# fish completion of railbreak, written by `railbreak completion fish`.

# The command that the line is in, "db check"; $__railbreak_database is the database that it names.
function __railbreak_command
    set -l path
    set -l option
    set -g __railbreak_database
    for word in (commandline -opc)[2..-1]
        if test -n "$option"
            test "$option" = --db; and set -g __railbreak_database --db $word
            set option
            continue
        end
        switch "$path $word"
)";

constexpr std::string_view kFishTail = R"(            case '* -*'
            case '*'
                set -l below (string trim -- "$path $word")
                contains -- $below $__railbreak_commands; and set path $below
        end
    end
    echo "$path"
end

function __railbreak_at
    test (__railbreak_command) = "$argv[1]"
end

# What the database has. $argv[1]: --runs or another list.
function __railbreak_recorded
    set -l program (commandline -opc)[1]
    __railbreak_command >/dev/null
    $program $__railbreak_database completion $argv[1] 2>/dev/null
end

# The same for one of several, A,B or A..B.
function __railbreak_set
    set -l before (string match -r '^.*(?:,|\.\.)' -- (commandline -ct))
    for word in (__railbreak_recorded $argv[1])
        echo "$before$word"
    end
end

)";

} // namespace

std::string zsh_completion(const CommandModel& model) {
    std::string script(kZshHead);
    for (const CommandModel* command : all_commands(model)) {
        script += zsh_command(model, *command);
    }
    return script + std::string(kZshTail);
}

std::string fish_completion(const CommandModel& model) {
    std::string script(kFishHead);
    std::vector<std::string> names;
    const std::vector<const CommandModel*> commands = all_commands(model);
    for (const CommandModel* command : commands) {
        if (!command->path.empty()) {
            names.push_back(fish_quoted(command->name()));
        }
        for (const ValueModel& option : command->options) {
            for (const std::string& name : option.names) {
                if (option.kind != ValueKind::kNone) {
                    script +=
                        fmt::format("            case {}\n                set option {}\n",
                                    fish_quoted((command->path.empty() ? "*" : command->name()) + " " + name), name);
                }
            }
        }
    }
    script += kFishTail;
    script += fmt::format("set -g __railbreak_commands {}\n", fmt::join(names, " "));
    for (const CommandModel* command : commands) {
        script += fish_command(*command);
    }
    return script;
}

} // namespace railbreak::cli
