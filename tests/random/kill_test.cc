// kill -9, again and again, in one directory. A child process with two writing threads is killed at a random moment (also while it opens,
// recovers or closes); then the database is opened as a user would, without any flag, and must equal a model: all that was acknowledged
// is there, synced or not; at most what was being written at the end is there too; no batch is there in part.
//
// Batch n of a writer is a function of (seed, writer, n) and holds its own number under a marker key, so that the state of the database
// names the batch it ends with, and the model only needs that number. A failure prints round and seed; TAMIS_KILL_SEED repeats the
// batches (not the moments), TAMIS_KILL_ROUNDS lengthens.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tests/support/build_kind.h"
#include "tests/support/child_process.h"
#include "tests/support/database_test_util.h"

namespace tamis {
namespace {

using internal::FileKind;
using internal::Random;
using testing_support::Contents;

constexpr size_t kWriters = 2;
constexpr uint32_t kKeysPerWriter = 1500;
constexpr uint64_t kRounds = testing_support::kSanitized ? 30 : 60;
constexpr uint64_t kLongestLifeMicros = 50'000;

std::string KeyOf(size_t writer, uint64_t number) { return testing_support::Key(number, writer == 0 ? "w0/" : "w1/"); }
std::string MarkerOf(size_t writer) { return writer == 0 ? "w0/~batch" : "w1/~batch"; }

struct Operation {
  uint32_t key;
  bool is_delete;
  std::string value;
};

// 1 to 20 operations; some on the same key twice. Values of 20 to 300 bytes, one in 300 of 40,000 (more than a block of the log).
std::vector<Operation> BatchOf(uint64_t seed, size_t writer, uint64_t batch) {
  Random random(seed * 1'000'003 + batch * kWriters + writer);
  std::vector<Operation> operations(1 + random.Uniform(20));
  for (size_t i = 0; i < operations.size(); ++i) {
    operations[i].key = static_cast<uint32_t>(random.Uniform(kKeysPerWriter));
    operations[i].is_delete = random.OneIn(4);
    if (operations[i].is_delete) continue;
    std::string& value = operations[i].value;
    value = std::to_string(batch) + "/" + std::to_string(i) + "/";
    const size_t size = random.OneIn(300) ? 40'000 : 20 + random.Uniform(280);
    while (value.size() < size) value.append(8, static_cast<char>(random.Next()));
  }
  return operations;
}

Options SmallOptions(uint32_t threads) {
  Options options = testing_support::SmallOptions();
  options.background_threads = threads;
  options.memtable_bytes = 64 << 10;
  options.compaction.level_base_bytes = 64 << 10;
  options.compaction.target_file_bytes = 32 << 10;
  return options;
}

struct Progress {
  std::atomic<uint64_t> opens;                         // by all children
  std::atomic<bool> writing;                           // the child has opened the database
  std::array<std::atomic<uint64_t>, kWriters> issued;  // the newest batch whose Write was called
  std::array<std::atomic<uint64_t>, kWriters> acknowledged;
  testing_support::FailureText failure;
};

// ---- The child ----------------------------------------------------------------------------------------------------------------------

class Child {
 public:
  // batches_per_open: 0: one open, then batches until death; else closes and opens after so many.
  Child(std::string path, uint64_t seed, uint64_t batches_per_open, Progress* progress)
      : path_(std::move(path)), seed_(seed), batches_per_open_(batches_per_open), progress_(progress) {}

  [[noreturn]] void Run() {
    for (;;) {
      // Other bits each time, so that filters are rebuilt by themselves and on request.
      constexpr std::array<double, 4> kBits = {6, 10, 14, 20};
      Options options = SmallOptions(2);
      options.filter.bits_per_key = kBits[progress_->opens++ % kBits.size()];
      absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options, path_);
      Require(db.status(), "open");
      Require((*db)->RebuildFilters(), "rebuild filters");
      std::vector<std::thread> threads;
      for (size_t writer = 0; writer < kWriters; ++writer) threads.emplace_back([&, writer] { WriteBatches(**db, writer); });
      progress_->writing = true;
      for (std::thread& thread : threads) thread.join();
      Require((*db)->Close(), "close");
    }
  }

 private:
  void Require(const absl::Status& status, std::string_view what) {
    if (!status.ok()) progress_->failure.Give(what, status.ToString());
  }

  void WriteBatches(DB& db, size_t writer) {
    std::string marker;
    const absl::Status found = db.Get(MarkerOf(writer), &marker);
    if (!absl::IsNotFound(found)) Require(found, "marker");
    uint64_t batch = marker.empty() ? 0 : std::stoull(marker);
    // The parent sees only the deaths that it looks at; this is the check of those in between.
    const uint64_t acknowledged = progress_->acknowledged[writer];
    if (batch < acknowledged) {
      progress_->failure.Give("acknowledged batches lost", marker + " of " + std::to_string(acknowledged) + " found");
    }
    Random random(seed_ + batch * kWriters + writer);
    for (uint64_t done = 0; batches_per_open_ == 0 || done < batches_per_open_; ++done) {
      ++batch;
      WriteBatch writes;
      if (batch % 2 == 0) writes.Put(MarkerOf(writer), std::to_string(batch));
      for (const Operation& operation : BatchOf(seed_, writer, batch)) {
        const std::string key = KeyOf(writer, operation.key);
        operation.is_delete ? writes.Delete(key) : writes.Put(key, operation.value);
      }
      if (batch % 2 == 1) writes.Put(MarkerOf(writer), std::to_string(batch));
      progress_->issued[writer] = std::max<uint64_t>(progress_->issued[writer], batch);
      Require(db.Write({.sync = random.OneIn(50)}, writes), "write");
      progress_->acknowledged[writer] = batch;
      if (random.OneIn(1000)) Require(db.Flush(), "flush");
      if (random.OneIn(500)) Require(db.RebuildFilters(), "rebuild filters");
      if (random.OneIn(3000)) Require(db.CompactRange(std::nullopt, std::nullopt), "compact");
    }
  }

  const std::string path_;
  const uint64_t seed_;
  const uint64_t batches_per_open_;
  Progress* const progress_;
};

// ---- The parent ---------------------------------------------------------------------------------------------------------------------

class KillTest : public ::testing::Test {
 protected:
  KillTest() : path_(directory_.path() + "/db") {}

  void Round() {
    // One in four dies early: in its open, in the recovery of what the last one left, or soon after. One in four opens and closes a lot.
    const uint64_t kind = random_.Uniform(4);
    progress_->writing = false;
    testing_support::ChildProcess child([&] { Child(path_, seed_, kind == 1 ? 40 : 0, &*progress_).Run(); });
    if (kind == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(kLongestLifeMicros / 4)));
    } else {
      while (!progress_->writing && !child.Ended()) std::this_thread::sleep_for(std::chrono::microseconds(200));
      std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(kLongestLifeMicros)));
    }
    ASSERT_TRUE(child.Kill()) << "the child ended by itself: " << progress_->failure.text;
  }

  // Brings the model to the batches that the database names, which must be all acknowledged ones and no more than were issued.
  void AdvanceModel(const DB& db) {
    for (size_t writer = 0; writer < kWriters; ++writer) {
      const std::optional<std::string> marker = testing_support::GetOr(db, MarkerOf(writer));
      const uint64_t found = marker ? std::stoull(*marker) : 0;
      ASSERT_GE(found, progress_->acknowledged[writer]) << "acknowledged batches of writer " << writer << " are lost";
      ASSERT_LE(found, progress_->issued[writer]);
      in_flight_found_ += found - progress_->acknowledged[writer];
      for (uint64_t& batch = applied_[writer]; batch < found;) {
        ++batch;
        for (Operation& operation : BatchOf(seed_, writer, batch)) {
          const std::string key = KeyOf(writer, operation.key);
          if (operation.is_delete) {
            model_.erase(key);
          } else {
            model_[key] = std::move(operation.value);
          }
        }
      }
      if (found != 0) model_[MarkerOf(writer)] = std::to_string(found);
    }
  }

  void CompareContents(const DB& db) {
    // EXPECT_EQ of the maps would print megabytes.
    ASSERT_TRUE(testing_support::ReadAll(db) == model_) << "forward scan";
    ASSERT_TRUE(testing_support::ReadAllBackward(db) == model_) << "backward scan";
    ReadOptions unfiltered;
    unfiltered.use_filters = false;
    std::vector<std::string> keys;
    for (size_t writer = 0; writer < kWriters; ++writer) {
      for (uint64_t i = 0; i < kKeysPerWriter; ++i) keys.push_back(KeyOf(writer, i));
    }
    for (const std::string& key : keys) {
      const auto expected = model_.find(key);
      const std::optional<std::string> wanted = expected == model_.end() ? std::nullopt : std::optional(expected->second);
      ASSERT_TRUE(testing_support::GetOr(db, key) == wanted) << key;
      ASSERT_TRUE(testing_support::GetOr(db, key, unfiltered) == wanted) << key << " without filters";
    }
  }

  static size_t FiltersListed(std::string_view listed) {
    size_t count = 0;
    for (size_t at = 0; (at = listed.find(".filter", at)) != listed.npos; ++at) ++count;
    return count;
  }
  size_t FiltersOnDisk() const { return testing_support::FilesOfKind(path_, FileKind::kFilter).size(); }
  size_t TablesOnDisk() const { return testing_support::FilesOfKind(path_, FileKind::kTable).size(); }

  // The tables that the database lists and one of each of the others, nothing else.
  void CheckFiles(const DB& db) {
    const std::string listed = db.GetProperty("tamis.files").value_or("");
    std::map<FileKind, uint64_t> counts;
    uint64_t table_bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string name = entry.path().filename();
      const std::optional<internal::FileName> parsed = internal::ParseFileName(name);
      ASSERT_TRUE(parsed) << "foreign file " << name;
      ++counts[parsed->kind];
      if (parsed->kind != FileKind::kTable && parsed->kind != FileKind::kFilter) continue;
      if (parsed->kind == FileKind::kTable) table_bytes += entry.file_size();
      if (parsed->kind == FileKind::kFilter) ++filter_files_seen_;
      EXPECT_NE(listed.find(" " + name), std::string::npos) << "orphan " << name << "; the database lists\n" << listed;
    }
    EXPECT_EQ(counts[FileKind::kTable], static_cast<uint64_t>(std::count(listed.begin(), listed.end(), '\n')));
    EXPECT_EQ(counts[FileKind::kCurrent], 1u);
    EXPECT_EQ(counts[FileKind::kLock], 1u);
    EXPECT_EQ(counts[FileKind::kManifest], 1u);
    EXPECT_EQ(counts[FileKind::kLog], 1u);
    EXPECT_EQ(counts[FileKind::kFilter], FiltersListed(listed));
    EXPECT_EQ(counts[FileKind::kTemporary], 0u);
    EXPECT_LE(counts[FileKind::kInfoLog], 2u);
    // The tables of a tree that was just opened: at most about the contents twice, and an L0 of flushed memtables (here 12 at most).
    uint64_t model_bytes = 0;
    for (const auto& [key, value] : model_) model_bytes += key.size() + value.size();
    EXPECT_LE(table_bytes, 2 * model_bytes + 12 * (64 << 10) + (1 << 20)) << model_bytes << " bytes of contents; files:\n" << listed;
    // Besides: two logs' first step of 256 KiB, a manifest, LOG and LOG.old of at most 1 MiB.
    EXPECT_LE(testing_support::BytesIn(path_), table_bytes + (4 << 20));
  }

  void OpenAndCheck(uint64_t round) {
    // In turn: inline, where nothing moves behind the check of the files; and as a user opens who sets nothing.
    const bool inline_work = round % 2 == 0;
    absl::StatusOr<std::unique_ptr<DB>> opened = DB::Open(inline_work ? SmallOptions(0) : Options(), path_);
    ASSERT_OK(opened);
    DB& db = **opened;
    if (!inline_work) {
      ASSERT_OK(db.WaitForBackgroundWork());
      // The inputs of the last compaction go when the thread that ran it lets go of them, which may be a moment later.
      const auto settled = [&] {
        const std::string files = db.GetProperty("tamis.files").value_or("");
        return TablesOnDisk() == static_cast<size_t>(std::count(files.begin(), files.end(), '\n')) &&
               FiltersOnDisk() == FiltersListed(files);
      };
      for (int tries = 0; tries < 2000 && !settled(); ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CheckFiles(db);
    AdvanceModel(db);
    if (HasFatalFailure()) return;
    CompareContents(db);
    ASSERT_OK(db.VerifyChecksums());
    ASSERT_OK_AND_ASSIGN(const Stats stats, db.GetStats());
    EXPECT_EQ(stats.background_errors, 0u) << stats.background_error;
    EXPECT_EQ(stats.filters_refused, 0u);
    records_recovered_ += stats.recovery.records;
    ASSERT_OK(db.Close());
    ++checked_;
  }

  const testing_support::TempDir directory_;
  const std::string path_;
  const uint64_t seed_ = testing_support::NumberFromEnvironment("TAMIS_KILL_SEED", 1);
  Random random_{seed_};
  testing_support::SharedMemory<Progress> progress_;
  std::array<uint64_t, kWriters> applied_{};
  Contents model_;
  uint64_t checked_ = 0;
  uint64_t records_recovered_ = 0;
  uint64_t in_flight_found_ = 0;
  uint64_t filter_files_seen_ = 0;
};

TEST_F(KillTest, LosesNothingAcknowledgedAndSplitsNoBatch) {
  const uint64_t rounds = testing_support::NumberFromEnvironment("TAMIS_KILL_ROUNDS", kRounds);
  for (uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(seed_));
    Round();
    if (HasFatalFailure()) return;
    // One in four is not looked at: the next child recovers from that death itself, and may die of it again.
    if (round + 1 != rounds && random_.OneIn(4)) continue;
    OpenAndCheck(round);
  }
  std::printf("%llu kills, %llu opens checked; %llu batches written, %llu of them unacknowledged; %llu records recovered\n",
              static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(checked_),
              static_cast<unsigned long long>(applied_[0] + applied_[1]), static_cast<unsigned long long>(in_flight_found_),
              static_cast<unsigned long long>(records_recovered_));
  // That the test tests: batches went in, and most opens had something to recover.
  EXPECT_GT(applied_[0] + applied_[1], rounds * 20);
  EXPECT_GT(records_recovered_, checked_);
  EXPECT_GT(filter_files_seen_, 0u);
}

}  // namespace
}  // namespace tamis
