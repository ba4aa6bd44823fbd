// Closing beside everything that may be going on.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/random.h"
#include "tests/support/build_kind.h"
#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

using testing_support::Contents;
using testing_support::FileOperation;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::SmallOptions;

double SecondsOf(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class CloseConcurrentTest : public ::testing::Test {
 protected:
  CloseConcurrentTest() : files_(FileSystem::Posix()), path_(directory_.path() + "/db") {
    options_.background_threads = 2;
    options_.file_system = &files_;
  }
  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  testing_support::HookedFileSystem files_;
  Options options_ = SmallOptions();
  std::string path_;
};

TEST_F(CloseConcurrentTest, WritersAndIteratorsInFlightGetADefinedResult) {
  const int rounds = testing_support::kSanitized ? 3 : 8;
  for (int round = 0; round < rounds; ++round) {
    options_.background_threads = static_cast<uint32_t>(round % 4);
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
    std::vector<std::unique_ptr<Iterator>> iterators;
    for (int i = 0; i < 100; ++i) {
      ASSERT_OK(db->Put(Key(static_cast<uint64_t>(i)), "v"));
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<Iterator> it, db->NewIterator());
      it->SeekToFirst();
      iterators.push_back(std::move(it));
    }
    std::atomic<uint64_t> acknowledged[8] = {};
    std::vector<std::thread> threads;
    for (int w = 0; w < 8; ++w) {
      threads.emplace_back([&, w] {
        for (uint64_t i = 1;; ++i) {
          const absl::Status status = db->Put(Key(i, ("w" + std::to_string(w)).c_str()), std::string(50, 'x'));
          if (!status.ok()) {
            EXPECT_CODE(status, absl::StatusCode::kFailedPrecondition);
            return;
          }
          acknowledged[w].store(i);
        }
      });
    }
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&] {
        std::string value;
        for (absl::Status status; !absl::IsFailedPrecondition(status);) {
          status = db->Get(Key(5), &value);
          if (!absl::IsFailedPrecondition(status)) EXPECT_OK(status);
        }
      });
      threads.emplace_back([&] {
        for (;;) {
          const auto it = db->NewIterator();
          if (!it.ok()) return;
          for ((*it)->SeekToFirst(); (*it)->Valid(); (*it)->Next()) {
          }
        }
      });
    }
    threads.emplace_back([&] {
      while (db->Flush().ok()) {
      }
    });
    threads.emplace_back([&] {
      while (db->CompactRange(std::nullopt, std::nullopt).ok()) {
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + 20 * round));
    absl::Status closed;
    EXPECT_LT(SecondsOf([&] { closed = db->Close(); }), 20);
    EXPECT_OK(closed);
    for (std::thread& thread : threads) thread.join();
    for (const auto& it : iterators) {
      EXPECT_FALSE(it->Valid());
      it->SeekToLast();
      EXPECT_CODE(it->status(), absl::StatusCode::kFailedPrecondition);
    }
    db.reset();
    iterators.clear();
    ASSERT_OK_AND_ASSIGN(db, DB::Open(options_, path_));
    for (int w = 0; w < 8; ++w) {
      for (uint64_t i = 1; i <= acknowledged[w].load(); ++i) {
        ASSERT_TRUE(GetOr(*db, Key(i, ("w" + std::to_string(w)).c_str())).has_value()) << "an acknowledged write is lost";
      }
    }
    ASSERT_OK(db->Close());
    db.reset();
    ASSERT_OK(DestroyDB(options_, path_));
  }
}

TEST_F(CloseConcurrentTest, ClosingDuringAStallReturnsSoon) {
  options_.max_immutable_memtables = 1;
  options_.memtable_bytes = 4 << 10;
  std::atomic<bool> slow{true};
  files_.SetHook([&](const FileOperation& operation) {
    // The flush cannot get on: each piece of a table takes a while.
    if (slow && operation.kind == FileOperation::Kind::kAppend && operation.name.ends_with(".table")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return absl::OkStatus();
  });
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
  std::atomic<uint64_t> acknowledged{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&] {
      while (db->Put(Key(acknowledged.fetch_add(1)), std::string(200, 'x')).ok()) {
      }
    });
  }
  for (int i = 0; i < 1000; ++i) {
    const absl::StatusOr<Stats> stats = db->GetStats();
    ASSERT_OK(stats);
    if (stats->stalls.stops > 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GT(db->GetStats()->stalls.stops, 0u);
  EXPECT_LT(SecondsOf([&] { EXPECT_OK(db->Close()); }), 15);
  slow = false;
  for (std::thread& writer : writers) writer.join();
  EXPECT_OK(DB::Open(options_, path_));
}

TEST_F(CloseConcurrentTest, ClosingDuringALongCompactionReturnsSoon) {
  options_.compaction.target_file_bytes = 1 << 20;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
  for (uint64_t i = 0; i < 20'000; ++i) ASSERT_OK(db->Put(Key(i * 7919 % 20'000), std::string(100, 'x')));
  ASSERT_OK(db->Close());
  // At 20 KB a second the compaction would take minutes.
  options_.background_bytes_per_second = 20'000;
  ASSERT_OK_AND_ASSIGN(db, DB::Open(options_, path_));
  for (uint64_t i = 0; i < 100; ++i) ASSERT_OK(db->Put(Key(i * 199), std::string(100, 'y')));
  std::thread compactor([&] { EXPECT_CODE(db->CompactRange(std::nullopt, std::nullopt), absl::StatusCode::kFailedPrecondition); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(SecondsOf([&] { EXPECT_OK(db->Close()); }), 5);
  compactor.join();
  options_.background_bytes_per_second = 0;
  ASSERT_OK_AND_ASSIGN(db, DB::Open(options_, path_));
  EXPECT_EQ(ReadAll(*db).size(), 20'000u);
  ASSERT_OK(db->VerifyChecksums());
}

TEST_F(CloseConcurrentTest, TheRateLimitIsHonoured) {
  options_.background_bytes_per_second = 1 << 20;
  options_.compaction.l0_trigger = 1000;
  options_.compaction.l0_slowdown = 1000;
  options_.compaction.l0_stop = 1000;
  options_.table.compression = Compression::kNone;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<DB> db, DB::Open(options_, path_));
  for (uint64_t i = 0; i < 15'000; ++i) ASSERT_OK(db->Put(Key(i * 7919 % 15'000), std::string(100, 'x')));
  ASSERT_OK(db->Flush());
  ASSERT_OK_AND_ASSIGN(const Stats before, db->GetStats());
  const double seconds = SecondsOf([&] { ASSERT_OK(db->CompactRange(std::nullopt, std::nullopt)); });
  ASSERT_OK_AND_ASSIGN(const Stats after, db->GetStats());
  const uint64_t written = after.compaction_bytes_written - before.compaction_bytes_written;
  EXPECT_GT(written, 1u << 20);
  EXPECT_GT(seconds, 0.6 * static_cast<double>(written) / (1 << 20)) << written << " bytes";
}

TEST_F(CloseConcurrentTest, AKeyJustPutIsReadAtOnceByItsThread) {
  options_.memtable_bytes = 64 << 10;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, path_));
  const uint64_t each = testing_support::kSanitized ? 2000 : 15'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::string prefix = "t" + std::to_string(t);
      for (uint64_t i = 0; i < each; ++i) {
        const std::string key = Key(i % 500, prefix.c_str());
        const std::string value = std::to_string(i) + std::string(40, '.');
        ASSERT_OK(db->Put(key, value));
        ASSERT_EQ(GetOr(*db, key), value) << i;
        if (i % 64 == 0) {
          const std::string deleted = Key(600, prefix.c_str());
          ASSERT_OK(db->Put(deleted, "x"));
          ASSERT_OK(db->Delete(deleted));
          ASSERT_EQ(GetOr(*db, deleted), std::nullopt);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadAll(*db).size(), 8u * 500u);
  ASSERT_OK(db->Close());
}

// At the limit of L0 files: with the compaction held up, then let go, and when the database is opened over the limit.
TEST_F(CloseConcurrentTest, WritesAtTheLimitOfL0FilesGoOnOnceCompactionDoes) {
  options_.memtable_bytes = 4 << 10;
  options_.compaction.l0_trigger = 2;
  options_.compaction.l0_slowdown = 2;
  options_.compaction.l0_stop = 2;
  std::atomic<bool> held{true};
  files_.SetHook([&](const FileOperation& operation) {
    // Flushes write small tables without reading any; a compaction reads.
    while (held && operation.kind == FileOperation::Kind::kRead && operation.name.ends_with(".table") && operation.bytes > 200) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return absl::OkStatus();
  });
  options_.block_cache_bytes = 0;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, path_));
    std::thread release([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      held = false;
    });
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_OK(db->Put(Key(i % 50), std::string(100, 'x')));
    release.join();
    ASSERT_OK(db->WaitForBackgroundWork());
    ASSERT_OK(db->Close());
  }
  options_.compaction.l0_trigger = options_.compaction.l0_slowdown = options_.compaction.l0_stop = 100;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, path_));
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(db->Put(Key(1), "v"));
      ASSERT_OK(db->Flush());
    }
  }
  options_.compaction.l0_trigger = options_.compaction.l0_slowdown = options_.compaction.l0_stop = 2;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, path_));
  EXPECT_LT(SecondsOf([&] {
              for (uint64_t i = 0; i < 200; ++i) ASSERT_OK(db->Put(Key(i), std::string(100, 'y')));
            }),
            30);
  ASSERT_OK(db->WaitForBackgroundWork());
  EXPECT_LT(db->GetStats()->levels[0].files, 2u);
}

// A read-only open beside a writer that changes everything: each sees a prefix of the writes.
TEST_F(CloseConcurrentTest, ReadersOpenedBesideAWriterSeeAPrefix) {
  options_.memtable_bytes = 1 << 20;
  options_.compaction.level_base_bytes = 4 << 20;
  options_.compaction.target_file_bytes = 1 << 20;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options_, path_));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0}, allowed{3000};
  std::thread writer([&] {
    for (uint64_t i = 0; !stop; ++i) {
      while (i >= allowed && !stop) std::this_thread::yield();
      ASSERT_OK(db->Put(Key(i), std::to_string(i) + std::string(60, '.')));
      written.store(i + 1, std::memory_order_release);
    }
  });
  Options reading = options_;
  reading.read_only = true;
  reading.file_system = nullptr;
  const int opens = testing_support::kSanitized ? 10 : 40;
  uint64_t last = 0;
  for (int round = 0; round < opens; ++round) {
    const uint64_t at_least = written.load(std::memory_order_acquire);
    const absl::StatusOr<std::unique_ptr<DB>> reader = DB::Open(reading, path_);
    EXPECT_OK(reader);
    if (!reader.ok()) break;
    uint64_t count = 0;
    for (const auto& [key, value] : ReadAll(**reader)) {
      EXPECT_EQ(key, Key(count));
      if (key != Key(count)) break;
      ++count;
    }
    EXPECT_GE(count, at_least);
    EXPECT_GE(count, last);
    last = count;
    allowed += 3000;
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace tamis
