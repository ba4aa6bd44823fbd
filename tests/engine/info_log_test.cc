#include "engine/info_log.h"

#include <algorithm>
#include <regex>
#include <thread>

#include "engine/version/file_names.h"
#include "tests/engine/version_test_util.h"

namespace tamis::internal {
namespace {

class InfoLogTest : public VersionTest {
 protected:
  std::vector<std::string> Lines(std::string_view name) const {
    std::vector<std::string> lines;
    std::string text = ReadFile(name);
    for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) lines.push_back(text.substr(0, end));
    EXPECT_EQ(text, "");
    return lines;
  }
};

TEST_F(InfoLogTest, ALineHasTimeLevelAndText) {
  const Logger logger = NewInfoLogger(directory_);
  logger(LogLevel::kInfo, "first");
  logger(LogLevel::kWarning, "second");
  logger(LogLevel::kError, "");
  const auto lines = Lines(kInfoLogName);
  ASSERT_EQ(lines.size(), 3u);
  const std::regex form("20\\d\\d-[01]\\d-[0-3]\\dT[0-2]\\d:[0-5]\\d:[0-6]\\d\\.\\d{6}Z [IWE] .*");
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, form)) << line;
  EXPECT_TRUE(lines[0].ends_with("Z I first"));
  EXPECT_TRUE(lines[1].ends_with("Z W second"));
  EXPECT_TRUE(lines[2].ends_with("Z E "));
}

TEST_F(InfoLogTest, TheLogOfTheLastOpenIsKept) {
  NewInfoLogger(directory_)(LogLevel::kInfo, "one");
  NewInfoLogger(directory_)(LogLevel::kInfo, "two");
  NewInfoLogger(directory_)(LogLevel::kInfo, "three");
  EXPECT_TRUE(Lines(kInfoLogName)[0].ends_with("three"));
  EXPECT_TRUE(Lines(kOldInfoLogName)[0].ends_with("two"));
}

TEST_F(InfoLogTest, TakesAtMostTwoFilesOfOneMiB) {
  const Logger logger = NewInfoLogger(directory_);
  const std::string text(10000, 'x');
  uint64_t largest = 0;
  for (int i = 0; i < 400; ++i) {
    logger(LogLevel::kInfo, text + std::to_string(i));
    if (i % 50 != 49) continue;
    largest = std::max<uint64_t>(largest, ReadFile(kInfoLogName).size());
    if (Exists(kOldInfoLogName)) largest = std::max<uint64_t>(largest, ReadFile(kOldInfoLogName).size());
  }
  EXPECT_LE(largest, InfoLog::kMaxFileBytes);
  EXPECT_GT(ReadFile(kOldInfoLogName).size(), InfoLog::kMaxFileBytes - 11000);
  EXPECT_TRUE(Lines(kInfoLogName).back().ends_with("x399"));
  ASSERT_OK_AND_ASSIGN(const auto entries, directory_->List());
  EXPECT_EQ(entries.size(), 2u);
}

TEST_F(InfoLogTest, ATextCannotForgeALineAndIsCut) {
  const Logger logger = NewInfoLogger(directory_);
  logger(LogLevel::kInfo, std::string_view("a\nb\r\t\x1b[2J\0\x7fz", 11));
  logger(LogLevel::kInfo, std::string(3 << 20, 'y'));
  const auto lines = Lines(kInfoLogName);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with("a?b???[2J??")) << lines[0];
  EXPECT_LT(lines[1].size(), InfoLog::kMaxLineBytes + 100);
}

TEST_F(InfoLogTest, FailuresAreSwallowedAndDoNotCostTheOldLog) {
  NewInfoLogger(directory_)(LogLevel::kInfo, "kept");
  for (const char* operation : {"create", "append", "rename", "close", "remove", "sync"}) {
    FailAt(operation, "LOG", absl::UnknownError("injected"));
    const Logger logger = NewInfoLogger(directory_);
    for (int i = 0; i < 300; ++i) logger(LogLevel::kInfo, std::string(8000, 'x'));
    Heal();
    for (int i = 0; i < 10; ++i) logger(LogLevel::kInfo, "after");
  }
  EXPECT_TRUE(Exists(kOldInfoLogName) || Exists(kInfoLogName));
}

TEST_F(InfoLogTest, LinesOfManyThreadsStayWhole) {
  const Logger logger = NewInfoLogger(directory_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) logger(LogLevel::kInfo, std::string(20, static_cast<char>('a' + t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto lines = Lines(kInfoLogName);
  EXPECT_EQ(lines.size(), 2000u);
  for (const std::string& line : lines) EXPECT_EQ(line.find_last_not_of(line.back()), line.size() - 21) << line;
}

}  // namespace
}  // namespace tamis::internal
