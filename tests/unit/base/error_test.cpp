// Failures as values: how they are built and how they read.
#include "base/error.hpp"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.hpp"

namespace railbreak {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Error, ReadsAsOneLineOfMessageFactsAndAdvice) {
    const Error error = Error(ErrorKind::kHarness, "the agent went away")
                            .with("host", "h3")
                            .with("step", "apply")
                            .advise("run: railbreak recover")
                            .during("while capping eth0");
    EXPECT_EQ(error.to_line(), "while capping eth0: the agent went away [host=h3, step=apply]; run: railbreak recover");
    EXPECT_EQ(error.kind(), ErrorKind::kHarness);
    EXPECT_EQ(error.message(), "while capping eth0: the agent went away");
    EXPECT_EQ(error.advice(), "run: railbreak recover");
    EXPECT_THAT(error.facts(), ElementsAre(Pair("host", "h3"), Pair("step", "apply")));
}

TEST(Error, LeavesOutWhatItDoesNotHave) {
    EXPECT_EQ(Error(ErrorKind::kInput, "no hosts").to_line(), "no hosts");
    EXPECT_EQ(Error(ErrorKind::kInput, "no hosts").with("file", "a.yaml").to_line(), "no hosts [file=a.yaml]");
    EXPECT_EQ(Error(ErrorKind::kInput, "no hosts").advise("add one").to_line(), "no hosts; add one");
}

TEST(Error, StaysOnOneLineWhateverItIsGiven) {
    const Error error = Error(ErrorKind::kInput, "line one\nline two").with("text", "\x1b[31mred\r\n");
    EXPECT_EQ(error.to_line(), "line one line two [text= [31mred  ]");
    EXPECT_EQ(error.message(), "line one\nline two"); // for machines, as it was
}

TEST(Error, KeepsTextBeyondAscii) {
    EXPECT_EQ(Error(ErrorKind::kInput, "unknown unit \"µs\"").to_line(), "unknown unit \"µs\"");
}

TEST(Fail, GivesTheFailureSideOfAResult) {
    const Result<int> result = fail(ErrorKind::kRefused, "not here");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(result.error().message(), "not here");
}

TEST(FailErrno, NamesTheCallAndTheErrno) {
    const Result<int> result = fail_errno(ErrorKind::kHarness, "open /etc/nothing", ENOENT);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().to_line(), "cannot open /etc/nothing: No such file or directory [errno=ENOENT]");
}

TEST(FailErrno, SurvivesANumberThatTheLibraryDoesNotKnow) {
    const Result<int> result = fail_errno(ErrorKind::kHarness, "ask", 99'999);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().to_line(), "cannot ask: unknown error [errno=99999]");
}

TEST(ErrorKind, HasOneWordEach) {
    EXPECT_EQ(to_string(ErrorKind::kUsage), "usage");
    EXPECT_EQ(to_string(ErrorKind::kInput), "input");
    EXPECT_EQ(to_string(ErrorKind::kRefused), "refused");
    EXPECT_EQ(to_string(ErrorKind::kOutcome), "outcome");
    EXPECT_EQ(to_string(ErrorKind::kHarness), "harness");
    EXPECT_EQ(to_string(ErrorKind::kTeardown), "teardown");
    EXPECT_EQ(to_string(ErrorKind::kInternal), "internal");
}

TEST(CheckDeathTest, AbortsWithPlaceConditionAndReason) {
    EXPECT_DEATH(RB_CHECK(1 == 2, "numbers are in order"),
                 "internal error at .*error_test.cpp:[0-9]+: numbers are in order \\(1 == 2\\)");
    RB_CHECK(1 == 1, "does nothing when it holds");
}

} // namespace
} // namespace railbreak
