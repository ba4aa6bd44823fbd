// Iterators under prefixes and bounds against std::map, in databases whose rule for prefix filters changes at every reopening: whatever
// the rules of the tables that have come together, each answer is that of the map.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mem_file_system.h"
#include "base/random.h"
#include "tamis/db.h"
#include "tests/support/build_kind.h"
#include "tests/support/status_matchers.h"

namespace tamis {
namespace {

using internal::Random;
using Model = std::map<std::string, std::string>;

class PrefixModelRun {
 public:
  explicit PrefixModelRun(uint64_t seed) : random_(seed), files_(internal::NewMemFileSystem()) {
    options_.file_system = files_.get();
    options_.background_threads = 0;
    options_.memtable_bytes = 4096;
    options_.block_cache_bytes = 64 << 10;
    options_.compaction.levels = 2 + static_cast<uint32_t>(random_.Uniform(4));
    options_.compaction.size_ratio = 3;
    options_.compaction.level_base_bytes = 8 << 10;
    options_.compaction.target_file_bytes = 4096;
    options_.compaction.l0_trigger = 1 + static_cast<uint32_t>(random_.Uniform(4));
    options_.table.block_bytes = 512;
  }

  // Returns how many tables were left out on the word of a prefix filter.
  uint64_t Run(int steps) {
    Open();
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) Step();
    EXPECT_OK(db_->VerifyChecksums());
    NoteStats();
    return skipped_;
  }

 private:
  struct Held {
    Snapshot snapshot;
    Model model;
  };

  void Open() {
    options_.filter.prefix_rule = Rule();
    options_.filter.kind = kKinds[random_.Uniform(std::size(kKinds))];
    options_.filter.prefix_bits_per_key = random_.OneIn(8) ? 0 : 2.0 + static_cast<double>(random_.Uniform(20));
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, "/db");
    ASSERT_TRUE(db.ok()) << db.status();
    db_ = *std::move(db);
  }

  std::optional<FilterPrefixRule> Rule() {
    switch (random_.Uniform(5)) {
      case 0:
        return std::nullopt;
      case 1:
      case 2:
        return FilterPrefixRule{FilterPrefixKind::kFixedLength, static_cast<uint16_t>(1 + random_.Uniform(5))};
      default:
        return FilterPrefixRule{FilterPrefixKind::kDelimiter,
                                static_cast<uint16_t>(static_cast<unsigned char>(kAlphabet[random_.Uniform(sizeof kAlphabet)]))};
    }
  }

  // Few letters, among them both delimiters and both ends of the order: keys shorter than the rule, prefixes of each other, 0xff ends.
  std::string Word(size_t most) {
    std::string word;
    for (size_t n = random_.Uniform(most + 1); n > 0; --n) word.push_back(kAlphabet[random_.Uniform(sizeof kAlphabet)]);
    return word;
  }
  std::string Key() { return Word(8); }

  void Step() {
    const uint64_t dice = random_.Uniform(1000);
    if (dice < 330) {
      const std::string key = Key(), value(random_.Uniform(40), static_cast<char>('a' + random_.Uniform(26)));
      ASSERT_OK(db_->Put(key, value));
      model_[key] = value;
    } else if (dice < 480) {
      const auto some = model_.lower_bound(Key());
      if (some == model_.end()) return;
      ASSERT_OK(db_->Delete(some->first));
      model_.erase(some);
    } else if (dice < 970) {
      CompareMoves();
    } else if (dice < 980) {
      ASSERT_OK(db_->Flush());
    } else if (dice < 983) {
      ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    } else if (dice < 990) {
      TakeOrReleaseSnapshot();
    } else {
      NoteStats();
      held_.clear();
      db_.reset();
      Open();
    }
  }

  void TakeOrReleaseSnapshot() {
    if (held_.size() < 3 && random_.OneIn(2)) {
      absl::StatusOr<Snapshot> snapshot = db_->GetSnapshot();
      ASSERT_OK(snapshot);
      held_.push_back({*std::move(snapshot), model_});
    } else if (!held_.empty()) {
      held_.erase(held_.begin());
    }
  }

  void CompareMoves() {
    ReadOptions options;
    const Model* whole = &model_;
    if (!held_.empty() && random_.OneIn(3)) {
      options.snapshot = &held_[0].snapshot;
      whole = &held_[0].model;
    }
    options.use_filters = !random_.OneIn(8);
    const std::string prefix = Word(5), lower = Key(), upper = random_.OneIn(2) ? lower + Word(3) : Key();
    const bool by_prefix = random_.OneIn(2);
    if (by_prefix) {
      options.prefix = prefix;
    } else {
      if (!random_.OneIn(5)) options.lower_bound = lower;
      if (!random_.OneIn(5)) options.upper_bound = upper;
    }
    Model model;
    for (const auto& [key, value] : *whole) {
      const bool inside =
          by_prefix ? key.starts_with(prefix) : (!options.lower_bound || key >= lower) && (!options.upper_bound || key < upper);
      if (inside) model[key] = value;
    }
    SCOPED_TRACE(testing::PrintToString(by_prefix ? std::vector<std::string>{prefix} : std::vector<std::string>{lower, upper}));
    absl::StatusOr<std::unique_ptr<Iterator>> created = db_->NewIterator(options);
    ASSERT_OK(created);
    CompareMoves(**created, model, by_prefix ? prefix : lower);
  }

  void CompareMoves(Iterator& it, const Model& model, const std::string& near) {
    auto at = model.end();
    for (uint64_t moves = 1 + random_.Uniform(10); moves > 0; --moves) {
      const std::string target = random_.OneIn(2) ? near + Word(4) : Key();
      switch (at == model.end() ? random_.Uniform(4) : random_.Uniform(8)) {
        case 0:
          it.SeekToFirst();
          at = model.begin();
          break;
        case 1:
          it.SeekToLast();
          at = model.empty() ? model.end() : std::prev(model.end());
          break;
        case 2:
          it.Seek(target);
          at = model.lower_bound(target);
          break;
        case 3:
          it.SeekForPrev(target);
          at = model.upper_bound(target);
          at = at == model.begin() ? model.end() : std::prev(at);
          break;
        case 4:
        case 5:
          it.Next();
          ++at;
          break;
        default:
          it.Prev();
          at = at == model.begin() ? model.end() : std::prev(at);
      }
      ASSERT_OK(it.status());
      ASSERT_EQ(it.Valid(), at != model.end());
      if (!it.Valid()) continue;
      ASSERT_EQ(it.key(), at->first);
      ASSERT_EQ(it.value(), at->second);
    }
  }

  void NoteStats() {
    const absl::StatusOr<Stats> stats = db_->GetStats();
    ASSERT_OK(stats);
    EXPECT_EQ(stats->filters_refused, 0u);
    EXPECT_LE(stats->prefix_skipped, stats->prefix_probes);
    skipped_ += stats->prefix_skipped;
  }

  static constexpr char kAlphabet[] = {'\0', 'a', 'b', '/', '\xff'};
  static constexpr FilterKind kKinds[] = {FilterKind::kBlockedBloom, FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom,
                                          FilterKind::kClassicBloom, FilterKind::kRibbon};

  Random random_;
  std::unique_ptr<FileSystem> files_;
  Options options_;
  std::unique_ptr<DB> db_;
  Model model_;
  std::vector<Held> held_;
  uint64_t skipped_ = 0;
};

// 40 x 4,000 = 160,000 operations in a release build, about half of them iterators with some moves.
constexpr uint64_t kSeeds = testing_support::kSanitized ? 4 : 40;

TEST(PrefixModelTest, EveryAnswerIsThatOfAMapWhateverTheRules) {
  uint64_t skipped = 0;
  for (uint64_t seed = 1; seed <= kSeeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    skipped += PrefixModelRun(seed).Run(4000);
  }
  EXPECT_GT(skipped, 50 * kSeeds);  // the filters took part
}

}  // namespace
}  // namespace tamis
