// The `tamis` command as scripts use it: exit codes, output, and that looking changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "tamis/db.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/run_command.h"

namespace tamis {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing_support::Ran;

class CommandTest : public ::testing::Test {
 protected:
  // Arguments are put into the shell line as they are.
  Ran Tamis(const std::string& arguments) { return testing_support::RunShell(std::string("'" TAMIS_COMMAND "' ") + arguments); }
  std::string Db() const { return folder_.path() + "/db"; }
  std::string File(const std::string& name) const { return folder_.path() + "/" + name; }
  void WriteFile(const std::string& name, const std::string& bytes) { std::ofstream(File(name), std::ios::binary) << bytes; }

  std::map<std::string, std::pair<uintmax_t, fs::file_time_type>> Listing() {
    std::map<std::string, std::pair<uintmax_t, fs::file_time_type>> listing;
    for (const auto& entry : fs::directory_iterator(Db())) {
      listing[entry.path().filename()] = {entry.file_size(), entry.last_write_time()};
    }
    return listing;
  }
  // The first file with this ending, or none.
  std::string FirstFile(const std::string& ending) {
    std::string found;
    for (const auto& entry : fs::directory_iterator(Db())) {
      const std::string name = entry.path().filename();
      if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
        if (found.empty() || name < found) found = name;
      }
    }
    return found.empty() ? found : Db() + "/" + found;
  }
  void FlipByte(const std::string& path, uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 0x40));
  }

  testing_support::TempDir folder_;
};

TEST_F(CommandTest, PutGetDeleteRoundTrip) {
  EXPECT_EQ(Tamis("put " + Db() + " apple red").exit_code, 0);
  const Ran got = Tamis("get " + Db() + " apple");
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.output, "red\n");
  EXPECT_EQ(Tamis("delete " + Db() + " apple").exit_code, 0);
  const Ran gone = Tamis("get " + Db() + " apple");
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_EQ(gone.output, "");
}

TEST_F(CommandTest, AbsentKeyIsExitCodeOneAlsoInJson) {
  ASSERT_EQ(Tamis("put " + Db() + " a 1").exit_code, 0);
  const Ran ran = Tamis("get --json " + Db() + " b");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.output, "{\"key\":\"b\",\"found\":false}\n");
}

TEST_F(CommandTest, WrongUsageIsExitCodeTwo) {
  EXPECT_EQ(Tamis("2>/dev/null").exit_code, 2);
  EXPECT_EQ(Tamis("nonsense 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Tamis("get " + Db() + " 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Tamis("put " + Db() + " 'bad\\q' x 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Tamis("put --hex " + Db() + " abc 00 2>/dev/null").exit_code, 2);
  EXPECT_FALSE(fs::exists(Db()));
}

TEST_F(CommandTest, HelpIsExitCodeZeroForEveryCommand) {
  EXPECT_EQ(Tamis("--help").exit_code, 0);
  for (const char* name : {"put", "get", "delete", "scan", "load", "compact", "stats", "filters", "advise", "verify", "dump", "study"}) {
    const Ran ran = Tamis(std::string(name) + " --help");
    EXPECT_EQ(ran.exit_code, 0) << name;
    EXPECT_GT(ran.output.size(), 100U) << name;
  }
}

TEST_F(CommandTest, MissingDatabaseIsExitCodeFourAndStaysMissing) {
  for (const char* arguments :
       {"get %s a", "delete %s a", "scan %s", "stats %s", "filters %s", "advise %s", "verify %s", "compact %s", "dump %s/CURRENT"}) {
    std::string line = arguments;
    line.replace(line.find("%s"), 2, Db());
    EXPECT_EQ(Tamis(line + " 2>/dev/null").exit_code, 4) << line;
    EXPECT_FALSE(fs::exists(Db())) << line;
  }
}

TEST_F(CommandTest, BytesOfAnyKindSurviveEscapesAndHex) {
  ASSERT_EQ(Tamis("put " + Db() + " 'a\\t\\n\\\\\\x00\\xff' 'v\\0'").exit_code, 0);
  EXPECT_EQ(Tamis("scan " + Db()).output, "a\\t\\n\\\\\\0\\xff\tv\\0\n");
  EXPECT_EQ(Tamis("get --hex " + Db() + " 61090a5c00ff").output, "7600\n");
  ASSERT_EQ(Tamis("put " + Db() + " '' ''").exit_code, 0);
  EXPECT_EQ(Tamis("get " + Db() + " ''").output, "\n");
}

TEST_F(CommandTest, ScanHonoursRangePrefixLimitAndReverse) {
  WriteFile("in.tsv", "a\t1\nb1\t2\nb2\t3\nb3\t4\nc\t5\n");
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " >/dev/null").exit_code, 0);
  EXPECT_EQ(Tamis("scan " + Db() + " --prefix b --keys-only").output, "b1\nb2\nb3\n");
  EXPECT_EQ(Tamis("scan " + Db() + " --from b2 --to c --keys-only").output, "b2\nb3\n");
  EXPECT_EQ(Tamis("scan " + Db() + " --reverse --limit 2").output, "c\t5\nb3\t4\n");
  EXPECT_EQ(Tamis("scan " + Db() + " --count").output, "5\n");
  EXPECT_EQ(Tamis("scan " + Db() + " --prefix zzz").exit_code, 0);
  EXPECT_EQ(Tamis("scan " + Db() + " --json --limit 1").output, "{\"key\":\"a\",\"value\":\"1\"}\n");
}

TEST_F(CommandTest, PrefixFiltersAreWrittenShownVerifiedAndChangeNoScan) {
  WriteFile("in.tsv", "a/1\t1\nb/1\t2\nb/2\t3\nz/1\t4\n");
  for (const char* rule : {"fixed:0", "fixed:65536", "fixed:", "delimiter:", "delimiter:ab", "delimiter:\\x", "4", "none"}) {
    EXPECT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " --prefix-rule '" + rule + "' 2>/dev/null").exit_code, 2) << rule;
  }
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " --prefix-rule 'delimiter:\\x2f' >/dev/null").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " --prefix-rule delimiter:/ >/dev/null 2>&1").exit_code, 0);
  EXPECT_THAT(Tamis("filters " + Db()).output, HasSubstr("prefix filters in memory: 0.00 MiB, of 1 files"));
  EXPECT_THAT(Tamis("filters --json " + Db()).output, HasSubstr("\"files_with_prefix_filter\": 1"));
  EXPECT_THAT(Tamis("stats " + Db()).output, HasSubstr("prefix filters: 0.1 KiB, asked 0, tables skipped 0"));
  const Ran dump = Tamis("dump --summary " + FirstFile(".table"));
  EXPECT_EQ(dump.exit_code, 0);
  EXPECT_THAT(dump.output, HasSubstr("prefix filter rule:        delimiter:/\n"));
  EXPECT_THAT(dump.output, HasSubstr("prefix filter keys:        3\n"));
  EXPECT_EQ(Tamis("verify " + Db() + " 2>/dev/null").exit_code, 0);
  EXPECT_EQ(Tamis("scan " + Db() + " --prefix b/ --keys-only").output, "b/1\nb/2\n");
  EXPECT_EQ(Tamis("scan " + Db() + " --prefix b/ --from b/2 --keys-only").output, "b/2\n");
  EXPECT_EQ(Tamis("scan " + Db() + " --prefix m/ --count").output, "0\n");
  ASSERT_EQ(Tamis("compact " + Db() + " --prefix-rule fixed:2 >/dev/null 2>&1").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  EXPECT_EQ(Tamis("scan " + Db() + " --prefix b/ --keys-only").output, "b/1\nb/2\n");
}

TEST_F(CommandTest, ScanOfEitherFormatLoadsIntoTheSameDatabase) {
  std::string tsv;
  for (int i = 0; i < 500; ++i) tsv += "key" + std::to_string(i) + "\\x0" + std::to_string(i % 8) + "\tvalue\\n" + std::to_string(i) + "\n";
  WriteFile("in.tsv", tsv);
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " >/dev/null").exit_code, 0);
  const std::string all = Tamis("scan " + Db()).output;
  for (const std::string format : {"tsv", "records"}) {
    const std::string copy = File("copy-" + format);
    const std::string arguments = "scan " + Db() + " --format " + format + " | '" TAMIS_COMMAND "' load " + copy + " - --format " + format;
    ASSERT_EQ(Tamis(arguments + " >/dev/null").exit_code, 0);
    EXPECT_EQ(Tamis("scan " + copy).output, all) << format;
  }
}

TEST_F(CommandTest, LoadNamesTheLineThatIsNoRecord) {
  WriteFile("in.tsv", "a\t1\nno tab here\n");
  const Ran ran = Tamis("load " + Db() + " " + File("in.tsv") + " 2>&1");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.output, HasSubstr("line 2"));
  WriteFile("short.rec", std::string("\x05\0\0\0\x05\0\0\0abc", 11));
  const Ran short_record = Tamis("load " + Db() + " " + File("short.rec") + " --format records 2>&1");
  EXPECT_EQ(short_record.exit_code, 2);
  EXPECT_THAT(short_record.output, HasSubstr("offset 0"));
  WriteFile("huge.rec", std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  EXPECT_EQ(Tamis("load " + Db() + " " + File("huge.rec") + " --format records 2>/dev/null").exit_code, 2);
}

TEST_F(CommandTest, InspectionChangesNothing) {
  WriteFile("in.tsv", "a\t1\nb\t2\n");
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " >/dev/null").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  const auto before = Listing();
  for (const char* name : {"get", "scan", "stats", "filters", "advise", "verify"}) {
    const std::string key = std::string(name) == "get" ? " a" : "";
    EXPECT_EQ(Tamis(std::string(name) + " " + Db() + key + " >/dev/null").exit_code, 0) << name;
    if (!key.empty()) continue;
    EXPECT_EQ(Tamis(std::string(name) + " --json " + Db() + " >/dev/null").exit_code, 0) << name;
  }
  for (const auto& [name, unused] : before) {
    if (name == "LOCK" || name == "LOG" || name == "LOG.old") continue;
    EXPECT_EQ(Tamis("dump " + Db() + "/" + name + " >/dev/null").exit_code, 0) << name;
    EXPECT_EQ(Tamis("dump --json " + Db() + "/" + name + " >/dev/null").exit_code, 0) << name;
  }
  EXPECT_EQ(Listing(), before);
}

TEST_F(CommandTest, DumpShowsEntriesOfTableAndLog) {
  ASSERT_EQ(Tamis("put " + Db() + " apple red").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  const std::string table = FirstFile(".table");
  ASSERT_FALSE(table.empty());
  EXPECT_THAT(Tamis("dump " + table).output, HasSubstr("put apple\tred\n"));
  EXPECT_EQ(Tamis("dump " + File("nothing.txt") + " 2>/dev/null").exit_code, 2);
}

TEST_F(CommandTest, EveryFlippedByteOfATableIsFoundByVerify) {
  ASSERT_EQ(Tamis("put " + Db() + " apple red").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  EXPECT_EQ(Tamis("verify " + Db() + " >/dev/null").exit_code, 0);
  const std::string table = FirstFile(".table");
  ASSERT_FALSE(table.empty());
  // Some of them here; the table's own tests flip each.
  for (uint64_t offset = 0; offset < fs::file_size(table); offset += 37) {
    FlipByte(table, offset);
    const Ran ran = Tamis("verify " + Db());
    EXPECT_EQ(ran.exit_code, 3) << "offset " << offset;
    EXPECT_THAT(ran.output, HasSubstr(".table")) << "offset " << offset;
    FlipByte(table, offset);
  }
  EXPECT_EQ(Tamis("verify " + Db() + " >/dev/null").exit_code, 0);
}

TEST_F(CommandTest, FiltersAreRebuiltIntoFilesThatVerifyChecks) {
  std::string tsv;
  for (int i = 0; i < 500; ++i) tsv += "key" + std::to_string(i) + "\tvalue\n";
  WriteFile("in.tsv", tsv);
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " >/dev/null").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  EXPECT_EQ(Tamis("filters --bits-per-key 16 " + Db() + " 2>/dev/null").exit_code, 2);
  EXPECT_EQ(Tamis("filters --rebuild --bits-per-key 99 " + Db() + " 2>/dev/null").exit_code, 2);
  const Ran ran = Tamis("filters --rebuild --bits-per-key 16 " + Db());
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.output, HasSubstr("rebuilt the filters of 1 tables"));
  const std::string filter = FirstFile(".filter");
  ASSERT_FALSE(filter.empty());
  EXPECT_THAT(Tamis("dump " + filter).output, HasSubstr("filter owner:"));
  EXPECT_THAT(Tamis("verify --json " + Db()).output, HasSubstr("\"filter_files\": 1"));
  FlipByte(filter, 200);
  const Ran damaged = Tamis("verify " + Db());
  EXPECT_EQ(damaged.exit_code, 3);
  EXPECT_THAT(damaged.output, HasSubstr(".filter"));
  EXPECT_EQ(Tamis("get " + Db() + " key7").output, "value\n");
  EXPECT_EQ(Tamis("filters --rebuild " + Db() + " >/dev/null").exit_code, 0);
  EXPECT_EQ(Tamis("verify " + Db() + " >/dev/null").exit_code, 0);
}

TEST_F(CommandTest, FiltersSaysWhatTheBestWouldBeAndThatNothingWasCounted) {
  std::string records;
  for (int i = 0; i < 5000; ++i) records += "key" + std::to_string(i) + "\tv\n";
  WriteFile("in.tsv", records);
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " 2>/dev/null").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " 2>/dev/null").exit_code, 0);
  const Ran text = Tamis("filters " + Db());
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("blocked_bloom"));
  EXPECT_THAT(text.output, HasSubstr("no lookups are remembered"));
  EXPECT_THAT(text.output, HasSubstr("verdict: the same memory"));
  const Ran json = Tamis("filters " + Db() + " --json");
  EXPECT_THAT(json.output, HasSubstr("\"lookups_remembered\": false"));
  EXPECT_THAT(json.output, HasSubstr("\"fpr_above_prediction\": false"));
  EXPECT_THAT(json.output, HasSubstr("\"same_wasted_reads\""));
}

TEST_F(CommandTest, AdviseGoesByTheDatabaseAndByFlagsThatSayOtherwise) {
  std::string records;
  for (int i = 0; i < 5000; ++i) records += "key" + std::to_string(i) + "\tv\n";
  WriteFile("in.tsv", records);
  ASSERT_EQ(Tamis("load " + Db() + " " + File("in.tsv") + " 2>/dev/null").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " 2>/dev/null").exit_code, 0);
  const auto before = Listing();
  const Ran text = Tamis("advise " + Db());
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("workload: 5000 keys in 1 run;"));
  EXPECT_THAT(text.output, HasSubstr("no lookups are remembered"));
  EXPECT_THAT(text.output, HasSubstr("advice: Options::filter.kind = kBlockedBloom, .allocation = kOptimal"));
  EXPECT_THAT(Tamis("advise " + Db() + " --negative-share 0").output, HasSubstr("Filters save nothing to speak of"));
  const Ran other = Tamis("advise " + Db() + " --levels 4 --negative-share 0 --json");
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_THAT(other.output, HasSubstr("\"case\": \"upper_levels\""));
  EXPECT_THAT(other.output, HasSubstr("\"saved_against_now\""));
  EXPECT_EQ(Listing(), before);
}

TEST_F(CommandTest, AdviseGoesByTheLookupsThatTheManifestRemembers) {
  {
    auto db = DB::Open(Options(), Db());
    ASSERT_TRUE(db.ok());
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE((*db)->Put("key" + std::to_string(i), "v").ok());
    ASSERT_TRUE((*db)->CompactRange(std::nullopt, std::nullopt).ok());
    std::string value;
    for (int i = 0; i < 4000; ++i) ASSERT_TRUE((*db)->Get("key" + std::to_string(i % 1000), &value).ok());
    ASSERT_TRUE((*db)->Close().ok());
  }
  const Ran ran = Tamis("advise " + Db());
  EXPECT_EQ(ran.exit_code, 0);
  // No miss among 4000: (0 + 64) / (4000 + 64).
  EXPECT_THAT(ran.output, HasSubstr("1.575 % of lookups are for absent keys (remembered of 4000 lookups)"));
  EXPECT_THAT(ran.output, HasSubstr("Only 4000 lookups are remembered"));
}

TEST_F(CommandTest, AdviseReckonsFromFlagsAlone) {
  const Ran text = Tamis("advise --keys 1000000 --negative-share 100 --levels 5 --size-ratio 10 --bits-per-key 10");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("Filters pay: 100 % of lookups"));
  EXPECT_THAT(text.output, HasSubstr(".wasted_reads_goal = 0.025"));
  EXPECT_THAT(Tamis("advise --keys 1000000 --negative-share 100 --read-cost-us 100 --probe-ns 20").output,
              HasSubstr("costs: 100 us a wasted read, 20 ns a filter asked"));
  EXPECT_THAT(Tamis("advise --keys 1000000 --negative-share 0").output, HasSubstr("gets no memory"));
  const Ran json = Tamis("advise --json --keys 1000000000 --negative-share 20 --read-cost-us 100");
  EXPECT_THAT(json.output, HasSubstr("\"last_level_kind\": \"ribbon\""));
  for (const char* wrong :
       {"", "--keys 1000", "--negative-share 5", "--keys 0 --negative-share 5", "--keys -5 --negative-share 5",
        "--keys x --negative-share 5", "--keys 10 --negative-share 101", "--keys 10 --negative-share nan", "--keys 10 --negative-share 5 --levels 0",
        "--keys 10 --negative-share 5 --size-ratio 0", "--keys 10 --negative-share 5 --bits-per-key 99",
        "--keys 10 --negative-share 5 --read-cost-us 0", "--keys 10 --negative-share 5 --probe-ns -1",
        "--keys 10 --negative-share 5 --nonsense"}) {
    EXPECT_EQ(Tamis(std::string("advise ") + wrong + " >/dev/null 2>&1").exit_code, 2) << wrong;
  }
}

TEST_F(CommandTest, AdviseOfADatabaseWithoutKeysSaysSo) {
  ASSERT_EQ(Tamis("put " + Db() + " a 1").exit_code, 0);
  ASSERT_EQ(Tamis("delete " + Db() + " a").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  const Ran ran = Tamis("advise " + Db());
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.output, HasSubstr("There are no keys in tables"));
  EXPECT_THAT(Tamis("advise " + Db() + " --json").output, HasSubstr("\"case\": \"no_keys\""));
  EXPECT_THAT(Tamis("advise " + Db() + " --keys 100000 --negative-share 100").output, HasSubstr("workload: 100000 keys in 4 runs"));
}

TEST_F(CommandTest, VerifyReportsDamagedCurrentAndMissingTable) {
  ASSERT_EQ(Tamis("put " + Db() + " apple red").exit_code, 0);
  ASSERT_EQ(Tamis("compact " + Db() + " >/dev/null 2>&1").exit_code, 0);
  FlipByte(Db() + "/CURRENT", 10);
  EXPECT_EQ(Tamis("verify " + Db() + " 2>&1 | grep -q CURRENT").exit_code, 0);
  EXPECT_EQ(Tamis("verify " + Db() + " >/dev/null 2>&1").exit_code, 3);
  EXPECT_EQ(Tamis("get " + Db() + " apple 2>/dev/null").exit_code, 3);
  FlipByte(Db() + "/CURRENT", 10);
  fs::rename(FirstFile(".table"), File("away"));
  const Ran ran = Tamis("verify --json " + Db() + " 2>/dev/null");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.output, HasSubstr("\"ok\": false"));
}

TEST_F(CommandTest, OutputThatDoesNotArriveIsAFailure) {
  ASSERT_EQ(Tamis("put " + Db() + " apple red").exit_code, 0);
  EXPECT_EQ(Tamis("scan " + Db() + " >/dev/full 2>/dev/null").exit_code, 4);
}

}  // namespace
}  // namespace tamis
