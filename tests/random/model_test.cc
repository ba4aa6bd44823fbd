// A database against std::map: random operations under many settings, with snapshots, bounds, both directions and reopening. Every
// answer is compared. A failure prints the setting and the seed; TAMIS_MODEL_SEED and TAMIS_MODEL_OPERATIONS rerun and lengthen.
#include <gtest/gtest.h>

#include <cstdlib>
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

struct Setting {
  const char* name;
  Options options;
  uint32_t keys;         // distinct keys to draw from
  uint32_t value_bytes;  // at most
};

class ModelRun {
 public:
  ModelRun(const Setting& setting, uint64_t seed) : setting_(setting), random_(seed), files_(internal::NewMemFileSystem()) {
    setting_.options.file_system = files_.get();
  }

  void Run(int operations) {
    Open();
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) Step();
    CompareAll(model_, nullptr);
    for (Held& held : held_) CompareAll(held.model, &held.snapshot);
    held_.clear();
    ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    CompareAll(model_, nullptr);
    ASSERT_OK(db_->VerifyChecksums());
    ASSERT_OK(db_->Close());
  }

 private:
  struct Held {
    Snapshot snapshot;
    Model model;
  };

  void Open() {
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(setting_.options, "/db");
    ASSERT_TRUE(db.ok()) << db.status();
    db_ = *std::move(db);
  }

  std::string Key() {
    const uint64_t n = random_.Uniform(setting_.keys);
    switch (n % 5) {  // short ones, prefixes of others, NULs and 0xff among them
      case 0: return std::string(n % 7, 'a');
      case 1: return "common-prefix-" + std::to_string(n);
      case 2: return std::string("\0\xff", 2) + std::to_string(n / 100);
      case 3: return std::to_string(n) + std::string(n % 3, '\0');
      default: return std::to_string(n * 7919);
    }
  }
  std::string Value() { return std::string(random_.Uniform(setting_.value_bytes + 1), static_cast<char>(random_.Next())); }

  void Step() {
    const uint64_t dice = random_.Uniform(1000);
    if (dice < 350) {
      const std::string key = Key(), value = Value();
      ASSERT_OK(db_->Put({.sync = random_.OneIn(20)}, key, value));
      model_[key] = value;
    } else if (dice < 480) {
      const std::string key = Key();
      ASSERT_OK(db_->Delete(key));
      model_.erase(key);
    } else if (dice < 530) {
      WriteRandomBatch();
    } else if (dice < 850) {
      CompareGet();
    } else if (dice < 890) {
      CompareMultiGet();
    } else if (dice < 984) {
      CompareMoves();
    } else if (dice < 988) {
      TakeOrReleaseSnapshot();
    } else if (dice < 991) {
      CompareAll(model_, nullptr);
    } else if (dice < 994) {
      ASSERT_OK(db_->Flush());
    } else if (dice < 996) {
      CompactSomewhere();
    } else if (dice < 998) {
      Reopen();
    } else {
      CompareReadOnly();
    }
  }

  void WriteRandomBatch() {
    WriteBatch batch;
    for (uint64_t i = random_.Uniform(8); i > 0; --i) {
      const std::string key = Key();
      if (random_.OneIn(3)) {
        batch.Delete(key);
        model_.erase(key);
      } else {
        const std::string value = Value();
        batch.Put(key, value);
        model_[key] = value;
      }
    }
    ASSERT_OK(db_->Write({.sync = random_.OneIn(10)}, batch));
  }

  // A state to read from: now, or one of the snapshots.
  const Model& ChooseState(ReadOptions* options) {
    options->use_filters = !random_.OneIn(5);
    options->fill_cache = !random_.OneIn(5);
    if (held_.empty() || !random_.OneIn(3)) return model_;
    const Held& held = held_[random_.Uniform(held_.size())];
    options->snapshot = &held.snapshot;
    return held.model;
  }

  void CompareGet() {
    ReadOptions options;
    const Model& model = ChooseState(&options);
    const std::string key = Key();
    const auto expected = model.find(key);
    if (random_.OneIn(2)) {
      std::string value = "untouched";
      const absl::Status status = db_->Get(options, key, &value);
      if (expected == model.end()) {
        ASSERT_TRUE(absl::IsNotFound(status)) << status;
        ASSERT_EQ(value, "untouched");
      } else {
        ASSERT_OK(status);
        ASSERT_EQ(value, expected->second);
      }
    } else {
      const absl::Status status = db_->Get(options, key, &pinned_);
      ASSERT_EQ(status.ok(), expected != model.end()) << status;
      if (status.ok()) {
        ASSERT_EQ(pinned_.view(), expected->second);
      }
    }
    const absl::StatusOr<bool> may = db_->MayExist(options, key);
    ASSERT_OK(may);
    if (expected != model.end()) {
      ASSERT_TRUE(*may);
    }
  }

  void CompareMultiGet() {
    ReadOptions options;
    const Model& model = ChooseState(&options);
    const size_t count = random_.Uniform(70);
    std::vector<std::string> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(Key());
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<PinnedValue> values(count);
    std::vector<absl::Status> statuses(count);
    db_->MultiGet(options, views, absl::MakeSpan(values), absl::MakeSpan(statuses));
    for (size_t i = 0; i < count; ++i) {
      const auto expected = model.find(keys[i]);
      ASSERT_EQ(statuses[i].ok(), expected != model.end()) << statuses[i];
      if (statuses[i].ok()) {
        ASSERT_EQ(values[i].view(), expected->second);
      }
    }
  }

  void CompareMoves() {
    ReadOptions options;
    const Model& whole = ChooseState(&options);
    const std::string lower = Key(), upper = Key();
    if (random_.OneIn(3)) options.lower_bound = lower;
    if (random_.OneIn(3)) options.upper_bound = upper;
    Model model;
    for (const auto& [key, value] : whole) {
      if ((!options.lower_bound || key >= *options.lower_bound) && (!options.upper_bound || key < *options.upper_bound)) model[key] = value;
    }
    absl::StatusOr<std::unique_ptr<Iterator>> created = db_->NewIterator(options);
    ASSERT_OK(created);
    Iterator& it = **created;
    auto at = model.end();
    for (uint64_t moves = 1 + random_.Uniform(12); moves > 0; --moves) {
      const std::string target = Key();
      const uint64_t move = at == model.end() ? random_.Uniform(4) : random_.Uniform(8);
      if (move == 0) {
        it.SeekToFirst();
        at = model.begin();
      } else if (move == 1) {
        it.SeekToLast();
        at = model.empty() ? model.end() : std::prev(model.end());
      } else if (move == 2) {
        it.Seek(target);
        at = model.lower_bound(target);
      } else if (move == 3) {
        it.SeekForPrev(target);
        at = model.upper_bound(target);
        at = at == model.begin() ? model.end() : std::prev(at);
      } else if (move < 6) {
        it.Next();
        ++at;
      } else {
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

  void CompareAll(const Model& model, const Snapshot* snapshot) {
    ReadOptions options;
    options.snapshot = snapshot;
    CompareScan(*db_, options, model);
  }

  void CompareScan(DB& db, const ReadOptions& options, const Model& model) {
    absl::StatusOr<std::unique_ptr<Iterator>> created = db.NewIterator(options);
    ASSERT_OK(created);
    Iterator& it = **created;
    auto expected = model.begin();
    for (it.SeekToFirst(); it.Valid(); it.Next(), ++expected) {
      ASSERT_NE(expected, model.end());
      ASSERT_EQ(it.key(), expected->first);
      ASSERT_EQ(it.value(), expected->second);
    }
    ASSERT_OK(it.status());
    ASSERT_EQ(expected, model.end());
    auto reverse = model.rbegin();
    for (it.SeekToLast(); it.Valid(); it.Prev(), ++reverse) {
      ASSERT_NE(reverse, model.rend());
      ASSERT_EQ(it.key(), reverse->first);
      ASSERT_EQ(it.value(), reverse->second);
    }
    ASSERT_OK(it.status());
    ASSERT_EQ(reverse, model.rend());
  }

  void TakeOrReleaseSnapshot() {
    if (held_.size() < 4 && random_.OneIn(2)) {
      absl::StatusOr<Snapshot> snapshot = db_->GetSnapshot();
      ASSERT_OK(snapshot);
      held_.push_back({*std::move(snapshot), model_});
    } else if (!held_.empty()) {
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(random_.Uniform(held_.size())));
    }
  }

  void CompactSomewhere() {
    std::string begin = Key(), end = Key();
    if (end < begin) std::swap(begin, end);
    std::optional<std::string_view> from, to;
    if (!random_.OneIn(3)) from = begin;
    if (!random_.OneIn(3)) to = end;
    ASSERT_OK(db_->CompactRange(from, to));
  }

  void Reopen() {
    held_.clear();
    pinned_.Reset();
    if (random_.OneIn(2)) ASSERT_OK(db_->Close());
    db_.reset();
    Open();
    if (db_ != nullptr) CompareAll(model_, nullptr);
  }

  void CompareReadOnly() {
    Options options = setting_.options;
    options.read_only = true;
    absl::StatusOr<std::unique_ptr<DB>> reader = DB::Open(options, "/db");
    ASSERT_OK(reader);
    CompareScan(**reader, {}, model_);
  }

  Setting setting_;
  Random random_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<DB> db_;
  Model model_;
  std::vector<Held> held_;
  PinnedValue pinned_;
};

Options Small(uint64_t memtable, uint32_t levels, uint32_t ratio, uint32_t threads) {
  Options options;
  options.memtable_bytes = memtable;
  options.background_threads = threads;
  options.block_cache_bytes = 256 << 10;
  options.compaction.levels = levels;
  options.compaction.size_ratio = ratio;
  options.compaction.level_base_bytes = 16 << 10;
  options.compaction.target_file_bytes = 8 << 10;
  options.table.block_bytes = 512;
  options.max_open_files = 16;
  return options;
}

std::vector<Setting> Settings() {
  std::vector<Setting> all;
  all.push_back({"TinyInline", Small(4096, 7, 4, 0), 500, 60});
  all.push_back({"TwoLevels", Small(8192, 2, 2, 0), 800, 40});
  all.push_back({"ThreeLevelsRatioTwo", Small(8192, 3, 2, 0), 1500, 100});
  all.push_back({"OneThread", Small(16384, 5, 4, 1), 1000, 80});
  all.push_back({"TwoThreads", Small(16384, 7, 3, 2), 2000, 80});
  all.push_back({"LargeValues", Small(32768, 6, 4, 0), 300, 3000});
  all.push_back({"NoFilterNoCache", Small(8192, 7, 4, 0), 500, 60});
  all.back().options.filter.kind = FilterKind::kNone;
  all.back().options.block_cache_bytes = 0;
  all.push_back({"PerLevelFiltersTwoThreads", Small(8192, 7, 4, 2), 1500, 60});
  all.back().options.filter.allocation = FilterAllocation::kPerLevel;
  all.back().options.filter.bits_per_level = {16, 14, 12, 8, 4, 0};
  all.push_back({"UncompressedFewL0ThreeThreads", Small(8192, 7, 10, 3), 1500, 60});
  all.back().options.table.compression = Compression::kNone;
  all.back().options.compaction.l0_trigger = 2;
  all.back().options.compaction.l0_slowdown = 3;
  all.back().options.compaction.l0_stop = 4;
  all.back().options.max_immutable_memtables = 1;
  all.push_back({"DefaultThreadsSmallMemtable", Options(), 3000, 100});
  all.back().options.memtable_bytes = 64 << 10;
  return all;
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

// 11 x 10 settings x 20,000 = 2.2 million operations in a release build.
constexpr int kOperationsPerSeed = 20000;
constexpr uint64_t kSeeds = testing_support::kSanitized ? 1 : 11;

class ModelTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ModelTest, EveryAnswerIsThatOfAMap) {
  const Setting setting = Settings()[GetParam()];
  const uint64_t first = FromEnvironment("TAMIS_MODEL_SEED", 1);
  const int operations = static_cast<int>(FromEnvironment("TAMIS_MODEL_OPERATIONS", kOperationsPerSeed));
  for (uint64_t seed = first; seed < first + kSeeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("setting " + std::string(setting.name) + ", seed " + std::to_string(seed));
    ModelRun(setting, seed).Run(operations);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ModelTest, ::testing::Range<size_t>(0, Settings().size()),
                         [](const auto& info) { return std::string(Settings()[info.param].name); });

}  // namespace
}  // namespace tamis
