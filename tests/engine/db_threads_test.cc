// Databases used by many threads at once, with memtables so small that flushes, compactions and log changes go on all the time. Made for
// ThreadSanitizer, and true without it. Threads note failures as they happen; each test also checks the state that is left.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mem_file_system.h"
#include "base/random.h"
#include "tests/support/build_kind.h"
#include "tests/support/database_test_util.h"

namespace tamis {
namespace {

using internal::Random;
using testing_support::Contents;
using testing_support::Key;

constexpr bool kSanitized = testing_support::kSanitized;

struct Setting {
  const char* name;
  bool in_memory;
  uint32_t background_threads;
};

// Numbers as values, padded so that some ten of them fill a data block.
std::string ValueOf(uint64_t number) {
  std::string value = std::to_string(number) + "/";
  value.resize(60, 'v');
  return value;
}

class DbThreadsTest : public ::testing::TestWithParam<Setting> {
 protected:
  DbThreadsTest() {
    if (GetParam().in_memory) files_ = internal::NewMemFileSystem();
    options_ = testing_support::SmallOptions();
    options_.file_system = files_.get();
    options_.background_threads = GetParam().background_threads;
    options_.memtable_bytes = 16 << 10;
    options_.max_open_files = 16;
    path_ = files_ ? "/db" : directory_.path() + "/db";
    Open();
  }
  void Open() {
    db_.reset();
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, path_);
    ASSERT_OK(db);
    db_ = *std::move(db);
  }

  void Start(std::function<void()> run) { threads_.emplace_back(std::move(run)); }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // nullopt: not there.
  static std::optional<uint64_t> NumberAt(const DB& db, const std::string& key, const ReadOptions& options = {}) {
    const std::optional<std::string> value = testing_support::GetOr(db, key, options);
    return value ? std::optional<uint64_t>(std::stoull(*value)) : std::nullopt;
  }

  const testing_support::TempDir directory_;
  std::unique_ptr<FileSystem> files_;
  Options options_;
  std::string path_;
  std::unique_ptr<DB> db_;
  std::vector<std::thread> threads_;
};

TEST_P(DbThreadsTest, WhatAThreadPutItReadsBackAndOthersReadNothingOlder) {
  constexpr size_t kThreads = 8, kKeys = 24;
  constexpr uint64_t kPuts = kSanitized ? 600 : 4000;
  std::array<std::array<std::atomic<uint64_t>, kKeys>, kThreads> acknowledged{};
  const auto key_of = [](size_t thread, size_t key) { return Key(key * kThreads + thread); };
  for (size_t me = 0; me < kThreads; ++me) {
    Start([&, me] {
      Random random(me + 1);
      for (uint64_t number = 1; number <= kPuts && !HasFailure(); ++number) {
        const size_t mine = random.Uniform(kKeys);
        EXPECT_OK(db_->Put({.sync = random.OneIn(100)}, key_of(me, mine), ValueOf(number)));
        acknowledged[me][mine].store(number);
        EXPECT_EQ(NumberAt(*db_, key_of(me, mine)), number);
        const size_t whose = random.Uniform(kThreads), theirs = random.Uniform(kKeys);
        const uint64_t least = acknowledged[whose][theirs].load();
        EXPECT_GE(NumberAt(*db_, key_of(whose, theirs)).value_or(0), least);
      }
    });
  }
  Join();
  for (int reopened = 0; reopened < 2; ++reopened) {
    for (size_t thread = 0; thread < kThreads; ++thread) {
      for (size_t key = 0; key < kKeys; ++key) {
        ASSERT_EQ(NumberAt(*db_, key_of(thread, key)).value_or(0), acknowledged[thread][key].load());
      }
    }
    ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
    EXPECT_EQ(stats.last_sequence, kThreads * kPuts);
    Open();
  }
}

TEST_P(DbThreadsTest, ABatchIsSeenWholeByMultiGetIteratorsAndSnapshots) {
  constexpr uint64_t kPairs = 40, kBatches = kSanitized ? 500 : 4000;
  constexpr size_t kWriters = 4, kReaders = 3;
  // The halves of a pair lie at the two ends of the key space, so that they are in different tables and blocks.
  const auto left = [](uint64_t pair) { return Key(pair, "a"); };
  const auto right = [](uint64_t pair) { return Key(pair, "z"); };
  std::atomic<size_t> writers_left{kWriters};
  for (size_t me = 0; me < kWriters; ++me) {
    Start([&, me] {
      Random random(me + 1);
      for (uint64_t i = 0; i < kBatches && !HasFailure(); ++i) {
        const uint64_t pair = random.Uniform(kPairs), number = me * kBatches + i;
        WriteBatch batch;
        if (random.OneIn(10)) {
          batch.Delete(left(pair));
          batch.Put(Key(random.Uniform(1000), "m"), ValueOf(number));
          batch.Delete(right(pair));
        } else {
          batch.Put(left(pair), ValueOf(number));
          batch.Put(right(pair), ValueOf(number));
        }
        EXPECT_OK(db_->Write({.sync = random.OneIn(200)}, batch));
      }
      --writers_left;
    });
  }
  for (size_t me = 0; me < kReaders; ++me) {
    Start([&, me] {
      Random random(100 + me);
      std::vector<PinnedValue> values(2 * kPairs);
      std::vector<absl::Status> statuses(2 * kPairs);
      while (writers_left.load() != 0 && !HasFailure()) {
        std::vector<std::string> keys;
        for (uint64_t pair = 0; pair < kPairs; ++pair) keys.push_back(left(pair)), keys.push_back(right(pair));
        const std::vector<std::string_view> views(keys.begin(), keys.end());
        db_->MultiGet({}, views, absl::MakeSpan(values), absl::MakeSpan(statuses));
        for (uint64_t i = 0; i < 2 * kPairs; i += 2) {
          EXPECT_EQ(statuses[i].code(), statuses[i + 1].code());
          if (statuses[i].ok() && statuses[i + 1].ok()) {
            EXPECT_EQ(values[i].view(), values[i + 1].view());
          }
        }
        const Contents all = testing_support::ReadAll(*db_);
        ASSERT_OK_AND_ASSIGN(const Snapshot snapshot, db_->GetSnapshot());
        ReadOptions held;
        held.snapshot = &snapshot;
        for (uint64_t pair = 0; pair < kPairs; ++pair) {
          const auto l = all.find(left(pair)), r = all.find(right(pair));
          EXPECT_EQ(l == all.end(), r == all.end());
          if (l != all.end() && r != all.end()) {
            EXPECT_EQ(l->second, r->second);
          }
          EXPECT_EQ(NumberAt(*db_, left(pair), held), NumberAt(*db_, right(pair), held));
        }
      }
    });
  }
  Join();
}

// Every write is a new key, so the sequence of a snapshot says how many keys it shows; and each writer's own keys come in its order.
TEST_P(DbThreadsTest, SequencesCountTheWritesOfAllThreadsWithoutGaps) {
  constexpr size_t kWriters = 8;
  constexpr uint64_t kWrites = kSanitized ? 400 : 2500;
  std::atomic<size_t> writers_left{kWriters};
  for (size_t me = 0; me < kWriters; ++me) {
    Start([&, me] {
      const std::string prefix(1, static_cast<char>('a' + me));
      for (uint64_t i = 0; i < kWrites && !HasFailure();) {
        WriteBatch batch;  // of one to three, so that groups are uneven
        for (uint64_t end = std::min(kWrites, i + 1 + (i + me) % 3); i < end; ++i) batch.Put(Key(i, prefix.c_str()), ValueOf(i));
        EXPECT_OK(db_->Write({.sync = i % 97 == 0}, batch));
      }
      --writers_left;
    });
  }
  Start([&] {
    uint64_t before = 0;
    while (writers_left.load() != 0 && !HasFailure()) {
      ASSERT_OK_AND_ASSIGN(const Snapshot snapshot, db_->GetSnapshot());
      EXPECT_GE(snapshot.sequence(), before);
      before = snapshot.sequence();
      ReadOptions held;
      held.snapshot = &snapshot;
      const Contents all = testing_support::ReadAll(*db_, held);
      EXPECT_EQ(all.size(), snapshot.sequence());
      std::array<uint64_t, kWriters> next{};
      for (const auto& [key, value] : all) {
        EXPECT_EQ(key.substr(1), Key(next[static_cast<size_t>(key[0] - 'a')]++, "")) << "a gap before " << key;
      }
    }
  });
  Join();
  EXPECT_EQ(testing_support::ReadAll(*db_).size(), kWriters * kWrites);
}

TEST_P(DbThreadsTest, SnapshotsAndIteratorsStayWhatTheyWereThroughFlushesAndCompactions) {
  constexpr uint64_t kKeys = 1000, kWrites = kSanitized ? 3000 : 20000;
  std::atomic<bool> done{false};
  Contents model;
  for (uint64_t key = 0; key < kKeys; key += 2) {
    ASSERT_OK(db_->Put(Key(key), ValueOf(0)));
    model[Key(key)] = ValueOf(0);
  }
  for (size_t me = 0; me < 2; ++me) {
    Start([&] {
      while (!done.load() && !HasFailure()) {
        ASSERT_OK_AND_ASSIGN(const Snapshot snapshot, db_->GetSnapshot());
        ReadOptions held;
        held.snapshot = &snapshot;
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator(held));
        const Contents first = testing_support::ReadAll(*db_, held);
        // The iterator made before goes over the same, half forward and half backward, while the tree below it is replaced.
        auto expected = first.begin();
        for (it->SeekToFirst(); it->Valid() && expected != first.end() && it->key() < Key(kKeys / 2); it->Next(), ++expected) {
          EXPECT_EQ(it->key(), expected->first);
          EXPECT_EQ(it->value(), expected->second);
        }
        auto reverse = first.rbegin();
        for (it->SeekToLast(); it->Valid() && reverse != first.rend() && it->key() > Key(kKeys / 2); it->Prev(), ++reverse) {
          EXPECT_EQ(it->key(), reverse->first);
          EXPECT_EQ(it->value(), reverse->second);
        }
        EXPECT_OK(it->status());
        EXPECT_TRUE(testing_support::ReadAll(*db_, held) == first);
        for (uint64_t key = 0; key < kKeys; key += 37) {
          const auto found = first.find(Key(key));
          EXPECT_EQ(testing_support::GetOr(*db_, Key(key), held), found == first.end() ? std::nullopt : std::optional(found->second));
        }
      }
    });
  }
  Start([&] {
    for (uint64_t i = 0; !done.load() && !HasFailure(); ++i) {
      EXPECT_OK(db_->Flush());
      if (i % 3 == 0) {
        EXPECT_OK(db_->CompactRange(Key(i % kKeys), std::nullopt));
      }
      if (i % 7 == 0) {
        EXPECT_OK(db_->WaitForBackgroundWork());
      }
    }
  });
  Start([&] {
    while (!done.load() && !HasFailure()) {
      ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
      EXPECT_EQ(stats.background_error, "");
      EXPECT_EQ(stats.blocked_files, 0u);
      for (const char* property : {"tamis.stats", "tamis.files", "tamis.filters", "tamis.id"}) EXPECT_TRUE(db_->GetProperty(property));
      EXPECT_OK(db_->ApproximateSize(std::nullopt, Key(kKeys / 2)));
      EXPECT_OK(db_->ApproximateCount(Key(kKeys / 2), std::nullopt));
      EXPECT_OK(db_->MayExist({}, Key(1)));
      EXPECT_OK(db_->VerifyChecksums());
    }
  });
  Random random(1);
  for (uint64_t i = 0; i < kWrites && !HasFailure(); ++i) {
    const std::string key = Key(random.Uniform(kKeys));
    if (random.OneIn(4)) {
      EXPECT_OK(db_->Delete(key));
      model.erase(key);
    } else {
      EXPECT_OK(db_->Put({.sync = random.OneIn(200)}, key, ValueOf(i)));
      model[key] = ValueOf(i);
    }
  }
  done.store(true);
  Join();
  EXPECT_TRUE(testing_support::ReadAll(*db_) == model);
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_EQ(stats.snapshots, 0u);
}

// What a call may answer while another thread closes the database.
bool IsAnswerAroundClose(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

TEST_P(DbThreadsTest, CloseMayComeAtAnyMoment) {
  using Call = std::function<absl::Status(Random&)>;
  std::array<std::atomic<uint64_t>, 2> acknowledged{};
  std::array<std::atomic<uint64_t>, 2> issued{};
  const auto writer = [&](size_t me) {
    return [&, me](Random& random) {
      const uint64_t number = ++issued[me];
      const absl::Status status = db_->Put({.sync = random.OneIn(50)}, Key(number % 500, me == 0 ? "a" : "b"), ValueOf(number));
      if (status.ok()) acknowledged[me].store(number);
      return status;
    };
  };
  const std::vector<Call> calls = {
      writer(0),
      writer(1),
      [&](Random& random) {
        std::string value;
        return db_->Get(Key(random.Uniform(600), "a"), &value);
      },
      [&](Random& random) {
        const std::string one = Key(random.Uniform(600), "a"), two = Key(random.Uniform(600), "b");
        const std::array<std::string_view, 2> keys = {one, two};
        std::array<PinnedValue, 2> values;
        std::array<absl::Status, 2> statuses;
        db_->MultiGet({}, keys, absl::MakeSpan(values), absl::MakeSpan(statuses));
        EXPECT_PRED1(IsAnswerAroundClose, statuses[1]);
        return statuses[0];
      },
      [&](Random& random) {
        const absl::StatusOr<Snapshot> snapshot = db_->GetSnapshot();
        if (!snapshot.ok()) return snapshot.status();
        ReadOptions held;
        held.snapshot = &*snapshot;
        const absl::StatusOr<std::unique_ptr<Iterator>> it = db_->NewIterator(held);
        if (!it.ok()) return it.status();
        (*it)->Seek(Key(random.Uniform(600), "a"));
        for (int i = 0; i < 100 && (*it)->Valid(); ++i) (*it)->Next();
        return (*it)->status();
      },
      [&](Random&) { return db_->Flush(); },
      [&](Random&) { return db_->CompactRange(std::nullopt, std::nullopt); },
      [&](Random&) { return db_->WaitForBackgroundWork(); },
      [&](Random&) { return db_->VerifyChecksums(); },
      [&](Random&) {
        db_->GetProperty("tamis.stats");
        return db_->GetStats().status();
      },
      [&](Random&) { return db_->SyncLog(); },
  };
  Random random(1);
  for (int round = 0; round < (kSanitized ? 8 : 25) && !HasFailure(); ++round) {
    for (const Call& call : calls) {
      const uint64_t seed = random.Next();
      Start([&call, seed] {
        Random mine(seed);
        // Goes on a little after the end: the answer must stay.
        for (int refused = 0; refused < 3;) {
          const absl::Status status = call(mine);
          EXPECT_PRED1(IsAnswerAroundClose, status);
          refused = absl::IsFailedPrecondition(status) || !IsAnswerAroundClose(status) ? refused + 1 : 0;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Uniform(kSanitized ? 60'000 : 30'000)));
    Start([&] { EXPECT_OK(db_->Close()); });
    EXPECT_OK(db_->Close());
    Join();
    Open();
    if (HasFatalFailure()) return;
    for (size_t me = 0; me < 2; ++me) {
      const std::string prefix = me == 0 ? "a" : "b";
      uint64_t newest = 0;
      for (uint64_t key = 0; key < 500; ++key) newest = std::max(newest, NumberAt(*db_, Key(key, prefix.c_str())).value_or(0));
      EXPECT_GE(newest, acknowledged[me].load());
      EXPECT_LE(newest, issued[me].load());
    }
  }
}

TEST_P(DbThreadsTest, HandlesOutliveTheDatabaseInOtherThreads) {
  for (uint64_t key = 0; key < 3000; ++key) ASSERT_OK(db_->Put(Key(key), ValueOf(key)));
  std::atomic<size_t> holding{0};
  std::atomic<bool> closed{false};
  for (size_t me = 0; me < 4; ++me) {
    Start([&, me] {
      ASSERT_OK_AND_ASSIGN(Snapshot snapshot, db_->GetSnapshot());
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> it, db_->NewIterator());
      PinnedValue pinned;
      EXPECT_OK(db_->Get({}, Key(me), &pinned));  // from a table
      it->Seek(Key(me));
      EXPECT_TRUE(it->Valid());
      ++holding;
      // Moves on until the close reaches it.
      while (it->Valid()) {
        it->Next();
        if (!it->Valid() && it->status().ok()) it->SeekToFirst();
      }
      EXPECT_CODE(it->status(), absl::StatusCode::kFailedPrecondition);
      while (!closed.load()) std::this_thread::yield();
      EXPECT_EQ(pinned.view(), ValueOf(me));
      snapshot = Snapshot();
      it.reset();
    });
  }
  while (holding.load() != 4 && !HasFailure()) std::this_thread::yield();
  db_.reset();
  closed.store(true);
  Join();
}

TEST_P(DbThreadsTest, OneOfManyConcurrentOpensWins) {
  ASSERT_OK(db_->Put("key", "value"));
  db_.reset();
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> won{0}, finished{0};
    for (size_t me = 0; me < 6; ++me) {
      Start([&] {
        absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options_, path_);
        if (db.ok()) {
          ++won;
        } else {
          EXPECT_CODE(db, absl::StatusCode::kUnavailable);
        }
        ++finished;
        while (finished.load() != 6) std::this_thread::yield();  // the winner holds it until the others have tried
        if (db.ok()) {
          EXPECT_EQ(testing_support::GetOr(**db, "key"), "value");
        }
      });
    }
    Join();
    EXPECT_EQ(won.load(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, DbThreadsTest,
                         ::testing::Values(Setting{"MemoryInline", true, 0}, Setting{"MemoryOneInBackground", true, 1},
                                           Setting{"MemoryTwoInBackground", true, 2}, Setting{"MemoryFourInBackground", true, 4},
                                           Setting{"DiskTwoInBackground", false, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tamis
