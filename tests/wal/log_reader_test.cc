#include "wal/log_reader.h"

#include "tests/wal/log_test_util.h"

namespace tamis::internal {
namespace {

std::string Varints(std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (const uint64_t value : values) PutVarint64(&bytes, value);
  return bytes;
}

// Stores a fragment with a right checksum at `offset` and returns its end.
uint64_t Forge(std::string* bytes, uint64_t offset, uint8_t type, std::string_view payload, uint8_t reserved = 0,
               uint64_t log_id = TestIdentity().log_id) {
  bytes->resize(std::max<size_t>(bytes->size(), offset + kFragmentHeaderBytes + payload.size()));
  char* at = bytes->data() + offset;
  StoreLittle<uint16_t>(at + 4, static_cast<uint16_t>(payload.size()));
  at[6] = static_cast<char>(type);
  at[7] = static_cast<char>(reserved);
  std::memcpy(at + 8, payload.data(), payload.size());
  StoreLittle<uint32_t>(at, Checksum32(std::string_view(at + 4, payload.size() + 4), ChecksumSeed(log_id, offset)));
  return offset + kFragmentHeaderBytes + payload.size();
}

std::string EmptyLog() {
  LogUnderTest log;
  return log.Used();
}

TEST(LogReaderTest, AnEmptyLogStopsAtItsHeader) {
  LogUnderTest log;
  const LogContents preallocated = ReadLog(log.disk.bytes);
  EXPECT_EQ(preallocated.stop, LogStop::kZeros);
  EXPECT_EQ(preallocated.stop_offset, kLogHeaderBytes);
  EXPECT_EQ(ReadLog(log.Used()).stop, LogStop::kZeros) << "perhaps no zeros at all";
}

TEST(LogReaderTest, DamageOfAnyByteOfTheHeaderIsRefused) {
  const std::string good = EmptyLog();
  for (size_t at = 0; at < kLogHeaderBytes; ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      EXPECT_CODE(LogReader::Open(std::make_shared<StringFile>(bytes), LogKind::kWriteAheadLog, std::nullopt), absl::StatusCode::kDataLoss);
    }
  }
  for (size_t size = 0; size < kLogHeaderBytes; ++size) {
    EXPECT_CODE(LogReader::Open(std::make_shared<StringFile>(good.substr(0, size)), LogKind::kWriteAheadLog, std::nullopt),
                absl::StatusCode::kDataLoss);
  }
  EXPECT_CODE(LogReader::Open(std::make_shared<StringFile>(std::string(4096, 0)), LogKind::kWriteAheadLog, std::nullopt),
              absl::StatusCode::kDataLoss);
}

TEST(LogReaderTest, ANewerVersionIsUnimplementedAndNamesBoth) {
  std::string bytes = EmptyLog();
  StoreLittle<uint32_t>(bytes.data() + 8, 41);
  StoreLittle<uint64_t>(bytes.data() + 56, Checksum64(std::string_view(bytes).substr(0, 56)));
  const auto opened = LogReader::Open(std::make_shared<StringFile>(bytes), LogKind::kWriteAheadLog, std::nullopt);
  EXPECT_CODE(opened, absl::StatusCode::kUnimplemented);
  EXPECT_NE(opened.status().ToString().find("41 is newer than 1"), std::string::npos) << opened.status();
}

TEST(LogReaderTest, AnotherFileInItsPlaceIsRefused) {
  const auto open = [](LogKind kind, const LogIdentity& expected) {
    return LogReader::Open(std::make_shared<StringFile>(EmptyLog()), kind, expected);
  };
  EXPECT_OK(open(LogKind::kWriteAheadLog, TestIdentity()));
  EXPECT_CODE(open(LogKind::kManifest, TestIdentity()), absl::StatusCode::kDataLoss);
  LogIdentity identity = TestIdentity();
  identity.log_number = 8;
  EXPECT_CODE(open(LogKind::kWriteAheadLog, identity), absl::StatusCode::kDataLoss);
  identity = TestIdentity();
  identity.log_id ^= 1;
  EXPECT_CODE(open(LogKind::kWriteAheadLog, identity), absl::StatusCode::kDataLoss);
  identity = TestIdentity();
  identity.database_id[15] ^= 1;
  EXPECT_CODE(open(LogKind::kWriteAheadLog, identity), absl::StatusCode::kDataLoss);
}

TEST(LogReaderTest, RecordsOfAnotherLogNeverPass) {
  // The bytes behind the header come from a log with another id, as of a recycled block.
  LogUnderTest mine;
  LogUnderTest other(TestIdentity(8));
  for (int i = 0; i < 50; ++i) other.Add(std::string(1000, 'o'), 0, i % 10 == 0);
  std::string bytes = mine.Used() + other.disk.bytes.substr(kLogHeaderBytes);
  const LogContents contents = ReadLog(bytes);
  EXPECT_TRUE(contents.records.empty());
  EXPECT_EQ(contents.stop, LogStop::kDamaged);
  EXPECT_EQ(contents.proof, ProvenPoint{});
}

TEST(LogReaderTest, RecordsAtAnotherPlaceNeverPass) {
  LogUnderTest log;
  log.Add(std::string(92, 'a'));
  log.Add(std::string(92, 'b'));
  std::string bytes = log.Used();
  const size_t size = log.records[0].end_offset - log.records[0].offset;
  bytes.append(bytes.substr(kLogHeaderBytes, size));  // the first record once more
  const LogContents contents = ReadLog(bytes);
  EXPECT_EQ(ExpectPrefix(contents.records, log.records, "copy"), 2u);
  EXPECT_EQ(contents.stop, LogStop::kDamaged);
}

TEST(LogReaderTest, BytesBehindAnEndMarkAreDamageUnlessTheyAreZerosNotYetCutOff) {
  for (const auto& [filler, expected] : {std::pair{'\0', LogStop::kEndMark}, std::pair{'x', LogStop::kDamaged}}) {
    LogUnderTest log;
    log.Add("a");
    ASSERT_OK(log.writer->Finish(LogWriter::FinishMode::kUnsynced));
    const LogContents contents = ReadLog(log.disk.bytes + std::string(300000, filler));
    EXPECT_EQ(contents.records.size(), 1u);
    EXPECT_EQ(contents.stop, expected);
    EXPECT_EQ(contents.stop_offset, log.disk.bytes.size());
  }
}

TEST(LogReaderTest, OneByteFarBehindTheEndIsDamage) {
  LogUnderTest log;
  log.Add("a");
  log.disk.bytes.back() = 1;  // 256 KiB on
  const LogContents contents = ReadLog(log.disk.bytes);
  EXPECT_EQ(contents.stop, LogStop::kDamaged);
  EXPECT_EQ(contents.stop_offset, log.records[0].end_offset);
}

TEST(LogReaderTest, PaddingThatIsNotZeroIsDamage) {
  LogUnderTest log;
  log.Add(std::string(kLogBlockBytes - kLogHeaderBytes - kFragmentHeaderBytes - 4 - 20, 'p'));
  ASSERT_EQ(log.writer->offset(), kLogBlockBytes - 20);
  log.Add("next block", 0, true);
  for (size_t at = kLogBlockBytes - 20; at < kLogBlockBytes; ++at) {
    std::string bytes = log.disk.bytes;
    bytes[at] = 1;
    const LogContents contents = ReadLog(bytes);
    EXPECT_EQ(contents.records.size(), 1u);
    EXPECT_EQ(contents.stop, LogStop::kDamaged);
    EXPECT_EQ(contents.stop_offset, kLogBlockBytes - 20);
    EXPECT_TRUE(ProvesLossOf(contents.proof, 7, contents.stop_offset));
  }
  EXPECT_EQ(ReadLog(log.disk.bytes.substr(0, kLogBlockBytes - 7)).stop, LogStop::kZeros) << "cut within the padding";
}

TEST(LogReaderTest, ARecordWhoseRestIsMissingIsTornWhereItStarts) {
  LogUnderTest log;
  log.Add("first");
  log.Add(std::string(100000, 't'));
  const OwnedRecord& torn = log.records[1];
  std::string zeros = log.disk.bytes;
  std::fill(zeros.begin() + 2 * kLogBlockBytes, zeros.end(), '\0');
  std::string hole = log.disk.bytes;
  std::fill(hole.begin() + kLogBlockBytes, hole.begin() + 2 * kLogBlockBytes, '\0');
  for (const std::string& bytes : {zeros, hole, log.disk.bytes.substr(0, kLogBlockBytes), log.disk.bytes.substr(0, torn.end_offset - 1)}) {
    const LogContents contents = ReadLog(bytes);
    EXPECT_EQ(ExpectPrefix(contents.records, log.records, "torn"), 1u);
    EXPECT_EQ(contents.stop, LogStop::kDamaged);
    EXPECT_EQ(contents.stop_offset, torn.offset);
    EXPECT_NE(contents.stop_reason.find("torn"), std::string::npos) << contents.stop_reason;
  }
}

TEST(LogReaderTest, ValidFragmentsInAnIllegalOrderAreDamage) {
  const std::string head = Varints({0, 0, 1, 1});
  const std::string fill = head + std::string(kLogBlockBytes - kLogHeaderBytes - kFragmentHeaderBytes - head.size(), 'f');
  const std::string block(kMaxFragmentPayload, 'm');
  struct Step {
    uint8_t type;
    std::string payload;
  };
  const std::vector<std::vector<Step>> cases = {
      {{3, "middle first"}},
      {{4, "last first"}},
      {{1, head}, {4, "last after whole"}},
      {{2, head + "not to the block's end"}, {4, "last"}},
      {{2, fill}, {1, head + "whole within"}},
      {{2, fill}, {2, head + "first within"}},
      {{2, fill}, {6, Varints({0, 0, 0, 0})}},
      {{2, fill}, {5, Varints({0, 0, 0, 0})}},
      {{2, fill}, {3, block}, {3, "short middle"}, {4, "last"}},
      {{0, head}},
      {{7, head}},
      {{255, head}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string bytes = EmptyLog();
    uint64_t at = kLogHeaderBytes;
    for (const Step& step : cases[i]) at = Forge(&bytes, at, step.type, step.payload);
    const LogContents contents = ReadLog(bytes);
    EXPECT_EQ(contents.stop, LogStop::kDamaged) << "case " << i;
    EXPECT_EQ(contents.records.size(), i == 2 ? 1u : 0u) << "case " << i;
  }
  std::string good = EmptyLog();  // that the forger can also make a good one
  Forge(&good, Forge(&good, Forge(&good, kLogHeaderBytes, 2, fill), 3, block), 4, "last");
  EXPECT_EQ(ReadLog(good).records.size(), 1u);
}

TEST(LogReaderTest, RecordHeadsThatCannotBeAreDamage) {
  const uint64_t max = UINT64_MAX;
  const std::vector<std::pair<uint8_t, std::string>> cases = {
      {1, ""},
      {1, Varints({0, 0, 1})},
      {1, std::string(11, '\x80')},
      {1, Varints({8, 0, 1, 1})},  // log -1
      {1, Varints({max, 0, 1, 1})},
      {1, Varints({0, kLogHeaderBytes + 1, 1, 1})},  // proves itself
      {1, Varints({0, 0, max, 1})},                  // sequences overflow
      {1, Varints({0, 0, 1, uint64_t{1} << 32})},    // count beyond 32 bits
      {5, Varints({0, 0, 0, 1})},
      {5, Varints({0, 0, 0, 0}) + "x"},
      {6, Varints({0, 0, 0, 0}) + "x"},
      {6, Varints({0, 0, 0, 3})},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string bytes = EmptyLog();
    Forge(&bytes, kLogHeaderBytes, cases[i].first, cases[i].second);
    const LogContents contents = ReadLog(bytes);
    EXPECT_TRUE(contents.records.empty()) << "case " << i;
    EXPECT_EQ(contents.stop, LogStop::kDamaged) << "case " << i;
    EXPECT_EQ(contents.proof, ProvenPoint{}) << "case " << i;
  }
  std::string reserved = EmptyLog();
  Forge(&reserved, kLogHeaderBytes, 1, Varints({0, 0, 1, 1}), 1);
  EXPECT_EQ(ReadLog(reserved).stop, LogStop::kDamaged);
  std::string good = EmptyLog();
  Forge(&good, kLogHeaderBytes, 1, Varints({7, 5, 1, 1}));
  EXPECT_EQ(ReadLog(good).records.size(), 1u);
  EXPECT_EQ(ReadLog(good).proof, (ProvenPoint{0, 5}));
}

TEST(LogReaderTest, AFragmentLengthBeyondTheBlockOrFileIsDamage) {
  for (const size_t file_bytes : {size_t{100}, size_t{40000}}) {
    for (const uint16_t length : {uint16_t{93}, uint16_t{32697}, uint16_t{65535}}) {
      std::string bytes = EmptyLog();
      bytes.resize(file_bytes);
      StoreLittle<uint16_t>(bytes.data() + kLogHeaderBytes + 4, length);
      bytes[kLogHeaderBytes + 6] = 1;
      EXPECT_EQ(ReadLog(bytes).stop, LogStop::kDamaged);
    }
  }
}

TEST(LogReaderTest, AReadErrorIsAnErrorAndNeverAnEnd) {
  LogUnderTest log;
  for (int i = 0; i < 100; ++i) log.Add(std::string(1000, 'e'));
  for (const uint64_t from : {uint64_t{kLogBlockBytes}, uint64_t{3 * kLogBlockBytes}, uint64_t{200000}}) {
    auto file = std::make_shared<StringFile>(log.disk.bytes);
    file->FailFrom(from);
    ASSERT_OK_AND_ASSIGN(auto reader, LogReader::Open(file, LogKind::kWriteAheadLog, std::nullopt));
    LogRecord record;
    size_t n = 0;
    while (reader->Next(&record)) ++n;
    EXPECT_CODE(reader->status(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(reader->stop(), LogStop::kNone);
    EXPECT_FALSE(reader->Next(&record));
    EXPECT_LE(n, 100u);
    EXPECT_CODE(reader->ScanForProof(), absl::StatusCode::kDataLoss);
  }
}

TEST(LogReaderTest, ScanFindsProofBehindDamageOfWholeBlocks) {
  Random random(5);
  LogUnderTest log;
  for (int i = 0; i < 40; ++i) log.Add(RandomBytes(random, random.Uniform(20000)), 0, i % 8 == 7);
  std::string bytes = log.disk.bytes;
  for (size_t at = kLogBlockBytes; at < 4 * kLogBlockBytes; ++at) bytes[at] = static_cast<char>(random.Next());
  const LogContents contents = ReadLog(bytes);
  EXPECT_LT(ExpectPrefix(contents.records, log.records, "blocks"), 40u);
  EXPECT_EQ(contents.stop, LogStop::kDamaged);
  EXPECT_FALSE(ProvesLossOf(contents.proof_before_scan, 7, contents.stop_offset));
  EXPECT_TRUE(ProvesLossOf(contents.proof, 7, contents.stop_offset));
  EXPECT_EQ(contents.proof, log.writer->proven());
}

TEST(LogReaderTest, AHoleInANeverSyncedLogProvesNothing) {
  // A power cut on ext4 may leave page 0 of a mapped log zero and page 5 there.
  LogUnderTest log;
  for (int i = 0; i < 200; ++i) log.Add(std::string(1000, 'h'));
  for (size_t page = 0; page < 20; ++page) {
    std::string bytes = log.disk.bytes;
    const size_t from = std::max<size_t>(page * 4096, kLogHeaderBytes);
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(page * 4096 + 4096), '\0');
    const LogContents contents = ReadLog(bytes);
    EXPECT_LT(ExpectPrefix(contents.records, log.records, "hole"), 200u);
    EXPECT_EQ(contents.stop, LogStop::kDamaged);
    EXPECT_FALSE(ProvesLossOf(contents.proof, 7, contents.stop_offset));
  }
}

TEST(LogReaderTest, ScanOfAHostileFileIsBounded) {
  // Every fourth byte looks like the start of a fragment of 16 KiB: without a budget 64 MiB would take 130 GB of checksums.
  std::string bytes = EmptyLog();
  bytes.resize(64 << 20);
  for (size_t i = kLogHeaderBytes; i + 4 <= bytes.size(); i += 4) StoreLittle<uint32_t>(bytes.data() + i, 0x00013f3f);
  const LogContents contents = ReadLog(bytes);
  EXPECT_TRUE(contents.records.empty());
  EXPECT_EQ(contents.proof, ProvenPoint{});
}

TEST(LogReaderTest, ProvesLossComparesLogsThenOffsets) {
  EXPECT_TRUE(ProvesLossOf({8, 0}, 7, 1000));
  EXPECT_TRUE(ProvesLossOf({7, 1001}, 7, 1000));
  EXPECT_FALSE(ProvesLossOf({7, 1000}, 7, 1000));
  EXPECT_FALSE(ProvesLossOf({6, 5000}, 7, 1000));
}

}  // namespace
}  // namespace tamis::internal
