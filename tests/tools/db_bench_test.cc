// db_bench: its output as scripts parse it, and that it reads what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/tools/run_command.h"

#ifdef TAMIS_DB_BENCH

namespace tamis {
namespace {

using ::testing::HasSubstr;
using testing_support::Ran;

struct ResultLine {
  std::vector<std::string> fields;
  double ops_per_second = 0;
  long operations = 0;
  std::string found;  // "63 of 100"
};

class DbBenchTest : public ::testing::Test {
 protected:
  Ran Bench(const std::string& arguments) {
    return testing_support::RunShell("'" TAMIS_DB_BENCH "' --db='" + folder_.path() + "/db' " + arguments);
  }

  static std::map<std::string, ResultLine> ResultLines(const std::string& output) {
    std::map<std::string, ResultLine> lines;
    std::istringstream in(output);
    for (std::string text; std::getline(in, text);) {
      std::istringstream words(text);
      ResultLine line;
      for (std::string word; words >> word;) line.fields.push_back(word);
      if (line.fields.size() < 10 || line.fields[1] != ":" || line.fields[3] != "micros/op") continue;
      line.ops_per_second = std::stod(line.fields[4]);
      line.operations = std::stol(line.fields[8]);
      const size_t open = text.rfind('(');
      if (open != std::string::npos) line.found = text.substr(open + 1, text.find(" found") - open - 1);
      lines[line.fields[0]] = line;
    }
    return lines;
  }

  testing_support::TempDir folder_;
};

TEST_F(DbBenchTest, FieldsOfTheResultLineStandWhereTheFamiliarToolHasThem) {
  const Ran ran = Bench("--benchmarks=fillseq --num=2000 --seed=1 2>/dev/null");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output,
              HasSubstr("\n------------------------------------------------\nDB path: [" + folder_.path() + "/db]\nfillseq      : "));
  auto lines = ResultLines(ran.output);
  ASSERT_EQ(lines.count("fillseq"), 1U) << ran.output;
  const ResultLine& line = lines["fillseq"];
  EXPECT_EQ(line.fields[5], "ops/sec");
  EXPECT_EQ(line.fields[7], "seconds");
  EXPECT_EQ(line.fields[9], "operations;");
  EXPECT_EQ(line.fields[11], "MB/s");
  EXPECT_EQ(line.operations, 2000);
}

TEST_F(DbBenchTest, ReadsFindWhatTheFillWroteAndAbsentKeysAreNotFound) {
  const Ran ran = Bench(
      "--benchmarks=fillseq,readrandom,readmissing,multireadrandom,seekrandom,flush,waitforcompaction,readrandom[X2],readmissing "
      "--num=100 --batch_size=4 --seed=7 2>/dev/null");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  auto lines = ResultLines(ran.output);
  EXPECT_EQ(lines["readrandom"].found, "100 of 100");
  EXPECT_EQ(lines["readmissing"].found, "0 of 100");
  EXPECT_EQ(lines["multireadrandom"].found, "100 of 100");
  EXPECT_EQ(lines["seekrandom"].found, "100 of 100");
  for (const auto& [name, line] : lines) EXPECT_GT(line.ops_per_second, 0) << name;
}

TEST_F(DbBenchTest, FillUniqueRandomWritesEachKey) {
  auto lines = ResultLines(Bench("--benchmarks=filluniquerandom,readrandom --num=100 --seed=3 2>/dev/null").output);
  EXPECT_EQ(lines["readrandom"].found, "100 of 100");
}

TEST_F(DbBenchTest, TheSameSeedGivesTheSameCounts) {
  const std::string arguments = "--benchmarks=fillrandom,readrandom,overwrite,deleterandom,readrandom --num=1000 --seed=42 2>/dev/null";
  const std::string first = ResultLines(Bench(arguments).output)["readrandom"].found;
  EXPECT_EQ(ResultLines(Bench(arguments).output)["readrandom"].found, first);
  EXPECT_NE(first, "");
}

TEST_F(DbBenchTest, EveryBenchmarkPrintsAPositiveRate) {
  const std::string names =
      "fillseq,fillbatch,fillsync,fillrandom,overwrite,readrandom,readmissing,multireadrandom,readseq,readreverse,seekrandom,"
      "readwhilewriting,flush,compact,waitforcompaction,verify,deleterandom,deleteseq";
  const Ran ran = Bench("--benchmarks=" + names +
                        ",stats,levelstats --num=2000 --threads=2 --seed=5 --seek_nexts=10 --histogram --statistics 2>/dev/null");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  auto lines = ResultLines(ran.output);
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    ASSERT_EQ(lines.count(name), 1U) << name;
    EXPECT_GT(lines[name].ops_per_second, 0) << name;
    EXPECT_GT(std::stod(lines[name].fields[2]), 0) << name;
  }
  EXPECT_THAT(ran.output, HasSubstr("Microseconds per read:\nCount: "));
  EXPECT_THAT(ran.output, HasSubstr("Percentiles: P50: "));
  EXPECT_THAT(ran.output, HasSubstr("STATISTICS:\n"));
}

TEST_F(DbBenchTest, AnExistingDatabaseIsKept) {
  ASSERT_EQ(Bench("--benchmarks=fillseq --num=500 --seed=1 2>/dev/null").exit_code, 0);
  const Ran ran = Bench("--benchmarks=fillseq,readrandom --num=500 --seed=2 --use_existing_db=1 2>/dev/null");
  EXPECT_THAT(ran.output, HasSubstr("fillseq      : skipped (--use_existing_db is true)\n"));
  EXPECT_EQ(ResultLines(ran.output)["readrandom"].found, "500 of 500");
}

TEST_F(DbBenchTest, UnknownFlagsOfTheFamiliarToolAreWarnedAboutOnce) {
  const Ran ran = Bench(
      "--benchmarks=fillseq --num=100 --disable_wal=1 --memtablerep skip_list --undefok=hush --hush=1 --compression_type=snappy 2>&1");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("warning: --disable_wal has no meaning here and is ignored\n"));
  EXPECT_THAT(ran.output, HasSubstr("warning: --memtablerep has no meaning here and is ignored\n"));
  EXPECT_THAT(ran.output, HasSubstr("warning: --compression_type=snappy: lz4 is used\n"));
  EXPECT_EQ(ran.output.find("hush has"), std::string::npos);
}

TEST_F(DbBenchTest, WrongValuesAndNamesAreErrors) {
  EXPECT_EQ(Bench("--num=many 2>/dev/null").exit_code, 1);
  EXPECT_EQ(Bench("--num=0 2>/dev/null").exit_code, 1);
  EXPECT_EQ(Bench("--benchmarks=nonsense 2>/dev/null").exit_code, 1);
}

TEST_F(DbBenchTest, DurationEndsARun) {
  const Ran ran = Bench("--benchmarks=fillseq,readrandom --num=1000 --duration=1 --seed=1 2>/dev/null");
  auto lines = ResultLines(ran.output);
  EXPECT_GT(lines["readrandom"].operations, 1000);
}

}  // namespace
}  // namespace tamis

#endif  // TAMIS_DB_BENCH
