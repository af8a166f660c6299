#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/output_file.hpp"

namespace railbreak::test {

namespace {

class OutputFile : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "railbreak-output-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
    }
    static std::string content(const std::filesystem::path& path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }

    std::filesystem::path folder_;
};

Result<void> write_word(std::ostream& out) {
    out << "word\n";
    return {};
}

} // namespace

TEST_F(OutputFile, AppearsWithItsWholeContent) {
    const std::string large(300000, 'x');
    ASSERT_TRUE(write_file(folder_ / "a", [&](std::ostream& out) -> Result<void> {
        out << large << 'y';
        EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
        return {};
    }));
    EXPECT_EQ(content(folder_ / "a"), large + "y");
    EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFile, ReplacesAFileAndKeepsItsMode) {
    ASSERT_TRUE(write_file(folder_ / "a", write_word));
    std::filesystem::permissions(folder_ / "a",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    ASSERT_TRUE(write_file(folder_ / "a", [](std::ostream& out) -> Result<void> {
        out << "other";
        return {};
    }));
    EXPECT_EQ(content(folder_ / "a"), "other");
    EXPECT_EQ(std::filesystem::status(folder_ / "a").permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(OutputFile, AFailureLeavesTheFormerFile) {
    ASSERT_TRUE(write_file(folder_ / "a", write_word));
    const Result<void> written = write_file(folder_ / "a", [](std::ostream& out) -> Result<void> {
        out << "half";
        return fail(ErrorKind::kOutcome, "stopped");
    });
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message(), "stopped");
    EXPECT_EQ(content(folder_ / "a"), "word\n");
    EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFile, FollowsASymbolicLink) {
    ASSERT_TRUE(write_file(folder_ / "a", write_word));
    std::filesystem::create_symlink(folder_ / "a", folder_ / "link");
    ASSERT_TRUE(write_file(folder_ / "link", [](std::ostream& out) -> Result<void> {
        out << "new";
        return {};
    }));
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
    EXPECT_EQ(content(folder_ / "a"), "new");
}

TEST_F(OutputFile, SaysWhyItCannotBeWritten) {
    const Result<void> missing = write_file(folder_ / "none" / "a", write_word);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind(), ErrorKind::kInput);
    EXPECT_NE(missing.error().message().find("none/a: No such file"), std::string::npos) << missing.error().message();
    const Result<void> directory = write_file(folder_, write_word);
    ASSERT_FALSE(directory);
    EXPECT_NE(directory.error().message().find("Is a directory"), std::string::npos) << directory.error().message();
    EXPECT_FALSE(write_file("", write_word));
}

TEST_F(OutputFile, ADeviceIsWrittenToAndStays) {
    EXPECT_TRUE(write_file("/dev/null", write_word));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    const Result<void> full = write_file("/dev/full", write_word);
    ASSERT_FALSE(full);
    EXPECT_NE(full.error().message().find("/dev/full: No space left"), std::string::npos) << full.error().message();
}

} // namespace railbreak::test
