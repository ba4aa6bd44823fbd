#include "engine/version/file_names.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tamis::internal {
namespace {

TEST(FileNames, NamesParseBack) {
  for (const uint64_t number : {uint64_t{1}, uint64_t{42}, uint64_t{999999}, uint64_t{1000000}, uint64_t{1234567890123}, kMaxFileNumber}) {
    const std::pair<std::string, FileKind> names[] = {{ManifestName(number), FileKind::kManifest},
                                                      {LogName(number), FileKind::kLog},
                                                      {TableName(number), FileKind::kTable},
                                                      {FilterName(number), FileKind::kFilter},
                                                      {TemporaryName(number), FileKind::kTemporary}};
    for (const auto& [name, kind] : names) {
      const auto parsed = ParseFileName(name);
      ASSERT_TRUE(parsed) << name;
      EXPECT_EQ(parsed->kind, kind) << name;
      EXPECT_EQ(parsed->number, number) << name;
    }
  }
}

TEST(FileNames, SpellsThemAsDocumented) {
  EXPECT_EQ(ManifestName(7), "MANIFEST-000007");
  EXPECT_EQ(LogName(7), "000007.log");
  EXPECT_EQ(TableName(1234567), "1234567.table");
  EXPECT_EQ(FilterName(123456), "123456.filter");
  EXPECT_EQ(TemporaryName(7), "CURRENT.000007.tmp");
}

TEST(FileNames, FixedNamesHaveNumberZero) {
  const std::pair<std::string_view, FileKind> names[] = {
      {"CURRENT", FileKind::kCurrent}, {"LOCK", FileKind::kLock}, {"LOG", FileKind::kInfoLog}, {"LOG.old", FileKind::kInfoLog}};
  for (const auto& [name, kind] : names) {
    const auto parsed = ParseFileName(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->kind, kind);
    EXPECT_EQ(parsed->number, 0u);
  }
}

TEST(FileNames, RefusesEverythingElse) {
  using namespace std::string_view_literals;
  const std::string_view names[] = {
      "", ".", "..", "/", "foo", "CURRENT ", "current", "LOG.old.old", "LOG.", "LOCK\0"sv, "CURRENT.tmp", "CURRENT.1.tmp",
      // Too few digits, number zero, superfluous zeros, signs, spaces, other digits.
      "1.log", "00001.table", "000000.log", "0000001.table", "MANIFEST-", "MANIFEST-1", "MANIFEST-0000012", "MANIFEST-000000", "+00001.log",
      "-00001.log", " 000001.log", "00000a.log", "0x0001.log", "000001.LOG", "000001.log ", "000001.log\n", "000001log", "000001.",
      "000001", ".log", "000001.table.tmp", "CURRENT.000001.tmp2", "CURRENT.000001", "MANIFEST-000001.tmp", "MANIFEST000001",
      // Paths.
      "../MANIFEST-000001", "MANIFEST-../001", "MANIFEST-000001/", "a/000001.log", "/000001.log", "000001.log\0x"sv, "MANIFEST-00000\0"sv,
      // Beyond the largest number, and beyond 64 bits.
      "4611686018427387904.log", "18446744073709551615.table", "18446744073709551616.table", "18446744073709551617.table",
      "99999999999999999999999999999999999999.log", "MANIFEST-4611686018427387904", "CURRENT.99999999999999999999.tmp"};
  for (const std::string_view name : names) EXPECT_FALSE(ParseFileName(name)) << name;
}

TEST(FileNames, AcceptsOnlyWhatItWouldWrite) {
  // Whatever parses, from mutations of good names, is spelled as the functions spell it.
  Random random(1);
  const std::string seeds[] = {ManifestName(12), LogName(1000000), TableName(3), FilterName(77), TemporaryName(123456)};
  for (int i = 0; i < 200000; ++i) {
    std::string name = seeds[random.Uniform(std::size(seeds))];
    const size_t at = random.Uniform(name.size());
    if (random.OneIn(3)) {
      name.erase(at, 1);
    } else if (random.OneIn(2)) {
      name.insert(at, 1, static_cast<char>('0' + random.Uniform(10)));
    } else {
      name[at] = static_cast<char>(random.OneIn(2) ? random.Uniform(256) : '0' + random.Uniform(10));
    }
    const auto parsed = ParseFileName(name);
    if (!parsed) continue;
    const uint64_t n = parsed->number;
    EXPECT_TRUE(name == ManifestName(n) || name == LogName(n) || name == TableName(n) || name == FilterName(n) || name == TemporaryName(n))
        << name;
  }
}

}  // namespace
}  // namespace tamis::internal
