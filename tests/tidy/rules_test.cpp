// Each rule fires on a bad sample and is quiet on a good one.
#include "tests/tidy/rules.hpp"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railbreak::tidy {
namespace {

using ::testing::IsEmpty;

using Rule = void (*)(const SourceFile&, Findings&);

/// "line what" of each finding.
std::vector<std::string> findings(Rule rule, const std::string& path, const std::string& text) {
    Findings out;
    rule(make_source(path, text), out);
    std::vector<std::string> brief;
    for (const Finding& finding : out) {
        brief.push_back(std::to_string(finding.line) + " " + finding.what);
    }
    return brief;
}

std::string repeat(int times, const std::string& line) {
    std::string text;
    for (int i = 0; i < times; ++i) {
        text += line;
    }
    return text;
}

using Brief = std::vector<std::string>;

TEST(TidyRules, FileLength) {
    EXPECT_EQ(findings(&check_file_length, "base/a.cpp", repeat(501, "\n")), Brief{"0 501 lines, at most 500"});
    EXPECT_THAT(findings(&check_file_length, "base/a.cpp", repeat(500, "\n")), IsEmpty());
    EXPECT_THAT(findings(&check_file_length, "tests/golden/a.csv", repeat(501, "\n")), IsEmpty());
}

TEST(TidyRules, LineLengthCountsCharactersNotBytes) {
    EXPECT_EQ(findings(&check_line_length, "base/a.cpp", "\n" + std::string(121, 'x')), Brief{"2 121 columns"});
    EXPECT_THAT(findings(&check_line_length, "base/a.cpp", repeat(120, "µ")), IsEmpty());
}

TEST(TidyRules, FunctionLength) {
    const std::string body = " {\n" + repeat(69, "    f();\n") + "}\n"; // 71 lines with its braces
    const Brief expected{"2 a function of 71 lines, at most 70"};
    for (const std::string signature :
         {"int f(int a)", "template <class T, class U = X<T>> Result<T> f(T t)", "void C::f() const noexcept",
          "TEST(Suite, Name)", "bool operator==(const A& a, const B& b)", "void f(int a = 1, int b = 2)",
          "C::C(int a) : a_(a)", "auto f() -> int", "static constexpr int f()"}) {
        EXPECT_EQ(findings(&check_function_length, "base/a.cpp", "\n" + signature + body), expected) << signature;
    }
    const std::string in_class =
        "namespace a { class [[nodiscard]] C : public B { public:\nint f() const" + body + "}; }";
    EXPECT_EQ(findings(&check_function_length, "base/a.cpp", in_class), expected);
    EXPECT_THAT(findings(&check_function_length, "base/a.cpp", "int f() {\n" + repeat(68, "    g();\n") + "}\n"),
                IsEmpty());
}

TEST(TidyRules, FunctionLengthLeavesTypesTablesAndNamespacesAlone) {
    const std::string body = " {\n" + repeat(80, "    int a;\n") + "}";
    for (const std::string start : {"struct A", "class A final : public B<int (*)(int)>", "enum class A : std::uint8_t",
                                    "namespace a", "namespace", "const std::vector<int> kA = make_all(B", "int a[]",
                                    "extern \"C\"", "template <class T> struct A"}) {
        EXPECT_THAT(findings(&check_function_length, "base/a.cpp", start + body), IsEmpty()) << start;
    }
}

TEST(TidyRules, FunctionLengthIsNotFooledByBracesInText) {
    const std::string text =
        "int f() { // {\n    s = \"{\"; c = '{'; n = 1'000; r = R\"x({{)x\"; /* { */\n}\n#define A {\n" +
        std::string("int g() {\n") + repeat(69, "\n") + "}\n";
    EXPECT_EQ(findings(&check_function_length, "base/a.cpp", text), Brief{"5 a function of 71 lines, at most 70"});
}

TEST(TidyRules, LayersGoDownOnly) {
    EXPECT_EQ(findings(&check_layers, "collective/a.cpp", "#include \"injectors/netlink.hpp\"\n"),
              Brief{"1 collective may not include injectors"});
    EXPECT_EQ(findings(&check_layers, "base/a.hpp", "#include \"kernels/dtype.hpp\"\n"),
              Brief{"1 base may not include kernels"});
    EXPECT_EQ(findings(&check_layers, "reports/a.cpp", "#include \"harness/controller/run.hpp\"\n"),
              Brief{"1 reports may not include harness/controller"});
    EXPECT_THAT(findings(&check_layers, "collective/a/b.cpp", "#include \"base/error.hpp\"\n#include <vector>\n"),
                IsEmpty());
}

TEST(TidyRules, LayersWantPathsFromTheRootAndKnownFolders) {
    EXPECT_EQ(findings(&check_layers, "base/a.cpp", "#include \"error.hpp\"\n"),
              Brief{"1 \"error.hpp\" is no path from the root"});
    EXPECT_EQ(findings(&check_layers, "harness/other/a.cpp", ""),
              Brief{"0 this folder has no place in the table of layers"});
}

TEST(TidyRules, LayersKeepLibrariesWithTheirOwner) {
    EXPECT_EQ(findings(&check_layers, "collective/a.cpp", "#include <yaml-cpp/yaml.h>\n"),
              Brief{"1 <yaml-cpp/yaml.h> belongs to scenarios"});
    EXPECT_EQ(findings(&check_layers, "injectors/a.cpp", "#include <sqlite3.h>\n"),
              Brief{"1 <sqlite3.h> belongs to harness/record"});
    EXPECT_THAT(findings(&check_layers, "scenarios/a.cpp", "#include <yaml-cpp/yaml.h>\n"), IsEmpty());
}

TEST(TidyRules, BannedCalls) {
    for (const std::string call : {"std::system(\"x\");", "::popen(c, m);", "std::this_thread::sleep_for(d);",
                                   "this_thread::sleep_until(t);", "usleep(1);", "::sleep (1);", "nanosleep(a, b);",
                                   "x = rand();", "std::random_device seed;", "strcpy(a, b);", "std::sprintf(a, b);"}) {
        EXPECT_EQ(findings(&check_banned, "base/a.cpp", call).size(), 1U) << call;
        EXPECT_EQ(findings(&check_banned, "tests/a.cpp", call).size(), 1U) << call;
    }
    for (const std::string fine : {"file_system(a);", "snprintf(a, 1, b);", "// call system() never", "s = \"rand()\";",
                                   "int system = 1;", "std::this_thread::yield();", "operand(1);"}) {
        EXPECT_THAT(findings(&check_banned, "base/a.cpp", fine), IsEmpty()) << fine;
    }
}

TEST(TidyRules, BannedPrograms) {
    for (const std::string use : {"p = \"/sbin/ip\";", "p = \"/usr/sbin/tc\";", "c = \"tc qdisc add\";",
                                  "::execlp(\"ip\", \"ip\");", "posix_spawnp(&pid, \"tc\", a);"}) {
        EXPECT_FALSE(findings(&check_banned, "injectors/a.cpp", use).empty()) << use;
        EXPECT_THAT(findings(&check_banned, "tests/lab/a.cpp", use), IsEmpty()) << use;
    }
    EXPECT_THAT(findings(&check_banned, "injectors/a.cpp", "key = \"ip\"; // tc qdisc add\n"), IsEmpty());
}

TEST(TidyRules, DefaultNeedsAReason) {
    EXPECT_EQ(findings(&check_default, "base/a.cpp", "switch (a) {\ndefault: return 1;\n}").size(), 1U);
    EXPECT_EQ(findings(&check_default, "base/a.cpp", "default : return 1;").size(), 1U);
    EXPECT_THAT(findings(&check_default, "base/a.cpp", "default: // foreign enum\n"), IsEmpty());
    EXPECT_THAT(findings(&check_default, "base/a.cpp", "default: return 1; // not an enum\n"), IsEmpty());
    EXPECT_THAT(findings(&check_default, "base/a.cpp", "A() = default;\nint default_: 3;"), IsEmpty());
}

TEST(TidyRules, HeadersOpenWithACommentAndPragmaOnce) {
    EXPECT_EQ(findings(&check_header, "base/a.hpp", "#include <vector>\n").size(), 2U);
    EXPECT_EQ(findings(&check_header, "base/a.hpp", "").size(), 2U);
    EXPECT_EQ(findings(&check_header, "base/a.hpp", "// What it is.\n"), Brief{"1 no #pragma once"});
    EXPECT_THAT(findings(&check_header, "base/a.hpp", "// What it is.\n#pragma once\n"), IsEmpty());
    EXPECT_THAT(findings(&check_header, "base/a.cpp", "int a;\n"), IsEmpty());
}

TEST(TidyRules, WordsOfTheWorkplace) {
    for (const std::string& word : {std::string("/wo") + "rk/main", std::string("shared/des") + "ign",
                                    std::string("See Iss") + "ue #12", std::string("a Sub") + "agent"}) {
        EXPECT_EQ(findings(&check_words, "README.md", "fine\n" + word).size(), 1U) << word;
    }
    EXPECT_THAT(findings(&check_words, "README.md", "network/rail, issue of a magazine, agent\n"), IsEmpty());
}

TEST(TidyRules, DeadFiles) {
    const auto dead = [](const std::vector<SourceFile>& files) {
        Findings out;
        check_dead_files(files, out);
        std::vector<std::string> paths;
        for (const Finding& finding : out) {
            paths.push_back(finding.path);
        }
        return paths;
    };
    EXPECT_EQ(dead({make_source("base/a.cpp", ""), make_source("base/a.hpp", "#include \"base/a.hpp\"\n"),
                    make_source("base/CMakeLists.txt", "add_library(x # a.cpp\n)")}),
              (Brief{"base/a.cpp", "base/a.hpp"}));
    EXPECT_THAT(dead({make_source("base/a.cpp", "#include \"base/a.hpp\"\n"), make_source("base/a.hpp", ""),
                      make_source("base/CMakeLists.txt", "add_library(x STATIC a.cpp)")}),
                IsEmpty());
    EXPECT_THAT(dead({make_source("base/b/a.cpp", ""), make_source("base/CMakeLists.txt", "x(b/a.cpp)")}), IsEmpty());
}

TEST(TidyRules, PackagesAreListed) {
    Findings out;
    const SourceFile cmake = make_source("cmake/Dependencies.cmake", "railbreak_need(A \"liba-dev;libb-dev\" \"a\")\n");
    check_packages({make_source("packages.txt", "# list\nbuild liba-dev\nlint libb-dev\n"), cmake}, out);
    EXPECT_THAT(out, IsEmpty());
    check_packages({make_source("packages.txt", "build liba-dev\n"), cmake}, out);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].what, "libb-dev is not listed");
}

TEST(TidySource, BlanksCommentsAndLiteralsAndKeepsTheRest) {
    const SourceFile file =
        make_source("a.cpp", "int a = 1'000; // x\nauto s = \"q\\\"{\"; char c = '\\'';\n/* a\nb */ f(0xa'b);");
    EXPECT_EQ(file.code, (Brief{"int a = 1'000;     ", "auto s = \"    \"; char c = '  ';", "    ", "     f(0xa'b);"}));
    ASSERT_EQ(file.literals.size(), 1U);
    EXPECT_EQ(file.literals[0].line, 2);
    EXPECT_EQ(file.literals[0].text, "q\\\"{");
}

} // namespace
} // namespace railbreak::tidy
