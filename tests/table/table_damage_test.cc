// Damaged, cut and forged tables: the right answer or an error, never a wrong or silently missing one, and no allocation beyond the file.

#include "base/epoch.h"
#include "filter/hash.h"
#include "table/block_builder.h"
#include "table/compression.h"
#include "table/table_format.h"
#include "table/table_reader.h"
#include "tests/table/table_test_util.h"

namespace tamis::internal {
namespace {

std::vector<TestEntry> SmallTableEntries() {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::string(static_cast<size_t>(i % 3), '\0') + std::to_string(i / 3);
    entries.push_back({key, static_cast<SequenceNumber>(10 + i), i % 7 == 0 ? EntryKind::kDelete : EntryKind::kPut, ""});
    if (i % 5 == 0) entries.push_back({key, 3, EntryKind::kPut, "older"});
    entries.front().value = "";
    if (entries.back().kind == EntryKind::kPut) entries.back().value = std::string(20, static_cast<char>('a' + i % 3));
  }
  SortUnique(&entries);
  return entries;
}

struct Outcome {
  bool wrong = false;
  bool error = false;  // something was reported
};

// All gets, filter first as the engine does, and scans both ways.
Outcome ReadAll(const std::string& bytes, const std::vector<TestEntry>& entries, bool verify_checksums = true) {
  Outcome outcome;
  const auto opened = OpenTable(bytes);
  if (!opened.ok()) return {false, true};
  const TableReader& table = **opened;
  outcome.error = !table.filter_refusal().ok() || !table.Verify(kTestSeed, {}).ok();
  const TableReadOptions options{.fill_cache = false, .verify_checksums = verify_checksums};
  for (const TestEntry& entry : entries) {
    const uint64_t hash = KeyHash(entry.key, kTestSeed);
    if (!table.filter().MayContain(hash)) outcome.wrong = true;
    const EpochGuard guard;
    TableLookup result;
    if (!table.Get(options, LookupKey(entry.key, entry.sequence, hash), &result).ok()) continue;
    const LookupState expected = entry.kind == EntryKind::kDelete ? LookupState::kDeleted : LookupState::kFound;
    if (result.state != expected || result.sequence != entry.sequence || result.value != entry.value) outcome.wrong = true;
  }
  const auto same = [](const Cursor& cursor, const TestEntry& entry) {
    return cursor.key() == entry.key && cursor.sequence() == entry.sequence && cursor.kind() == entry.kind && cursor.value() == entry.value;
  };
  for (const bool read_ahead : {false, true}) {
    const auto cursor = table.NewCursor(options, read_ahead);
    size_t i = 0;
    for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next(), ++i) {
      if (i >= entries.size() || !same(*cursor, entries[i])) outcome.wrong = true;
    }
    if (cursor->status().ok() && i != entries.size()) outcome.wrong = true;
    size_t back = 0;
    for (cursor->SeekToLast(); cursor->Valid(); cursor->Prev(), ++back) {
      if (back >= entries.size() || !same(*cursor, entries[entries.size() - 1 - back])) outcome.wrong = true;
    }
    if (cursor->status().ok() && back != entries.size()) outcome.wrong = true;
  }
  return outcome;
}

class TableDamageTest : public testing::TestWithParam<Compression> {
 protected:
  const std::vector<TestEntry> entries_ = SmallTableEntries();
  const std::string bytes_ = BuildTable(TestBuildOptions(GetParam(), 300), entries_);
};
INSTANTIATE_TEST_SUITE_P(Compressions, TableDamageTest, testing::Values(Compression::kNone, Compression::kLz4));

TEST_P(TableDamageTest, EveryChangedByteIsReportedAndNeverAnswersWrong) {
  ASSERT_FALSE(ReadAll(bytes_, entries_).wrong);
  ASSERT_FALSE(ReadAll(bytes_, entries_).error);
  for (size_t at = 0; at < bytes_.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff, -1}) {
      std::string damaged = bytes_;
      damaged[at] = change == -1 ? '\0' : static_cast<char>(damaged[at] ^ change);
      if (damaged == bytes_) continue;
      const Outcome outcome = ReadAll(damaged, entries_);
      ASSERT_FALSE(outcome.wrong) << "byte " << at << " of " << bytes_.size() << ", change " << change;
      ASSERT_TRUE(outcome.error) << "byte " << at << " of " << bytes_.size() << ", change " << change;
    }
  }
}

// Without checksums answers may be wrong, but nothing may be read out of bounds (under ASan).
TEST_P(TableDamageTest, WithoutChecksumsDamageIsStillSafe) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    (void)ReadAll(damaged, entries_, /*verify_checksums=*/false);
  }
}

TEST_P(TableDamageTest, EveryCutIsAnErrorNamingTheFile) {
  for (size_t length = 0; length < bytes_.size(); ++length) {
    const absl::Status status = OpenTable(bytes_.substr(0, length)).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << length;
    ASSERT_NE(status.ToString().find("dir/table"), std::string::npos) << status;
  }
}

// The parts of a table, to be put together again with other contents and good checksums.
struct Parts {
  std::string data;  // up to the end of the data blocks
  std::string filter;
  std::string properties;
  std::vector<TestEntry> index;  // values are handles
  Footer footer;
  std::vector<MetaBlock> more;  // optional blocks of type 99 are written with the handle's size as content
  uint32_t filter_type = static_cast<uint32_t>(MetaBlockType::kKeyFilter);
};

std::string_view BlockAt(std::string_view bytes, const BlockHandle& handle) { return bytes.substr(handle.offset, handle.size); }

Parts TakeApart(const std::string& bytes) {
  Parts parts;
  parts.footer = DecodeFooter(std::string_view(bytes).substr(bytes.size() - kFooterBytes), bytes.size(), "t").value();
  const std::vector<MetaBlock> meta = DecodeMetaIndex(BlockAt(bytes, parts.footer.meta_index)).value();
  for (const MetaBlock& block : meta) {
    (block.type == static_cast<uint32_t>(MetaBlockType::kProperties) ? parts.properties : parts.filter) = BlockAt(bytes, block.handle);
  }
  const Block index = Block::Parse(BlockAt(bytes, parts.footer.index)).value();
  BlockCursor cursor;
  cursor.Reset(index);
  for (cursor.SeekToFirst(); cursor.Valid(); cursor.Next()) {
    parts.index.push_back({std::string(cursor.key()), cursor.sequence(), cursor.kind(), std::string(cursor.value())});
  }
  Reader reader(parts.index.back().value);
  BlockHandle last;
  EXPECT_TRUE(DecodeBlockHandle(&reader, &last));
  parts.data = bytes.substr(0, last.offset + last.size + kBlockTrailerBytes);
  return parts;
}

BlockHandle AppendStored(std::string* file, const Id128& id, std::string_view bytes, uint8_t compression = 0) {
  const BlockHandle handle{file->size(), bytes.size()};
  std::string stored(bytes);
  stored.push_back(static_cast<char>(compression));
  PutFixed32(&stored, Checksum32(stored, ChecksumSeed(id, handle.offset)));
  file->append(stored);
  return handle;
}

std::string PutTogether(const Parts& parts) {
  const Id128& id = parts.footer.table_id;
  std::string file = parts.data;
  file.resize((file.size() + 63) / 64 * 64);
  std::vector<MetaBlock> meta = {{parts.filter_type, 0, "", AppendStored(&file, id, parts.filter)}};
  meta.push_back({static_cast<uint32_t>(MetaBlockType::kProperties), 1, "", AppendStored(&file, id, parts.properties)});
  for (MetaBlock block : parts.more) {
    block.handle = AppendStored(&file, id, block.name);
    meta.push_back(block);
  }
  BlockBuilder index;
  for (const TestEntry& entry : parts.index) index.Add(entry.key, entry.sequence, entry.kind, entry.value);
  Footer footer = parts.footer;
  footer.index = AppendStored(&file, id, index.Finish());
  footer.meta_index = AppendStored(&file, id, EncodeMetaIndex(meta));
  footer.file_size = file.size() + kFooterBytes;
  return file + EncodeFooter(footer);
}

std::string WithFooter(std::string bytes, const Footer& footer) {
  return bytes.replace(bytes.size() - kFooterBytes, kFooterBytes, EncodeFooter(footer));
}

// The code of Open; reads never ask for more than the file has.
absl::StatusCode OpenCode(const std::string& bytes) {
  const auto file = std::make_shared<BytesFile>(bytes);
  const absl::Status status = OpenTable(file, TestId(1)).status();
  EXPECT_LE(file->largest_read.load(), bytes.size());
  return status.code();
}

constexpr uint64_t kForged[] = {0x7fffffffu,    uint64_t{1} << 32, (uint64_t{1} << 36) + 1, uint64_t{1} << 63, UINT64_MAX - 5,
                                UINT64_MAX - 4, UINT64_MAX};

TEST_P(TableDamageTest, PuttingItTogetherUnchangedGivesTheSameTable) { ASSERT_EQ(PutTogether(TakeApart(bytes_)), bytes_); }

TEST_P(TableDamageTest, ForgedFooterHandlesAreDataLoss) {
  const Footer good = TakeApart(bytes_).footer;
  for (const uint64_t forged : kForged) {
    for (uint64_t Footer::*const unused : {&Footer::file_size}) {
      Footer footer = good;
      footer.*unused = forged;
      EXPECT_EQ(OpenCode(WithFooter(bytes_, footer)), absl::StatusCode::kDataLoss);
    }
    for (BlockHandle Footer::*const handle : {&Footer::index, &Footer::meta_index}) {
      for (uint64_t BlockHandle::*const field : {&BlockHandle::offset, &BlockHandle::size}) {
        Footer footer = good;
        footer.*handle.*field = forged;
        EXPECT_EQ(OpenCode(WithFooter(bytes_, footer)), absl::StatusCode::kDataLoss);
      }
    }
  }
}

TEST_P(TableDamageTest, ForgedDataHandlesAreDataLoss) {
  const Parts good = TakeApart(bytes_);
  for (size_t i = 0; i < good.index.size(); ++i) {
    Reader reader(good.index[i].value);
    BlockHandle handle;
    ASSERT_TRUE(DecodeBlockHandle(&reader, &handle));
    std::vector<BlockHandle> forged = {{handle.offset + 1, handle.size - 1}, {handle.offset, handle.size + 1}, {0, good.data.size()}};
    for (const uint64_t value : kForged) {
      forged.push_back({value, handle.size});
      forged.push_back({handle.offset, value});
    }
    for (const BlockHandle& bad : forged) {
      Parts parts = good;
      parts.index[i].value.clear();
      EncodeBlockHandle(bad, &parts.index[i].value);
      // A last block that is too long by one byte still lies in the file: its checksum tells.
      const absl::StatusCode code = OpenCode(PutTogether(parts));
      if (code == absl::StatusCode::kOk) {
        EXPECT_EQ(i + 1, good.index.size());
        EXPECT_TRUE(ReadAll(PutTogether(parts), entries_).error);
      } else {
        EXPECT_EQ(code, absl::StatusCode::kDataLoss);
      }
    }
  }
}

TEST_P(TableDamageTest, AForgedMetaHandleIsAnErrorOrARefusedFilter) {
  const Parts good = TakeApart(bytes_);
  for (const uint64_t forged : kForged) {
    std::string file = bytes_.substr(0, good.footer.meta_index.offset);
    std::vector<MetaBlock> meta = DecodeMetaIndex(BlockAt(bytes_, good.footer.meta_index)).value();
    for (MetaBlock& block : meta) {
      const MetaBlock original = block;
      for (uint64_t BlockHandle::*const field : {&BlockHandle::offset, &BlockHandle::size}) {
        block.handle.*field = forged;
        std::string bytes = file;
        Footer footer = good.footer;
        footer.meta_index = AppendStored(&bytes, TestId(1), EncodeMetaIndex(meta));
        footer.file_size = bytes.size() + kFooterBytes;
        bytes += EncodeFooter(footer);
        const auto table = OpenTable(bytes);
        if (block.type == static_cast<uint32_t>(MetaBlockType::kKeyFilter)) {
          ASSERT_OK(table);
          EXPECT_FALSE((*table)->filter_refusal().ok());
          EXPECT_FALSE(ReadAll(bytes, entries_).wrong);
        } else {
          EXPECT_CODE(table, absl::StatusCode::kDataLoss);
        }
        block = original;
      }
    }
  }
}

TEST_P(TableDamageTest, ABlockThatDeclaresAHugeRawSizeIsDataLoss) {
  Parts parts = TakeApart(bytes_);
  for (const uint64_t raw : {uint64_t{0}, uint64_t{1}, uint64_t{5000}, uint64_t{0x7fffffff}, uint64_t{1} << 32, uint64_t{1} << 63}) {
    parts.data.clear();
    std::string stored;
    PutVarint64(&stored, raw);
    stored.append(10, 'x');
    const BlockHandle handle = AppendStored(&parts.data, TestId(1), stored, 1);
    TestEntry entry = parts.index.back();
    entry.value.clear();
    EncodeBlockHandle(handle, &entry.value);
    parts.index = {entry};
    // The properties name more blocks than one: take a table that has one.
    Parts one = TakeApart(BuildTable(TestBuildOptions(Compression::kNone, 4096), {{"key", 9, EntryKind::kPut, "v"}}));
    one.data = parts.data;
    one.index = parts.index;
    ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(PutTogether(one)));
    const EpochGuard guard;
    TableLookup result;
    EXPECT_CODE(table->Get({}, LookupKey("key", 9, 0), &result), absl::StatusCode::kDataLoss);
    EXPECT_FALSE(table->Verify(kTestSeed, {}).ok());
  }
}

TEST_P(TableDamageTest, AnotherTablesFilterIsRefusedAndTheTableStillAnswers) {
  TableBuildOptions options = TestBuildOptions(GetParam(), 300);
  options.table_id = TestId(2);
  const Parts other = TakeApart(BuildTable(options, {{"only", 1, EntryKind::kPut, ""}}));
  Parts parts = TakeApart(bytes_);
  parts.filter = other.filter;
  const std::string bytes = PutTogether(parts);
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTable(bytes));
  EXPECT_CODE(table->filter_refusal(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(table->filter().has_filter());
  const Outcome outcome = ReadAll(bytes, entries_);
  EXPECT_FALSE(outcome.wrong);
  EXPECT_TRUE(outcome.error);
}

TEST_P(TableDamageTest, UnknownOptionalPartsAreSkippedAndRequiredOnesUnimplemented) {
  Parts parts = TakeApart(bytes_);
  parts.more = {{99, 0, "later thing", {}}, {static_cast<uint32_t>(MetaBlockType::kPrefixFilter), 0, "rule", {}}};
  const auto skipped = OpenTable(PutTogether(parts));
  ASSERT_OK(skipped);
  EXPECT_OK((*skipped)->Verify(kTestSeed, {}));
  parts.more[0].flags = kMetaBlockRequired;
  const absl::Status status = OpenTable(PutTogether(parts)).status();
  EXPECT_CODE(status, absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.ToString().find("99"), std::string::npos) << status;
  parts.more.clear();
  parts.footer.required_features = 4;
  EXPECT_EQ(OpenCode(PutTogether(parts)), absl::StatusCode::kUnimplemented);
  parts.footer.required_features = 0;
  parts.footer.optional_features = 4;
  EXPECT_EQ(OpenCode(PutTogether(parts)), absl::StatusCode::kOk);
}

TEST_P(TableDamageTest, VerifyComparesPropertiesFilterAndIndexWithTheEntries) {
  const Parts good = TakeApart(bytes_);
  const auto verify = [](const Parts& parts) -> absl::Status {
    const auto table = OpenTable(PutTogether(parts));
    if (!table.ok()) return table.status();
    EXPECT_OK((*table)->filter_refusal());
    return (*table)->Verify(kTestSeed, {});
  };
  ASSERT_OK(verify(good));
  TableProperties properties = DecodeTableProperties(good.properties).value();
  ++properties.deletes;
  Parts parts = good;
  parts.properties = EncodeTableProperties(properties);
  EXPECT_CODE(verify(parts), absl::StatusCode::kDataLoss);

  // A filter of this table's id and number of keys, but of other keys.
  std::vector<TestEntry> others = entries_;
  for (TestEntry& entry : others) entry.key.insert(0, "other");
  parts = good;
  parts.filter = TakeApart(BuildTable(TestBuildOptions(GetParam(), 300), others)).filter;
  EXPECT_CODE(verify(parts), absl::StatusCode::kDataLoss);

  // An index key before its block's last entry: the entry would not be found.
  parts = good;
  parts.index[0].key.clear();
  parts.index[0].sequence = 1;
  EXPECT_CODE(verify(parts), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis::internal
