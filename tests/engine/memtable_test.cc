#include "engine/memtable/memtable.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace tamis::internal {
namespace {

struct Written {
  EntryKind kind;
  std::string value;
};

// (key, ~sequence): orders as internal keys do.
using ModelKey = std::pair<std::string, uint64_t>;
using Model = std::map<ModelKey, Written>;
ModelKey At(const std::string& key, SequenceNumber sequence) { return {key, ~sequence}; }

class MemtableTest : public testing::Test {
 protected:
  void Add(const std::string& key, const std::string& value, EntryKind kind = EntryKind::kPut) {
    ++sequence_;
    memtable_->Add(sequence_, kind, key, value);
    model_[At(key, sequence_)] = {kind, value};
  }

  void ExpectGet(const std::string& key, SequenceNumber sequence) {
    const Memtable::Lookup got = memtable_->Get(key, sequence);
    const auto at = model_.lower_bound(At(key, sequence));
    if (at == model_.end() || at->first.first != key) {
      EXPECT_EQ(got.state, LookupState::kAbsent) << testing::PrintToString(key) << " @" << sequence;
      return;
    }
    EXPECT_EQ(got.state, at->second.kind == EntryKind::kDelete ? LookupState::kDeleted : LookupState::kFound);
    EXPECT_EQ(got.sequence, ~at->first.second);
    EXPECT_EQ(got.value, at->second.value);
  }

  void ExpectAt(const Cursor& cursor, Model::const_iterator at) {
    EXPECT_TRUE(cursor.status().ok());
    ASSERT_EQ(cursor.Valid(), at != model_.end());
    if (!cursor.Valid()) return;
    ASSERT_EQ(cursor.key(), at->first.first);
    ASSERT_EQ(cursor.sequence(), ~at->first.second);
    ASSERT_EQ(cursor.kind(), at->second.kind);
    ASSERT_EQ(cursor.value(), at->second.value);
  }

  // A walk of `steps` random moves, each compared with the model.
  void WalkRandomly(Random* random, int steps, const std::vector<std::string>& targets) {
    std::unique_ptr<Cursor> cursor = memtable_->NewCursor(memtable_);
    Model::const_iterator at = model_.end();
    EXPECT_FALSE(cursor->Valid());
    for (int i = 0; i < steps; ++i) {
      const std::string& key = targets[random->Uniform(targets.size())];
      const SequenceNumber sequence = random->OneIn(4) ? kMaxSequence * random->Uniform(2) : random->Uniform(sequence_ + 2);
      const uint64_t move = random->Uniform(20);
      if (move == 0) {
        cursor->SeekToFirst();
        at = model_.begin();
      } else if (move == 1) {
        cursor->SeekToLast();
        at = model_.empty() ? model_.end() : std::prev(model_.end());
      } else if (move <= 4) {
        cursor->Seek(key, sequence);
        at = model_.lower_bound(At(key, sequence));
      } else if (move <= 7) {
        cursor->SeekForPrev(key, sequence);
        at = model_.upper_bound(At(key, sequence));
        at = at == model_.begin() ? model_.end() : std::prev(at);
      } else if (cursor->Valid() && random->OneIn(2)) {
        for (uint64_t n = 1 + random->Uniform(5); n > 0 && cursor->Valid(); --n, ++at) cursor->Next();
      } else if (cursor->Valid()) {
        for (uint64_t n = 1 + random->Uniform(5); n > 0 && cursor->Valid(); --n) {
          cursor->Prev();
          at = at == model_.begin() ? model_.end() : std::prev(at);
        }
      }
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, at)) << "step " << i << ", move " << move;
    }
  }

  std::shared_ptr<Memtable> memtable_ = std::make_shared<Memtable>();
  SequenceNumber sequence_ = 0;
  Model model_;
};

TEST_F(MemtableTest, EmptyMemtableHasNothing) {
  ExpectGet("", kMaxSequence);
  ExpectGet("a", kMaxSequence);
  Random random(1);
  WalkRandomly(&random, 100, {"", "a", "b"});
  EXPECT_EQ(memtable_->entries(), 0u);
  EXPECT_EQ(memtable_->deletes(), 0u);
  EXPECT_EQ(memtable_->first_sequence(), 0u);
  EXPECT_EQ(memtable_->last_sequence(), 0u);
}

TEST_F(MemtableTest, EmptyKeyAndEmptyValueAreFound) {
  Add("", "x");
  Add("a", "");
  Add("", "");
  for (SequenceNumber s = 0; s <= 4; ++s) {
    ExpectGet("", s);
    ExpectGet("a", s);
  }
  EXPECT_EQ(memtable_->Get("a", 3).state, LookupState::kFound);
  Add("", "", EntryKind::kDelete);
  EXPECT_EQ(memtable_->Get("", 4).state, LookupState::kDeleted);
  EXPECT_EQ(memtable_->Get("", 3).state, LookupState::kFound);
  std::unique_ptr<Cursor> cursor = memtable_->NewCursor(memtable_);
  cursor->Seek("", kMaxSequence);
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->key(), "");
  EXPECT_EQ(cursor->kind(), EntryKind::kDelete);
}

TEST_F(MemtableTest, DeletesAreEntriesAndAreCounted) {
  sequence_ = 10;
  Add("k", "1");
  Add("k", "", EntryKind::kDelete);
  Add("gone", "", EntryKind::kDelete);
  EXPECT_EQ(memtable_->entries(), 3u);
  EXPECT_EQ(memtable_->deletes(), 2u);
  EXPECT_EQ(memtable_->first_sequence(), 11u);
  EXPECT_EQ(memtable_->last_sequence(), 13u);
  EXPECT_EQ(memtable_->Get("k", 10).state, LookupState::kAbsent);
  EXPECT_EQ(memtable_->Get("k", 11).state, LookupState::kFound);
  EXPECT_EQ(memtable_->Get("k", 12).state, LookupState::kDeleted);
  EXPECT_EQ(memtable_->Get("gone", kMaxSequence).state, LookupState::kDeleted);
}

TEST_F(MemtableTest, RandomVersionsOfSharedPrefixesMatchTheModel) {
  for (const uint64_t letters : {1, 2, 4, 30}) {
    for (const uint64_t longest : {4, 12, 40}) {
      SCOPED_TRACE(testing::Message() << letters << " letters, up to " << longest << " bytes");
      memtable_ = std::make_shared<Memtable>();
      model_.clear();
      sequence_ = 0;
      Random random(letters * 1000 + longest);
      std::vector<std::string> keys;
      for (int i = 0; i < 600; ++i) {
        std::string key;
        for (uint64_t n = random.Uniform(longest + 1); n > 0; --n) key.push_back(static_cast<char>(random.Uniform(letters) * 85));
        keys.push_back(key);
      }
      for (int i = 0; i < 1200; ++i) {
        const std::string& key = keys[random.Uniform(400)];  // the other 200 are asked for only
        if (random.OneIn(4)) {
          Add(key, "", EntryKind::kDelete);
        } else {
          Add(key, std::string(random.Uniform(20), static_cast<char>('a' + i % 26)));
        }
      }
      for (const std::string& key : keys) {
        for (int i = 0; i < 20; ++i) ExpectGet(key, random.Uniform(sequence_ + 2));
        ExpectGet(key, kMaxSequence);
      }
      WalkRandomly(&random, 3000, keys);
    }
  }
}

TEST_F(MemtableTest, EverySequenceOfEveryKeyIsReadable) {
  Random random(7);
  const std::vector<std::string> keys = {"", "a", "ab", "abc", std::string("\0", 1), std::string("a\0", 2), "\xff", "\xff\xff"};
  for (int i = 0; i < 400; ++i) Add(keys[random.Uniform(keys.size())], std::to_string(i));
  for (const std::string& key : keys) {
    for (SequenceNumber s = 0; s <= sequence_ + 1; ++s) ExpectGet(key, s);
  }
  WalkRandomly(&random, 20000, keys);
}

TEST_F(MemtableTest, KeysOfAllLengthsUpToTheLimit) {
  std::vector<std::string> keys;
  for (size_t n = 0; n <= 1100; ++n) keys.push_back(std::string(n, 'k'));
  for (const size_t n : {4095u, 4096u, 4097u, 65534u, 65535u}) {
    keys.push_back(std::string(n, 'k'));
    keys.push_back(std::string(n - 1, 'k') + 'l');
    keys.push_back('j' + std::string(n - 1, '\xff'));
  }
  Random random(71);
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Uniform(i)]);
  for (const std::string& key : keys) Add(key, std::string(random.OneIn(2) ? 100 : 0, 'v'));
  for (const std::string& key : keys) ExpectGet(key, kMaxSequence);
  ExpectGet(std::string(65535, 'x'), kMaxSequence);
  ExpectGet(std::string(65533, 'k'), kMaxSequence);
  WalkRandomly(&random, 3000, keys);
}

TEST_F(MemtableTest, HotKeyIsScannedBackwardsWithoutQuadraticCost) {
  for (int i = 0; i < 200'000; ++i) Add("hot", "");
  std::unique_ptr<Cursor> cursor = memtable_->NewCursor(memtable_);
  uint64_t met = 0;
  for (cursor->SeekToLast(); cursor->Valid(); cursor->Prev()) ASSERT_EQ(cursor->sequence(), ++met);
  EXPECT_EQ(met, 200'000u);
  ExpectGet("hot", 0);
  ExpectGet("hot", 1);
  ExpectGet("hot", 77'777);
}

TEST_F(MemtableTest, CursorKeepsTheMemtableAlive) {
  Add("a", "1");
  Add("b", "2");
  std::unique_ptr<Cursor> cursor = memtable_->NewCursor(memtable_);
  memtable_.reset();
  cursor->SeekToLast();
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->value(), "2");
}

TEST_F(MemtableTest, CursorIsUndisturbedByLaterEntries) {
  for (const char* key : {"1", "2", "3", "4", "5"}) Add(key, "old");
  const SequenceNumber visible = sequence_;
  std::unique_ptr<Cursor> cursor = memtable_->NewCursor(memtable_);
  cursor->SeekToLast();
  for (int i = 0; i < 256; ++i) Add(std::string("3") + static_cast<char>(i), "new");
  for (int i = 0; i < 256; ++i) Add(std::string(1, static_cast<char>(i)), "new");
  // Both ways over what was visible; newer entries in between are skipped, as an iterator over a snapshot does.
  std::string met;
  for (; cursor->Valid(); cursor->Prev()) {
    if (cursor->sequence() <= visible) met += cursor->key();
  }
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) {
    if (cursor->sequence() <= visible) met += cursor->key();
  }
  EXPECT_EQ(met, "5432112345");
}

TEST_F(MemtableTest, ReserveThenAddTakesNoFootprint) {
  Random random(11);
  for (int batch = 0; batch < 300; ++batch) {
    const uint64_t count = 1 + random.Uniform(200);
    std::vector<std::pair<std::string, std::string>> writes;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key;
      for (uint64_t n = random.Uniform(6); n > 0; --n) key.push_back(static_cast<char>(random.Uniform(64)));
      writes.emplace_back(key, std::string(random.OneIn(100) ? 100'000 : random.Uniform(200), 'v'));
      bytes += writes.back().first.size() + writes.back().second.size();
    }
    ASSERT_TRUE(memtable_->Reserve(count, bytes));
    const uint64_t footprint = memtable_->footprint_bytes();
    for (const auto& [key, value] : writes) Add(key, value);
    ASSERT_EQ(memtable_->footprint_bytes(), footprint);
    ASSERT_LE(memtable_->used_bytes(), footprint);
  }
  EXPECT_FALSE(memtable_->Reserve(UINT64_MAX, UINT64_MAX));
}

// One writer beside readers that ask for published keys only, and cursors that must be sorted and complete up to the sequence they read
// first. Sequence s writes key s % kKeys of a permutation, so each key gets several versions.
class MemtableConcurrencyTest : public testing::Test {
 protected:
  static constexpr uint64_t kRounds = 3;

  // Keys that take the tree through all its changes: dense bytes (growth up to 256), prefixes of one another, late forks of prefixes.
  static std::vector<std::string> MakeKeys(uint64_t count) {
    std::map<std::string, int> unique;
    Random random(31);
    while (unique.size() < count) {
      std::string key = random.OneIn(2) ? "a shared prefix of the keys/" : "";
      for (uint64_t n = random.Uniform(10); n > 0; --n)
        key.push_back(static_cast<char>(random.OneIn(2) ? random.Uniform(3) : random.Uniform(256)));
      unique.emplace(std::move(key), 0);
    }
    std::vector<std::string> keys;
    for (auto& [key, unused] : unique) keys.push_back(key);
    for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Uniform(i)]);
    return keys;
  }

  void Write() {
    for (SequenceNumber s = 1; s <= keys_.size() * kRounds; ++s) {
      const EntryKind kind = s % 7 == 0 ? EntryKind::kDelete : EntryKind::kPut;
      memtable_.Add(s, kind, keys_[s % keys_.size()], std::to_string(s));
      visible_.store(s, std::memory_order_release);
      if (s % (keys_.size() / 8) == 0) WaitForReaders();
    }
    done_.store(true, std::memory_order_release);
  }

  // On a busy machine the writer could be through before a reader has run at all.
  void WaitForReaders() const {
    const uint64_t reads = reads_;
    const uint64_t scans = scans_;
    while (reads_ < reads + 10 || scans_ == scans) std::this_thread::yield();
  }

  void ReadPoints(uint64_t seed) {
    Random random(seed);
    while (!done_.load(std::memory_order_acquire)) {
      const SequenceNumber visible = visible_.load(std::memory_order_acquire);
      if (visible == 0) continue;
      // The newest write of a random written key at or below `visible`.
      const SequenceNumber wanted = visible - random.Uniform(std::min<uint64_t>(visible, keys_.size()));
      const Memtable::Lookup got = memtable_.Get(keys_[wanted % keys_.size()], visible);
      const LookupState state = wanted % 7 == 0 ? LookupState::kDeleted : LookupState::kFound;
      if (got.state != state || got.sequence != wanted || got.value != std::to_string(wanted)) ++errors_;
      ++reads_;
    }
  }

  void ReadInOrder(uint64_t seed) {
    Random random(seed);
    while (!done_.load(std::memory_order_acquire)) {
      const SequenceNumber visible = visible_.load(std::memory_order_acquire);
      std::unique_ptr<Cursor> cursor = memtable_.NewCursor(nullptr);
      uint64_t met = 0;
      std::string last_key;
      SequenceNumber last_sequence = 0;
      bool first = true;
      const bool forward = random.OneIn(2);
      for (forward ? cursor->SeekToFirst() : cursor->SeekToLast(); cursor->Valid(); forward ? cursor->Next() : cursor->Prev()) {
        const int order = first ? -1 : CompareInternalKeys(last_key, last_sequence, cursor->key(), cursor->sequence());
        if (!first && (forward ? order >= 0 : order <= 0)) ++errors_;
        first = false;
        last_key = cursor->key();
        last_sequence = cursor->sequence();
        if (cursor->value() != std::to_string(cursor->sequence())) ++errors_;
        if (cursor->sequence() <= visible) ++met;
      }
      if (met != visible) ++errors_;
      ++scans_;
    }
  }

  void ReadBySeeks(uint64_t seed) {
    Random random(seed);
    std::unique_ptr<Cursor> cursor = memtable_.NewCursor(nullptr);
    while (!done_.load(std::memory_order_acquire)) {
      const SequenceNumber visible = visible_.load(std::memory_order_acquire);
      if (visible == 0) continue;
      const SequenceNumber wanted = visible - random.Uniform(std::min<uint64_t>(visible, keys_.size()));
      const std::string& key = keys_[wanted % keys_.size()];
      cursor->Seek(key, visible);
      if (!cursor->Valid() || cursor->key() != key || cursor->sequence() != wanted) ++errors_;
      cursor->SeekForPrev(key, wanted);
      if (!cursor->Valid() || cursor->key() != key || cursor->sequence() != wanted) ++errors_;
      ++reads_;
    }
  }

  std::vector<std::string> keys_ = MakeKeys(20'000);
  Memtable memtable_;
  std::atomic<SequenceNumber> visible_{0};
  std::atomic<bool> done_{false};
  std::atomic<uint64_t> errors_{0};
  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> scans_{0};
};

TEST_F(MemtableConcurrencyTest, ReadersLoseNothingThatWasPublished) {
  std::vector<std::thread> readers;
  readers.emplace_back([this] { ReadPoints(1); });
  readers.emplace_back([this] { ReadPoints(2); });
  readers.emplace_back([this] { ReadInOrder(3); });
  readers.emplace_back([this] { ReadInOrder(4); });
  readers.emplace_back([this] { ReadBySeeks(5); });
  Write();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(errors_, 0u);
  EXPECT_EQ(memtable_.entries(), keys_.size() * kRounds);
  std::unique_ptr<Cursor> cursor = memtable_.NewCursor(nullptr);
  uint64_t met = 0;
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) ++met;
  EXPECT_EQ(met, keys_.size() * kRounds);
}

}  // namespace
}  // namespace tamis::internal
