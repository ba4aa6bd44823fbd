// Sweeps: every cut, every flipped byte, every garbled suffix of small logs.

#include "tests/wal/log_test_util.h"

namespace tamis::internal {
namespace {

// Small records of all kinds, some durable, one over two block edges.
void Fill(LogUnderTest& log, uint64_t seed, bool durable) {
  Random random(seed);
  for (int i = 0; i < 30; ++i) {
    const size_t size = random.Uniform(120);
    log.Add(RandomBytes(random, size), random.Uniform(size + 1), durable && i % 6 == 5);
  }
}

// How many of `records` end at or before `offset`.
size_t Whole(const std::vector<OwnedRecord>& records, uint64_t offset) {
  size_t n = 0;
  while (n < records.size() && records[n].end_offset <= offset) ++n;
  return n;
}

TEST(LogDamageTest, ACutAtEveryByteKeepsExactlyTheWholeRecords) {
  LogUnderTest log;
  Fill(log, 11, true);
  const std::string bytes = log.Used();
  size_t torn = 0;
  for (size_t size = kLogHeaderBytes; size <= bytes.size(); ++size) {
    const LogContents contents = ReadLog(bytes.substr(0, size));
    const size_t whole = Whole(log.records, size);
    ASSERT_EQ(ExpectPrefix(contents.records, log.records, "cut"), whole) << size;
    ASSERT_GE(contents.stop_offset, whole == 0 ? kLogHeaderBytes : log.records[whole - 1].end_offset);
    const std::string rest = bytes.substr(contents.stop_offset, size - contents.stop_offset);
    const bool zeros = rest.find_first_not_of('\0') == std::string::npos;
    ASSERT_EQ(contents.stop, zeros ? LogStop::kZeros : LogStop::kDamaged) << size << ": " << contents.stop_reason;
    ASSERT_FALSE(ProvesLossOf(contents.proof, 7, contents.stop_offset)) << "a cut takes the proof with it";
    torn += zeros ? 0 : 1;
  }
  EXPECT_GT(torn, bytes.size() / 2);
}

TEST(LogDamageTest, ACutAroundEveryEdgeOfARecordOfSeveralBlocksKeepsExactlyTheWholeRecords) {
  LogUnderTest log;
  log.Add("before");
  log.Add(std::string(3 * kLogBlockBytes, 'L'), 10, true);
  log.Add("after");
  const std::string bytes = log.Used();
  for (size_t size = kLogHeaderBytes; size <= bytes.size(); ++size) {
    const size_t in_block = size % kLogBlockBytes;
    if (in_block > 100 && in_block < kLogBlockBytes - 100 && size + 200 < bytes.size()) continue;
    const LogContents contents = ReadLog(bytes.substr(0, size));
    ASSERT_EQ(ExpectPrefix(contents.records, log.records, "cut"), Whole(log.records, size)) << size;
    ASSERT_NE(contents.stop, LogStop::kEndMark);
  }
}

TEST(LogDamageTest, ACutOfAClosedLogLosesItsEndMark) {
  LogUnderTest log;
  Fill(log, 13, true);
  ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kSynced));
  for (size_t size = kLogHeaderBytes; size < log.disk.bytes.size(); ++size) {
    ASSERT_NE(ReadLog(log.disk.bytes.substr(0, size)).stop, LogStop::kEndMark) << size;
  }
  EXPECT_EQ(ReadLog(log.disk.bytes).stop, LogStop::kEndMark);
}

TEST(LogDamageTest, ZerosOrGarbageFromAnyPlaceLeaveAnExactPrefix) {
  Random random(14);
  LogUnderTest log;
  for (int i = 0; i < 100; ++i) log.Add(RandomBytes(random, random.Uniform(1500)), 0, i % 20 == 19);
  const std::string bytes = log.Used();
  for (size_t from = 512; from < bytes.size(); from += 512) {
    std::string zeroed = bytes;
    std::fill(zeroed.begin() + static_cast<ptrdiff_t>(from), zeroed.end(), '\0');
    const LogContents zeros = ReadLog(zeroed);
    ASSERT_EQ(ExpectPrefix(zeros.records, log.records, "zeros"), Whole(log.records, from));
    std::string garbled = bytes;
    for (size_t i = from; i < garbled.size(); ++i) garbled[i] = static_cast<char>(random.Next());
    const LogContents garbage = ReadLog(garbled);
    ASSERT_EQ(ExpectPrefix(garbage.records, log.records, "garbage"), Whole(log.records, from));
    ASSERT_EQ(garbage.stop, LogStop::kDamaged);
    ASSERT_FALSE(ProvesLossOf(zeros.proof, 7, zeros.stop_offset));
  }
}

TEST(LogDamageTest, ZerosAppendedLoseNothing) {
  for (const size_t more : {size_t{1}, size_t{512}, size_t{64 * 1024}}) {
    LogUnderTest log;
    Fill(log, 15, false);
    const LogContents contents = ReadLog(log.Used() + std::string(more, '\0'));
    EXPECT_EQ(ExpectPrefix(contents.records, log.records, "appended"), log.records.size());
    EXPECT_EQ(contents.stop, LogStop::kZeros);
    EXPECT_EQ(contents.stop_offset, log.writer->offset());
  }
}

struct FlipCount {
  size_t flips = 0;
  size_t below_proof = 0;
  size_t detected = 0;
};

// Flips every byte behind the header in four ways and checks what must hold for each. `step` > 1 samples.
FlipCount SweepFlips(const LogUnderTest& log, const std::string& bytes, size_t step) {
  FlipCount count;
  const ProvenPoint proof = ReadLog(bytes).proof;
  for (size_t at = kLogHeaderBytes; at < bytes.size(); at += step) {
    for (const int flip : {0x01, 0x08, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const LogContents contents = ReadLog(damaged);
      // Exactly the records before the flip; the one it hits and all later ones are gone, none is changed.
      EXPECT_EQ(ExpectPrefix(contents.records, log.records, "flip"), Whole(log.records, at)) << at;
      EXPECT_NE(contents.stop, LogStop::kEndMark) << at;
      EXPECT_LE(contents.stop_offset, at);
      ++count.flips;
      if (at < proof.offset) {
        ++count.below_proof;
        count.detected += ProvesLossOf(contents.proof, proof.log_number, contents.stop_offset) ? 1 : 0;
      } else {
        EXPECT_FALSE(ProvesLossOf(contents.proof, proof.log_number, contents.stop_offset)) << at;
      }
      if (::testing::Test::HasFailure()) return count;
    }
  }
  return count;
}

TEST(LogDamageTest, EveryFlipBelowTheLastProofIsProvenDamage) {
  LogUnderTest log;
  Fill(log, 16, true);
  const FlipCount count = SweepFlips(log, log.Used() + std::string(100, '\0'), 1);
  EXPECT_GT(count.below_proof, 8000u);
  EXPECT_EQ(count.detected, count.below_proof);
  RecordProperty("flips", static_cast<int>(count.flips));
  RecordProperty("below_proof", static_cast<int>(count.below_proof));
}

TEST(LogDamageTest, EveryFlipOfAClosedLogIsProvenDamage) {
  LogUnderTest log;
  Fill(log, 17, false);
  ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kSynced));
  const FlipCount count = SweepFlips(log, log.disk.bytes, 1);
  EXPECT_EQ(count.detected, count.below_proof);
  EXPECT_GT(count.below_proof, 4000u);
}

TEST(LogDamageTest, FlipsInALogOfManyBlocksAreProvenDamage) {
  Random random(18);
  LogUnderTest log;
  for (int i = 0; i < 12; ++i) log.Add(RandomBytes(random, random.Uniform(40000)), 0, i % 4 == 3);
  const FlipCount count = SweepFlips(log, log.Used(), 509);
  EXPECT_EQ(count.detected, count.below_proof);
  EXPECT_GT(count.below_proof, 500u);
}

TEST(LogDamageTest, ALaterLogProvesLossInAnEarlierOne) {
  // Rotation: log 5 ends unsynced; its owner syncs it; the first record of log 6 says so.
  LogUnderTest five(TestIdentity(5));
  Fill(five, 19, false);
  ASSERT_OK(five.writer->Finish(LogWriter::FinishMode::kUnsynced));
  LogUnderTest six(TestIdentity(6));
  six.Add("before the sync of log 5", 0, false, ProvenPoint{5, 0});
  EXPECT_EQ(ReadLog(six.disk.bytes).proof, (ProvenPoint{5, 0}));
  ASSERT_OK(five.writer->SyncData());
  ASSERT_OK(five.writer->NoteSynced(five.writer->offset()));
  six.Add("after", 0, true, five.writer->proven());
  const ProvenPoint later = ReadLog(six.disk.bytes).proof;
  ASSERT_GE(later, five.writer->proven());

  const std::string& bytes = five.disk.bytes;
  const LogContents whole = ReadLog(bytes);
  EXPECT_EQ(whole.stop, LogStop::kEndMark);
  EXPECT_FALSE(ProvesLossOf(five.writer->proven(), 5, whole.stop_offset));
  for (size_t size = kLogHeaderBytes; size < bytes.size(); ++size) {
    const LogContents cut = ReadLog(bytes.substr(0, size));
    ASSERT_FALSE(ProvesLossOf(cut.proof, 5, cut.stop_offset)) << "not by itself";
    ASSERT_TRUE(ProvesLossOf(later, 5, cut.stop_offset)) << size;
    ASSERT_TRUE(ProvesLossOf(five.writer->proven(), 5, cut.stop_offset)) << size;
  }
  for (size_t at = kLogHeaderBytes; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    ASSERT_TRUE(ProvesLossOf(later, 5, ReadLog(flipped).stop_offset)) << at;
  }
}

TEST(LogDamageTest, GarbageBehindAHeaderIsNeverARecord) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    LogUnderTest log;
    std::string bytes = log.Used() + RandomBytes(random, random.Uniform(70000));
    // Plausible types and reserved bytes, so that more of the decoder is reached.
    for (size_t at = kLogHeaderBytes; at + 8 < bytes.size(); at += 8) {
      bytes[at + 6] = static_cast<char>(1 + random.Uniform(6));
      bytes[at + 7] = 0;
    }
    const LogContents contents = ReadLog(bytes);
    EXPECT_TRUE(contents.records.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tamis::internal
