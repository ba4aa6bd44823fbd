#include "wal/log_writer.h"

#include <cstdlib>
#include <new>
#include <thread>

#include "base/mem_file_system.h"
#include "tests/wal/log_test_util.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

// A sanitizer has an operator new of its own, which may not be replaced.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TAMIS_TEST_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define TAMIS_TEST_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef TAMIS_TEST_COUNTS_ALLOCATIONS
#define TAMIS_TEST_COUNTS_ALLOCATIONS 1
#endif

#if TAMIS_TEST_COUNTS_ALLOCATIONS
// Counts what L3 forbids. (Not inlined: g++ would take malloc with delete for a mismatch.)
__attribute__((noinline)) void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size > 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace tamis::internal {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * 1024;

void ExpectRoundTrip(LogUnderTest& log, LogStop stop) {
  const LogContents contents = ReadLog(log.disk.bytes);
  ASSERT_EQ(ExpectPrefix(contents.records, log.records, "round trip"), log.records.size()) << contents.stop_reason;
  EXPECT_EQ(contents.stop, stop) << contents.stop_reason;
}

TEST(LogWriterTest, EveryPlaceOfARecordAtABlockEdgeIsReadBack) {
  // The first record ends (or its block does) everywhere around the edge of the first, and of the third, block.
  Random random(1);
  for (const uint64_t edge : {kLogBlockBytes, 3 * kLogBlockBytes}) {
    for (int delta = -64; delta <= 64; ++delta) {
      LogUnderTest log;
      const uint64_t end = edge + static_cast<uint64_t>(static_cast<int64_t>(delta));
      const uint64_t headers = (end - 1) / kLogBlockBytes + 1;
      // Head of 4 bytes (all numbers below 128).
      const std::string payload = RandomBytes(random, end - kLogHeaderBytes - headers * kFragmentHeaderBytes - 4);
      log.Add(payload, payload.size() / 3);
      if (delta <= 0 || delta > 8) {
        EXPECT_EQ(log.writer->offset(), end);
      }
      for (const size_t size : {0, 1, 7, 100}) log.Add(RandomBytes(random, size), size / 2, size == 7);
      log.Add(RandomBytes(random, kLogBlockBytes), kLogBlockBytes - 1);
      ExpectRoundTrip(log, LogStop::kZeros);
      ASSERT_OK(log.writer->Finish(delta % 2 == 0 ? LogWriter::FinishMode::kSynced : LogWriter::FinishMode::kUnsynced));
      ExpectRoundTrip(log, LogStop::kEndMark);
      if (HasFailure()) FAIL() << "edge " << edge << " delta " << delta;
    }
  }
}

TEST(LogWriterTest, AMarkAtEveryPlaceOfABlockEdgeIsReadBack) {
  for (int delta = -100; delta <= 0; ++delta) {
    LogUnderTest log;
    const uint64_t end = kLogBlockBytes + static_cast<uint64_t>(static_cast<int64_t>(delta));
    log.Add(std::string(end - kLogHeaderBytes - kFragmentHeaderBytes - 4, 'x'));
    ASSERT_EQ(log.writer->offset(), end);
    if (delta % 2 == 0) ASSERT_OK(log.writer->Sync());
    ASSERT_OK(log.writer->Finish(delta % 3 == 0 ? LogWriter::FinishMode::kSynced : LogWriter::FinishMode::kUnsynced));
    EXPECT_EQ(log.disk.bytes.size(), log.writer->offset());
    ExpectRoundTrip(log, LogStop::kEndMark);
    if (HasFailure()) FAIL() << "delta " << delta;
  }
}

TEST(LogWriterTest, PayloadsOfEverySizeAndSplitAreReadBack) {
  Random random(2);
  LogUnderTest log;
  for (size_t size = 0; size <= 300; ++size) log.Add(RandomBytes(random, size), size == 0 ? 0 : random.Uniform(size + 1), size % 50 == 0);
  for (const size_t size : {16383, 16384, 32716, 32717, 32760, 32767, 32768, 65535, 65536, 65537}) {
    for (const size_t split : {size_t{0}, size_t{1}, size / 2, size}) log.Add(RandomBytes(random, size), split);
  }
  log.Add(RandomBytes(random, kMiB), 17);
  log.Add(RandomBytes(random, 20 * kMiB), 5 * kMiB, true);
  log.Add("tail");
  ExpectRoundTrip(log, LogStop::kZeros);
}

TEST(LogWriterTest, GreatNumbersAreReadBack) {
  LogIdentity identity = TestIdentity();
  identity.log_number = UINT64_MAX;
  LogUnderTest log(identity);
  ASSERT_OK(log.writer->Reserve(3));
  ASSERT_OK(log.writer->Append({0, UINT64_MAX}, UINT64_MAX - UINT32_MAX, UINT32_MAX, "abc", ""));
  const LogContents contents = ReadLog(log.disk.bytes);
  ASSERT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.records[0].proven, (ProvenPoint{0, UINT64_MAX}));
  EXPECT_EQ(contents.records[0].first_sequence, UINT64_MAX - UINT32_MAX);
  EXPECT_EQ(contents.records[0].count, UINT32_MAX);
  EXPECT_EQ(contents.records[0].payload, "abc");
}

TEST(LogWriterTest, AManifestIsWrittenAndReadAlike) {
  LogIdentity identity = TestIdentity(12);
  identity.kind = LogKind::kManifest;
  FakeDisk disk;
  ASSERT_OK_AND_ASSIGN(auto writer, LogWriter::Create(std::make_unique<FakeLogFile>(&disk), identity));
  ASSERT_OK(writer->Reserve(4));
  ASSERT_OK(writer->AppendDurable(writer->proven(), 0, 0, "edit", ""));
  const LogContents contents = ReadLog(disk.bytes, LogKind::kManifest);
  ASSERT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.records[0].payload, "edit");
  EXPECT_EQ(contents.records[0].count, 0u);
  EXPECT_EQ(contents.stop, LogStop::kZeros);
  EXPECT_EQ(contents.proof, (ProvenPoint{12, contents.records[0].end_offset}));
}

TEST(LogWriterTest, CreateSyncsAHeaderAndReservesTheFirstStep) {
  LogUnderTest log;
  EXPECT_EQ(log.disk.syncs, 1);
  EXPECT_EQ(log.writer->offset(), kLogHeaderBytes);
  EXPECT_EQ(log.writer->reserved(), 256 * kKiB);
  EXPECT_EQ(log.writer->proven(), (ProvenPoint{7, 0}));
}

TEST(LogWriterTest, AnAppendIsOneStoreAndADurableOneIsOneSystemCallAndASync) {
  LogUnderTest log;
  const int through = log.disk.writes_through;
  log.Add(std::string(1000, 'a'), 12);
  EXPECT_EQ(log.disk.writes, 1);
  EXPECT_EQ(log.disk.syncs, 1);
  log.Add(std::string(1000, 'b'), 12, true);
  EXPECT_EQ(log.disk.writes_through, through + 1);
  EXPECT_EQ(log.disk.writes, 2) << "the proof";
  EXPECT_EQ(log.disk.syncs, 2);
  EXPECT_EQ(log.writer->proven(), (ProvenPoint{7, log.records.back().end_offset}));
  EXPECT_GT(log.writer->offset(), log.records.back().end_offset) << "the proof";
  log.Add(std::string(32 * kKiB, 'c'), 0, true);  // crosses a block edge: still one
  EXPECT_EQ(log.disk.writes_through, through + 2);
  EXPECT_EQ(ReadLog(log.disk.bytes).proof, log.writer->proven());
}

TEST(LogWriterTest, NothingIsAllocatedAfterReserve) {
  if (!TAMIS_TEST_COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer owns operator new";
  LogUnderTest log;
  const std::string payload(100 * kKiB, 'p');
  ASSERT_OK(log.writer->Reserve(payload.size()));
  const uint64_t before = allocations.load();
  const bool appended = log.writer->Append(log.writer->proven(), 1, 1, "head", payload).ok();
  const bool synced = log.writer->Sync().ok();
  const uint64_t after = allocations.load();
  EXPECT_TRUE(appended && synced);
  EXPECT_EQ(after, before);
}

TEST(LogWriterTest, StepsDoubleAndAGreatRecordGetsMore) {
  LogUnderTest log;
  while (log.writer->offset() < 40 * kMiB) log.Add(std::string(100 * kKiB, 's'));
  const std::vector<uint64_t>& ends = log.disk.reserves;
  std::vector<uint64_t> steps = {ends[0]};
  for (size_t i = 1; i < ends.size(); ++i) steps.push_back(ends[i] - ends[i - 1]);
  ASSERT_GE(steps.size(), 8u);
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], std::min(256 * kKiB << i, 8 * kMiB)) << i;
  const uint64_t before = log.writer->reserved();
  ASSERT_OK(log.writer->Reserve(30 * kMiB));
  EXPECT_GT(log.writer->reserved(), before + 20 * kMiB);
}

TEST(LogWriterTest, ARecordThatNoFileCouldHoldIsRefusedAndTheWriterGoesOn) {
  LogUnderTest log;
  EXPECT_CODE(log.writer->Reserve(UINT64_MAX), absl::StatusCode::kInvalidArgument);
  EXPECT_CODE(log.writer->Reserve(uint64_t{1} << 62), absl::StatusCode::kInvalidArgument);
  log.Add("still fine");
  ExpectRoundTrip(log, LogStop::kZeros);
}

TEST(LogWriterTest, AFullDiskRefusesReserveAndLeavesTheWriterUsable) {
  LogUnderTest log;
  log.Add("before");
  log.disk.on_reserve = [](uint64_t) { return absl::ResourceExhaustedError("disk full"); };
  const std::string image = log.disk.bytes;
  EXPECT_CODE(log.writer->Reserve(kMiB), absl::StatusCode::kResourceExhausted);
  EXPECT_OK(log.writer->status());
  EXPECT_EQ(log.disk.bytes, image);
  log.Add("fits what there is");
  ASSERT_OK(log.writer->Sync());
  log.disk.on_reserve = nullptr;
  log.Add(std::string(kMiB, 'n'));
  ExpectRoundTrip(log, LogStop::kZeros);

  FakeDisk full;
  full.on_reserve = [](uint64_t) { return absl::ResourceExhaustedError("disk full"); };
  EXPECT_CODE(LogWriter::Create(std::make_unique<FakeLogFile>(&full), TestIdentity()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.writes + full.writes_through + full.syncs, 0);
}

TEST(LogWriterTest, ADiskWithoutRoomForAStepIsAskedForWhatIsNeeded) {
  LogUnderTest log;
  const uint64_t limit = 400 * kKiB;
  log.disk.on_reserve = [&](uint64_t end) { return end > limit ? absl::ResourceExhaustedError("disk full") : absl::OkStatus(); };
  log.Add(std::string(300 * kKiB, 'f'));
  EXPECT_LE(log.writer->reserved(), limit);
  ExpectRoundTrip(log, LogStop::kZeros);
}

TEST(LogWriterTest, NotesAndFinishNeverRunOutOfReservedSpace) {
  // Random histories on a disk that gives no byte more than is needed; FakeLogFile refuses a write beyond it.
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    LogUnderTest log;
    log.disk.on_reserve = [&](uint64_t end) {
      return end > log.disk.bytes.size() + 2 * kLogBlockBytes ? absl::ResourceExhaustedError("disk full") : absl::OkStatus();
    };
    std::vector<uint64_t> in_flight;  // offsets of syncs that began
    for (int step = 0; step < 300; ++step) {
      switch (random.Uniform(4)) {
        case 0:
          in_flight.push_back(log.writer->offset());
          break;
        case 1:
          for (const uint64_t offset : in_flight) ASSERT_OK(log.writer->NoteSynced(offset));
          in_flight.clear();
          break;
        case 2:
          ASSERT_OK(log.writer->Sync());
          break;
        default:
          log.Add(std::string(random.Uniform(5000), 'r'), 0, random.OneIn(3));
      }
    }
    for (const uint64_t offset : in_flight) ASSERT_OK(log.writer->NoteSynced(offset));
    ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kSynced));
    ExpectRoundTrip(log, LogStop::kEndMark);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(LogWriterTest, AReserveThatWasGrantedHasRoomForAProofAndTheEndMark) {
  // The disk gives 256 KiB and no more; records that end at every place before that either are refused or can be followed up.
  size_t granted = 0;
  size_t refused = 0;
  for (uint64_t left = 0; left < 700; ++left) {
    LogUnderTest log;
    log.disk.on_reserve = [](uint64_t) { return absl::ResourceExhaustedError("disk full"); };
    const uint64_t end = 256 * kKiB - left;
    const std::string payload(end - kLogHeaderBytes - 8 * kFragmentHeaderBytes - 4, 'e');
    if (absl::Status status = log.writer->Reserve(payload.size()); !status.ok()) {
      EXPECT_CODE(status, absl::StatusCode::kResourceExhausted);
      ++refused;
      continue;
    }
    ++granted;
    log.Add(payload);
    EXPECT_EQ(log.writer->offset(), end);
    ASSERT_OK(log.writer->Sync());
    EXPECT_GT(log.writer->offset(), end) << "the proof";
    ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kSynced));
    ExpectRoundTrip(log, LogStop::kEndMark);
  }
  EXPECT_GT(granted, 200u);
  EXPECT_GT(refused, 80u);
}

TEST(LogWriterTest, NotingTheSameSyncAgainStoresNothing) {
  LogUnderTest log;
  ASSERT_OK(log.writer->Sync());
  EXPECT_EQ(log.writer->offset(), kLogHeaderBytes) << "there is nothing to prove";
  log.Add("one");
  ASSERT_OK(log.writer->Sync());
  const uint64_t offset = log.writer->offset();
  EXPECT_GT(offset, log.records[0].end_offset);
  for (int i = 0; i < 100; ++i) ASSERT_OK(log.writer->Sync());
  EXPECT_EQ(log.writer->offset(), offset);
  EXPECT_EQ(log.writer->proven().offset, offset);
}

TEST(LogWriterTest, AProofNeverClaimsARecordAppendedDuringTheSync) {
  LogUnderTest log;
  log.Add("synced");
  const uint64_t synced = log.writer->offset();
  log.Add("appended during the sync");
  ASSERT_OK(log.writer->SyncData());
  ASSERT_OK(log.writer->NoteSynced(synced));
  EXPECT_EQ(log.writer->proven().offset, synced);
  EXPECT_EQ(ReadLog(log.disk.bytes).proof, (ProvenPoint{7, synced}));
}

TEST(LogWriterTest, AFailedWriteIsStickyAndNeverLooksLikeNothingWritten) {
  LogUnderTest log;
  log.Add("good");
  log.disk.write_error = absl::ResourceExhaustedError("no space on a copy-on-write file system");
  ASSERT_OK(log.writer->Reserve(3));
  EXPECT_CODE(log.writer->Append(log.writer->proven(), 9, 1, "bad", ""), absl::StatusCode::kUnknown);
  log.disk.write_error = absl::OkStatus();
  const std::string image = log.disk.bytes;
  const int syncs = log.disk.syncs;
  const absl::Status first = log.writer->status();
  EXPECT_CODE(first, absl::StatusCode::kUnknown);
  EXPECT_EQ(log.writer->Reserve(1), first);
  EXPECT_EQ(log.writer->Append(log.writer->proven(), 9, 1, "bad", ""), first);
  EXPECT_EQ(log.writer->AppendDurable(log.writer->proven(), 9, 1, "bad", ""), first);
  EXPECT_EQ(log.writer->Sync(), first);
  EXPECT_EQ(log.writer->NoteSynced(log.writer->offset()), first);
  EXPECT_EQ(log.writer->Finish(LogWriter::FinishMode::kSynced), first);
  EXPECT_EQ(log.disk.bytes, image);
  EXPECT_EQ(log.disk.syncs, syncs);
  ExpectRoundTrip(log, LogStop::kZeros);
}

TEST(LogWriterTest, AFailedSyncIsStickyAndNeverRetriedFromAnyThread) {
  LogUnderTest log;
  log.Add("good");
  log.disk.sync_error = absl::UnknownError("fdatasync: I/O error");
  absl::Status seen;
  std::thread([&] { seen = log.writer->SyncData(); }).join();
  EXPECT_CODE(seen, absl::StatusCode::kUnknown);
  log.disk.sync_error = absl::OkStatus();
  const int syncs = log.disk.syncs;
  const int writes = log.disk.writes;
  EXPECT_EQ(log.writer->SyncData(), seen);
  EXPECT_EQ(log.writer->Sync(), seen);
  EXPECT_EQ(log.writer->status(), seen);
  EXPECT_EQ(log.writer->Reserve(1), seen);
  EXPECT_EQ(log.writer->Append(log.writer->proven(), 9, 1, "bad", ""), seen);
  EXPECT_EQ(log.writer->Finish(LogWriter::FinishMode::kUnsynced), seen);
  EXPECT_EQ(log.disk.syncs, syncs);
  EXPECT_EQ(log.disk.writes, writes);
  EXPECT_EQ(log.writer->proven().offset, 0u);
}

TEST(LogWriterTest, AFailedDurableAppendProvesNothing) {
  LogUnderTest log;
  log.disk.sync_error = absl::ResourceExhaustedError("quota at write-back");
  ASSERT_OK(log.writer->Reserve(1));
  EXPECT_CODE(log.writer->AppendDurable(log.writer->proven(), 1, 1, "x", ""), absl::StatusCode::kUnknown);
  EXPECT_EQ(ReadLog(log.disk.bytes).proof, (ProvenPoint{7, 0}));
}

TEST(LogWriterTest, FinishUnsyncedSyncsNothingAndProvesNoMore) {
  LogUnderTest log;
  log.Add("durable", 0, true);
  const ProvenPoint proven = log.writer->proven();
  log.Add("not durable");
  const int syncs = log.disk.syncs;
  ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kUnsynced));
  EXPECT_EQ(log.disk.syncs, syncs);
  EXPECT_EQ(log.disk.bytes.size(), log.writer->offset());
  const LogContents contents = ReadLog(log.disk.bytes);
  EXPECT_EQ(contents.stop, LogStop::kEndMark);
  EXPECT_EQ(contents.stop_offset, log.disk.bytes.size());
  EXPECT_EQ(contents.proof, proven);
  ASSERT_OK(log.writer->SyncData());
  ASSERT_OK(log.writer->NoteSynced(log.writer->offset()));
  EXPECT_EQ(log.writer->proven(), (ProvenPoint{7, log.disk.bytes.size()}));
  EXPECT_EQ(log.disk.bytes.size(), log.writer->offset()) << "nothing follows an end mark";
  EXPECT_CODE(log.writer->Append(log.writer->proven(), 9, 1, "x", ""), absl::StatusCode::kFailedPrecondition);
  EXPECT_CODE(log.writer->Reserve(1), absl::StatusCode::kFailedPrecondition);
  EXPECT_CODE(log.writer->Finish(LogWriter::FinishMode::kSynced), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(log.writer->status());
}

TEST(LogWriterTest, FinishSyncedSyncsBeforeAndAfterItsEndMarkAndProvesItsOwnOffset) {
  LogUnderTest log;
  log.Add("a");
  const uint64_t mark = log.writer->offset();
  const int syncs = log.disk.syncs;
  ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kSynced));
  EXPECT_EQ(log.disk.syncs, syncs + 2);
  EXPECT_EQ(log.disk.closes, 1);
  const LogContents contents = ReadLog(log.disk.bytes);
  EXPECT_EQ(contents.stop, LogStop::kEndMark);
  EXPECT_EQ(contents.proof, (ProvenPoint{7, mark}));
  ExpectRoundTrip(log, LogStop::kEndMark);
}

TEST(LogWriterTest, AFailedTruncateIsSticky) {
  LogUnderTest log;
  log.disk.truncate_error = absl::UnknownError("ftruncate");
  EXPECT_CODE(log.writer->Finish(LogWriter::FinishMode::kUnsynced), absl::StatusCode::kUnknown);
  EXPECT_CODE(log.writer->status(), absl::StatusCode::kUnknown);
}

TEST(LogWriterTest, SyncsRunBesideAppends) {
  LogUnderTest log;
  ASSERT_OK(log.writer->Reserve(64 * kKiB));
  std::atomic<bool> done{false};
  std::thread syncer([&] {
    while (!done.load()) EXPECT_OK(log.writer->SyncData());
  });
  for (int i = 0; i < 2000; ++i) log.Add("record");
  done.store(true);
  syncer.join();
  ExpectRoundTrip(log, LogStop::kZeros);
}

TEST(LogWriterTest, WorksThroughAFileSystem) {
  const std::unique_ptr<FileSystem> files = NewMemFileSystem();
  ASSERT_OK_AND_ASSIGN(auto directory, files->OpenDirectory("db", FileSystem::OpenMode::kCreate, 0600));
  ASSERT_OK_AND_ASSIGN(auto file, directory->CreateLog("000001.log"));
  ASSERT_OK_AND_ASSIGN(auto writer, LogWriter::Create(std::move(file), TestIdentity()));
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(writer->Reserve(300 * kKiB));
    ASSERT_OK(writer->AppendDurable(writer->proven(), 1 + static_cast<uint64_t>(i), 1, "head", std::string(300 * kKiB - 4, 'm')));
  }
  ASSERT_OK(writer->Finish(LogWriter::FinishMode::kSynced));
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<const RandomAccessFile> read, directory->OpenRandomAccess("000001.log"));
  ASSERT_OK_AND_ASSIGN(auto reader, LogReader::Open(read, LogKind::kWriteAheadLog, TestIdentity()));
  LogRecord record;
  int n = 0;
  while (reader->Next(&record)) {
    EXPECT_EQ(record.payload, "head" + std::string(300 * kKiB - 4, 'm'));
    ++n;
  }
  EXPECT_EQ(n, 5);
  EXPECT_TRUE(reader->end_mark_seen()) << reader->stop_reason();
}

}  // namespace
}  // namespace tamis::internal
