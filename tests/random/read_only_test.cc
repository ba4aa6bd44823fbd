// Read-only opens beside a live writer in another process, which overwrites random keys as fast as it can with memtables of 1 MiB: each
// open must succeed and see exactly a prefix of the order of writes, at least as long as what was acknowledged before the open began.
//
// Write i sets key Mix(i) % kKeys to a value that holds i. So the largest i that a reader finds is the length of its prefix, and with it
// every other value is known. TAMIS_READ_ONLY_OPENS sets the number of opens.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tests/support/build_kind.h"
#include "tests/support/child_process.h"
#include "tests/support/database_test_util.h"
#include "tests/support/hooked_file_system.h"

namespace tamis {
namespace {

constexpr uint64_t kKeys = 20'000;
constexpr size_t kValueBytes = 100;
constexpr uint64_t kOpens = testing_support::kSanitized ? 15 : 40;

uint64_t KeyOfWrite(uint64_t write) { return internal::Random(write).Uniform(kKeys); }

std::string ValueOfWrite(uint64_t write) {
  std::string value = std::to_string(write) + "/";
  value.resize(kValueBytes, static_cast<char>('a' + write % 26));
  return value;
}

struct Progress {
  std::atomic<bool> writing;
  std::atomic<bool> stop;
  std::atomic<uint64_t> issued;
  std::atomic<uint64_t> acknowledged;
  std::atomic<uint64_t> flushes;
  testing_support::FailureText failure;
};

void RunWriter(const std::string& path, Progress* progress) {
  Options options;
  options.memtable_bytes = 1 << 20;
  absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options, path);
  if (!db.ok()) progress->failure.Give("open", db.status().ToString());
  for (uint64_t write = 1; !progress->stop; ++write) {
    progress->issued = write;
    const absl::Status status = (*db)->Put(testing_support::Key(KeyOfWrite(write)), ValueOfWrite(write));
    if (!status.ok()) progress->failure.Give("put", status.ToString());
    progress->acknowledged = write;
    progress->writing = true;
  }
  const absl::StatusOr<Stats> stats = (*db)->GetStats();
  if (!stats.ok()) progress->failure.Give("stats", stats.status().ToString());
  progress->flushes = stats->flushes;
  const absl::Status status = (*db)->Close();
  if (!status.ok()) progress->failure.Give("close", status.ToString());
}

class ReadOnlyTest : public ::testing::Test {
 protected:
  // newest_[key]: the last write to the key among the first `applied_` writes; 0: none.
  void Advance(uint64_t to) {
    for (; applied_ < to; ++applied_) newest_[KeyOfWrite(applied_ + 1)] = applied_ + 1;
  }

  void CheckPrefix(const DB& db, uint64_t at_least, uint64_t at_most) {
    const testing_support::Contents seen = testing_support::ReadAll(db);
    uint64_t length = 0;
    for (const auto& [key, value] : seen) length = std::max<uint64_t>(length, std::stoull(value));
    ASSERT_GE(length, at_least) << "a write acknowledged before the open is missing";
    ASSERT_LE(length, at_most);
    ASSERT_GE(length, applied_) << "an earlier reader saw more";
    Advance(length);
    uint64_t keys = 0;
    for (uint64_t key = 0; key < kKeys; ++key) {
      if (newest_[key] == 0) continue;
      ++keys;
      const auto found = seen.find(testing_support::Key(key));
      ASSERT_NE(found, seen.end()) << "key " << key << " of write " << newest_[key] << " is missing, newest write seen " << length;
      ASSERT_EQ(found->second, ValueOfWrite(newest_[key])) << "key " << key << ", newest write seen " << length;
    }
    ASSERT_EQ(keys, seen.size());
    // The state stays what it was, however far the writer is by now; point reads see the same.
    for (uint64_t i = 0; i < 200; ++i) {
      const uint64_t key = random_.Uniform(2 * kKeys);  // half of them never written
      ReadOptions read;
      read.use_filters = i % 4 != 0;
      const std::optional<std::string> value = testing_support::GetOr(db, testing_support::Key(key), read);
      ASSERT_EQ(value, key < kKeys && newest_[key] != 0 ? std::optional(ValueOfWrite(newest_[key])) : std::nullopt) << "key " << key;
    }
  }

  const testing_support::TempDir directory_;
  const std::string path_ = directory_.path() + "/db";
  internal::Random random_{1};
  testing_support::SharedMemory<Progress> progress_;
  std::vector<uint64_t> newest_ = std::vector<uint64_t>(kKeys);
  uint64_t applied_ = 0;
};

TEST_F(ReadOnlyTest, EachOpenBesideAWriterSeesAPrefixAndWritesNothing) {
  const uint64_t opens = testing_support::NumberFromEnvironment("TAMIS_READ_ONLY_OPENS", kOpens);
  testing_support::ChildProcess writer([&] { RunWriter(path_, &*progress_); });
  while (!progress_->writing && !writer.Ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  testing_support::HookedFileSystem files(FileSystem::Posix());
  Options options;
  options.read_only = true;
  options.file_system = &files;
  uint64_t longest_micros = 0;
  for (uint64_t open = 0; open < opens; ++open) {
    SCOPED_TRACE("open " + std::to_string(open));
    ASSERT_FALSE(writer.Ended()) << progress_->failure.text;
    const uint64_t at_least = progress_->acknowledged;
    const auto begin = std::chrono::steady_clock::now();
    absl::StatusOr<std::unique_ptr<DB>> db = DB::Open(options, path_);
    const auto spent = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
    longest_micros = std::max(longest_micros, static_cast<uint64_t>(spent));
    ASSERT_OK(db);
    CheckPrefix(**db, at_least, progress_->issued);
    if (HasFatalFailure()) return;
    ASSERT_OK((*db)->Close());
    ASSERT_TRUE(files.journal().empty()) << "the reader changed " << files.journal().front().name;
  }

  progress_->stop = true;
  ASSERT_EQ(writer.Wait(), 0) << progress_->failure.text;
  std::printf("%llu opens, the longest took %.1f ms; %llu writes and %llu flushes beside them\n", static_cast<unsigned long long>(opens),
              static_cast<double>(longest_micros) / 1000, static_cast<unsigned long long>(progress_->acknowledged),
              static_cast<unsigned long long>(progress_->flushes));
  EXPECT_GT(progress_->flushes, 3u) << "the writer did too little for this to be a test";

  // Without a writer: everything, and not a byte of the directory changes.
  const testing_support::Contents before = testing_support::FilesIn(path_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DB> db, DB::Open(options, path_));
  CheckPrefix(*db, progress_->acknowledged, progress_->acknowledged);
  EXPECT_CODE(db->Put("x", "y"), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(db->Close());
  EXPECT_TRUE(testing_support::FilesIn(path_) == before);
  EXPECT_TRUE(files.journal().empty());
}

}  // namespace
}  // namespace tamis
