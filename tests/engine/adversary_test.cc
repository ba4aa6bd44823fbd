// Keys chosen against the filters of a database whose hash seed is known.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/mem_file_system.h"
#include "tamis/db.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

constexpr uint64_t kKeys = 40'000;
constexpr uint64_t kQueries = 20'000;
constexpr double kBits = 8;

std::string Present(uint64_t i) { return "present-" + std::to_string(i); }
// Between present keys, so that no fence answers for the filters.
std::string Absent(uint64_t i) { return "present-" + std::to_string(i % kKeys) + "-" + std::to_string(i); }

// All keys in one table of the last level.
std::unique_ptr<DB> Load(FileSystem* files, std::optional<uint64_t> seed) {
  Options options;
  options.file_system = files;
  options.background_threads = 0;
  options.filter.allocation = FilterAllocation::kUniform;
  options.filter.bits_per_key = kBits;
  options.filter.hash_seed = seed;
  auto db = DB::Open(options, "/db");
  EXPECT_OK(db.status());
  for (uint64_t i = 0; i < kKeys; ++i) EXPECT_OK((*db)->Put(Present(i), "value"));
  EXPECT_OK((*db)->CompactRange(std::nullopt, std::nullopt));
  return *std::move(db);
}

// What whoever knows seed, keys and settings can do without touching the database: build the same filter and keep what passes.
std::vector<std::string> KeysChosenAgainst(uint64_t seed) {
  auto builder = FilterBuilder::Create({.bits_per_key = kBits, .seed = seed}).value();
  for (uint64_t i = 0; i < kKeys; ++i) builder->AddHash(FilterKeyHash(Present(i), seed));
  const FilterBytes bytes = builder->Finish().value();
  const FilterView filter = FilterView::Open(bytes.view(), {}).value();
  std::vector<std::string> chosen;
  for (uint64_t i = 0; chosen.size() < kQueries; ++i) {
    if (filter.MayContain(FilterKeyHash(Absent(i), seed))) chosen.push_back(Absent(i));
  }
  return chosen;
}

struct Outcome {
  double observed = 0;
  double predicted = 0;
};

Outcome Ask(DB* db, const std::vector<std::string>& keys) {
  std::string value;
  for (const std::string& key : keys) EXPECT_CODE(db->Get(key, &value), absl::StatusCode::kNotFound);
  const Stats stats = db->GetStats().value();
  const LevelStats& last = stats.levels.back();
  EXPECT_EQ(last.skipped + last.false_positives, keys.size());
  return {.observed = last.observed_fpr, .predicted = last.predicted_fpr};
}

TEST(Adversary, KeysChosenWithTheSeedPassAlmostAllAndWithAnotherSeedAsPredicted) {
  const std::vector<std::string> chosen = KeysChosenAgainst(7);
  const auto files = internal::NewMemFileSystem();
  std::unique_ptr<DB> known = Load(files.get(), 7);
  EXPECT_EQ(known->GetProperty("tamis.hash-seed"), "7");  // readable by whoever can read the files
  EXPECT_GT(Ask(known.get(), chosen).observed, .99);

  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(8), std::optional<uint64_t>()}) {  // the last drawn at random
    const auto others = internal::NewMemFileSystem();
    std::unique_ptr<DB> other = Load(others.get(), seed);
    const Outcome outcome = Ask(other.get(), chosen);
    const double expected = outcome.predicted * static_cast<double>(kQueries);
    ASSERT_GT(expected, 400);
    EXPECT_NEAR(outcome.observed * static_cast<double>(kQueries), expected, 5 * std::sqrt(expected) + .05 * expected)
        << "seed " << other->GetProperty("tamis.hash-seed").value();
  }
}

}  // namespace
}  // namespace tamis
