#include "engine/version/manifest.h"

#include "base/coding.h"
#include "base/random.h"
#include "base/status_util.h"
#include "engine/version/file_names.h"
#include "tests/engine/version_test_util.h"
#include "wal/log_reader.h"

namespace tamis::internal {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;

TableMeta Table(uint64_t number) {
  TableMeta table;
  table.number = number;
  table.id = Id128{static_cast<uint8_t>(number), static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number >> 16), 9};
  table.size = 1000;
  table.smallest = Concat("key", number * 2 + 1000000);
  table.largest = Concat("key", number * 2 + 1000001);
  table.smallest_sequence = 1;
  table.largest_sequence = 9;
  table.entries = table.distinct_keys = 5;
  return table;
}

VersionEdit AddTable(uint64_t number) {
  VersionEdit edit;
  edit.next_file_number = number + 1;
  edit.flushed_sequence = number * 10;
  edit.added.emplace_back(0, Table(number));
  return edit;
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class ManifestTest : public VersionTest {
 protected:
  ManifestTest() {
    state_.identity = {Id128{1, 2, 3}, 42};
    state_.next_file_number = 10;
  }
  absl::StatusOr<std::unique_ptr<Manifest>> Create(uint64_t number, uint64_t temporary) {
    return Manifest::Create(directory_.get(), number, temporary, state_, random_.get());
  }
  // A manifest of `edits` edits behind its snapshot; remembers the state after each and the file as it was then.
  void Fill(int edits) {
    ASSERT_OK_AND_ASSIGN(auto manifest, Create(1, 2));
    Note(*manifest);
    for (int i = 0; i < edits; ++i) {
      const VersionEdit edit = AddTable(state_.next_file_number);
      ASSERT_OK(manifest->Append(edit));
      ASSERT_OK(state_.Apply(edit));
      Note(*manifest);
    }
    bytes_ = ReadFile(ManifestName(1));
  }
  void Note(const Manifest& manifest) {
    states_.push_back(state_.Snapshot().Encode());
    ends_.push_back(manifest.bytes());
  }
  // Which of the remembered states this is, or -1.
  int Which(const ManifestState& state) const {
    const auto at = std::find(states_.begin(), states_.end(), state.Snapshot().Encode());
    return at == states_.end() ? -1 : static_cast<int>(at - states_.begin());
  }

  ManifestState state_;
  const std::unique_ptr<RandomSource> random_ = RandomSource::Seeded(1);
  std::vector<std::string> states_;
  std::vector<uint64_t> ends_;  // behind the proof of each edit
  std::string bytes_;
};

TEST_F(ManifestTest, WhatIsAppendedIsRead) {
  Fill(5);
  ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
  EXPECT_EQ(contents.edits, 6u);
  EXPECT_EQ(contents.manifest_number, 1u);
  EXPECT_EQ(contents.bytes_dropped, 0u);
  EXPECT_EQ(Which(contents.state), 5);
  EXPECT_GT(contents.last_record_end, ends_[4]);
  EXPECT_LE(contents.last_record_end, ends_[5]);
  EXPECT_FALSE(Exists(TemporaryName(2)));
  ASSERT_OK_AND_ASSIGN(const std::string current, ReadCurrent(*directory_));
  EXPECT_EQ(current, "MANIFEST-000001");
}

TEST_F(ManifestTest, FinishedManifestReadsTheSameAndIsSmall) {
  ASSERT_OK_AND_ASSIGN(auto manifest, Create(1, 2));
  ASSERT_OK(manifest->Append(AddTable(10)));
  ASSERT_OK(manifest->Finish());
  EXPECT_LT(ReadFile(ManifestName(1)).size(), 1000u);
  ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
  EXPECT_EQ(contents.edits, 2u);
  EXPECT_CODE(manifest->Append(AddTable(11)), Code::kFailedPrecondition);
}

TEST_F(ManifestTest, CurrentIsSpelledAsDocumented) {
  Fill(0);
  const std::string text = ReadFile(kCurrentName);
  const std::string head = "tamis 1 MANIFEST-000001 ";
  ASSERT_EQ(text.size(), head.size() + 17);
  EXPECT_EQ(text.substr(0, head.size()), head);
  EXPECT_EQ(text.substr(head.size()), absl::StrCat(absl::Hex(Checksum64(head), absl::kZeroPad16), "\n"));
}

TEST_F(ManifestTest, RollOverKeepsTheStateAndWhatAFutureVersionWrote) {
  // A future version's optional fields, in the edit and in the table.
  ASSERT_OK_AND_ASSIGN(auto first, Create(1, 2));
  VersionEdit edit = AddTable(10);
  edit.unknown = {{500, "from the future"}};
  edit.added[0].second.unknown = {{502, "also"}};
  edit.optional_features = uint64_t{1} << 63;
  ASSERT_OK(first->Append(edit));
  ASSERT_OK_AND_ASSIGN(const ManifestContents before, ReadManifest(*directory_));
  state_ = before.state;
  ASSERT_OK_AND_ASSIGN(auto second, Create(3, 4));
  ASSERT_OK(directory_->Remove(ManifestName(1)));
  ASSERT_OK_AND_ASSIGN(const ManifestContents after, ReadManifest(*directory_));
  EXPECT_EQ(after.manifest_number, 3u);
  EXPECT_EQ(after.edits, 1u);
  EXPECT_EQ(after.state.Snapshot().Encode(), before.state.Snapshot().Encode());
  EXPECT_EQ(after.state.unknown, edit.unknown);
  EXPECT_EQ(after.state.levels[0].at(10).unknown, edit.added[0].second.unknown);
  EXPECT_EQ(after.state.optional_features, uint64_t{1} << 63);
}

TEST_F(ManifestTest, ATreeOfAHundredThousandTablesIsOneRecord) {
  for (uint64_t i = 10; i < 100010; ++i) state_.levels[i % 2 + 1].emplace(i, Table(i));
  state_.next_file_number = 100010;
  ASSERT_OK_AND_ASSIGN(auto manifest, Create(1, 2));
  ASSERT_OK(manifest->Append(AddTable(100010)));
  ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
  EXPECT_EQ(contents.edits, 2u);
  EXPECT_EQ(contents.state.levels[1].size() + contents.state.levels[2].size(), 100000u);
}

TEST_F(ManifestTest, EveryTruncationGivesTheLastWholeEditOrIsProvenLoss) {
  Fill(4);
  for (uint64_t size = 0; size <= ends_.back(); ++size) {
    WriteFile(ManifestName(1), std::string_view(bytes_).substr(0, size));
    const auto contents = ReadManifest(*directory_);
    if (size <= ends_[0] && !contents.ok()) {
      EXPECT_EQ(testing_support::StatusOf(contents).code(), Code::kDataLoss) << size;  // not even the first edit
      continue;
    }
    // A cut leaves no proof of what it took away.
    ASSERT_TRUE(contents.ok()) << size;
    const int which = Which(contents->state);
    ASSERT_GE(which, 0) << size;
    // The last whole edit: its record ends at or before the cut, that of the next one behind it (less than a proof later).
    EXPECT_LE(contents->last_record_end, size);
    EXPECT_LE(contents->last_record_end, ends_[static_cast<size_t>(which)]);
    if (which < 4) {
      EXPECT_LT(size, ends_[static_cast<size_t>(which) + 1]);
    }
    EXPECT_EQ(contents->edits, static_cast<uint64_t>(which) + 1);
    EXPECT_EQ(contents->bytes_dropped > 0, !contents->drop_reason.empty());
  }
}

TEST_F(ManifestTest, EveryFlippedByteGivesAPrefixAndBelowAProofIsDataLoss) {
  Fill(4);
  ASSERT_OK_AND_ASSIGN(const ManifestContents whole, ReadManifest(*directory_));
  Random random(2);
  for (uint64_t at = 0; at < bytes_.size(); at += at < ends_.back() + 64 ? 1 : 4099) {
    for (const int bit : {0, static_cast<int>(random.Uniform(7)) + 1}) {
      std::string bytes = bytes_;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      WriteFile(ManifestName(1), bytes);
      const auto contents = ReadManifest(*directory_);
      if (at < whole.last_record_end) {
        // Everything up to the last edit was durable, and the proof behind it says so.
        EXPECT_TRUE(!contents.ok() && (absl::IsDataLoss(contents.status()) || (absl::IsUnimplemented(contents.status()) && at < 16)))
            << at << ": " << contents.status();
        EXPECT_THAT(Text(contents.status()), HasSubstr("MANIFEST-000001"));
        continue;
      }
      ASSERT_TRUE(contents.ok()) << at;
      EXPECT_EQ(Which(contents->state), 4) << at;
      EXPECT_GT(contents->bytes_dropped, 0u) << at;
    }
  }
}

TEST_F(ManifestTest, AFlipInTheLastEditWithoutAProofDropsIt) {
  Fill(2);
  ASSERT_OK_AND_ASSIGN(const ManifestContents whole, ReadManifest(*directory_));
  // As after a power loss: the proof stored behind the last sync never reached the disk.
  bytes_.replace(whole.last_record_end, ends_.back() - whole.last_record_end, ends_.back() - whole.last_record_end, '\0');
  for (uint64_t at = ends_[1]; at < whole.last_record_end; ++at) {
    std::string bytes = bytes_;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    WriteFile(ManifestName(1), bytes);
    ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
    EXPECT_EQ(Which(contents.state), 1);
    EXPECT_EQ(contents.bytes_dropped, bytes.size() - ends_[1]);
    EXPECT_FALSE(contents.drop_reason.empty());
  }
}

TEST_F(ManifestTest, MissingCurrentIsFailedPreconditionAndMissingManifestDataLoss) {
  EXPECT_CODE(ReadManifest(*directory_), Code::kFailedPrecondition);
  Fill(1);
  ASSERT_OK(directory_->Remove(ManifestName(1)));
  const auto contents = ReadManifest(*directory_);
  EXPECT_CODE(contents, Code::kDataLoss);
  EXPECT_THAT(Text(contents.status()), HasSubstr("MANIFEST-000001"));
  EXPECT_THAT(Text(contents.status()), HasSubstr("tamis repair"));
}

TEST_F(ManifestTest, CurrentOfAnyOtherFormIsDataLoss) {
  Fill(1);
  const std::string good = ReadFile(kCurrentName);
  std::vector<std::string> bad = {"",
                                  "\n",
                                  "MANIFEST-000001\n",
                                  "tamis ",
                                  "tamis 1",
                                  "tamis 1 ",
                                  "tamis 0" + good.substr(7),
                                  "tamis 01" + good.substr(7),
                                  "tamis x" + good.substr(7),
                                  "Tamis" + good.substr(5),
                                  good + "\n",
                                  good + good,
                                  std::string(good.size(), '\0'),
                                  std::string(4096, '\0'),
                                  std::string(5000, 'x'),
                                  good.substr(0, good.size() - 1) + "\r\n"};
  // Names that lead elsewhere, each with its right checksum.
  for (const char* name :
       {"../MANIFEST-000001", "../../etc/passwd", "/MANIFEST-000001", "./MANIFEST-000001", "MANIFEST-000001/", "MANIFEST-1", "CURRENT",
        "000001.table", "MANIFEST-000000", "MANIFEST-0000001", "MANIFEST-99999999999999999999", "", "MANIFEST-000001 "}) {
    const std::string head = Concat("tamis 1 ", name, " ");
    bad.push_back(absl::StrCat(head, absl::Hex(Checksum64(head), absl::kZeroPad16), "\n"));
  }
  for (const std::string& text : bad) {
    WriteFile(kCurrentName, text);
    const auto contents = ReadManifest(*directory_);
    EXPECT_EQ(testing_support::StatusOf(contents).code(), Code::kDataLoss) << testing::PrintToString(text);
    EXPECT_THAT(Text(contents.status()), HasSubstr("CURRENT"));
    EXPECT_THAT(Text(contents.status()), HasSubstr("tamis repair"));
  }
  for (size_t size = 0; size < good.size(); ++size) {
    WriteFile(kCurrentName, good.substr(0, size));
    EXPECT_EQ(testing_support::StatusOf(ReadManifest(*directory_)).code(), Code::kDataLoss) << size;
  }
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string text = good;
    text[i / 8] = static_cast<char>(text[i / 8] ^ (1 << (i % 8)));
    WriteFile(kCurrentName, text);
    const auto contents = ReadManifest(*directory_);
    EXPECT_TRUE(absl::IsDataLoss(contents.status()) || (i / 8 == 6 && absl::IsUnimplemented(contents.status()))) << contents.status();
  }
  WriteFile(kCurrentName, good);
  EXPECT_OK(ReadManifest(*directory_));
}

TEST_F(ManifestTest, ALaterFormatIsUnimplementedWithBothVersions) {
  Fill(0);
  for (const char* text : {"tamis 2 something else entirely\n", "tamis 10 x", "tamis 99999999999999999999999999 x"}) {
    WriteFile(kCurrentName, text);
    const auto contents = ReadManifest(*directory_);
    EXPECT_CODE(contents, Code::kUnimplemented);
    EXPECT_THAT(Text(contents.status()), HasSubstr("up to 1"));
  }
}

TEST_F(ManifestTest, AManifestUnderAnotherNumberIsDataLoss) {
  Fill(1);
  const std::string old = ReadFile(ManifestName(1));
  ASSERT_OK(Create(3, 4));
  WriteFile(ManifestName(3), old);
  EXPECT_CODE(ReadManifest(*directory_), Code::kDataLoss);
}

// Manifests that no writer of ours makes.
class OddManifestTest : public ManifestTest {
 protected:
  void Write(const std::vector<std::pair<uint64_t, std::string>>& records, Id128 database_id = Id128{1, 2, 3}) {
    ASSERT_OK(directory_->Remove(ManifestName(1)));
    ASSERT_OK(Create(1, 2));
    ASSERT_OK(directory_->Remove(ManifestName(1)));
    ASSERT_OK_AND_ASSIGN(auto file, directory_->CreateLog(ManifestName(1)));
    ASSERT_OK_AND_ASSIGN(auto log, LogWriter::Create(std::move(file), {LogKind::kManifest, 1, 77, database_id}));
    for (const auto& [ordinal, payload] : records) {
      ASSERT_OK(log->Reserve(payload.size()));
      ASSERT_OK(log->Append(log->proven(), ordinal, 1, payload, {}));
    }
  }
};

TEST_F(OddManifestTest, WithoutAnEditIsDataLoss) {
  Write({});
  const auto contents = ReadManifest(*directory_);
  EXPECT_CODE(contents, Code::kDataLoss);
  EXPECT_THAT(Text(contents.status()), HasSubstr("no edit"));
}

TEST_F(OddManifestTest, FirstEditWithoutOrWithAnotherIdentityIsDataLoss) {
  Write({{1, AddTable(10).Encode()}});
  EXPECT_CODE(ReadManifest(*directory_), Code::kDataLoss);
  Write({{1, state_.Snapshot().Encode()}}, Id128{9});
  EXPECT_CODE(ReadManifest(*directory_), Code::kDataLoss);
}

TEST_F(OddManifestTest, BadEditsAreDataLossWithFileAndOffset) {
  const std::string first = state_.Snapshot().Encode();
  const std::pair<uint64_t, std::string> bad[] = {{3, AddTable(10).Encode()},  // an ordinal left out
                                                  {1, AddTable(10).Encode()},  // or used twice
                                                  {2, first},                  // a second identity
                                                  {2, AddTable(5).Encode()},   // numbers that go back
                                                  {2, "\x07"}};                // no edit at all
  for (const auto& record : bad) {
    Write({{1, first}, record});
    const auto contents = ReadManifest(*directory_);
    EXPECT_CODE(contents, Code::kDataLoss);
    EXPECT_THAT(Text(contents.status()), HasSubstr("/db/MANIFEST-000001: at offset "));
  }
  VersionEdit overlap = AddTable(10);
  overlap.added[0].first = 1;
  overlap.added.emplace_back(1, overlap.added[0].second);
  overlap.added[1].second.number = 9;
  Write({{1, first}, {2, overlap.Encode()}});
  const auto contents = ReadManifest(*directory_);
  EXPECT_CODE(contents, Code::kDataLoss);
  EXPECT_THAT(Text(contents.status()), HasSubstr("overlap"));
}

TEST_F(OddManifestTest, WhatANewerVersionRequiresIsUnimplementedWithItsName) {
  VersionEdit edit;
  edit.required_features = 1 << 3;
  Write({{1, state_.Snapshot().Encode()}, {2, edit.Encode()}});
  auto contents = ReadManifest(*directory_);
  EXPECT_CODE(contents, Code::kUnimplemented);
  EXPECT_THAT(Text(contents.status()), HasSubstr("feature bit 3"));
  EXPECT_THAT(Text(contents.status()), HasSubstr("MANIFEST-000001"));
}

TEST_F(ManifestTest, NothingIsAppendedAfterAFailure) {
  for (const char* operation : {"append", "sync"}) {
    ASSERT_OK_AND_ASSIGN(auto manifest, Create(state_.next_file_number, state_.next_file_number + 1));
    const std::string name = ManifestName(manifest->number());
    state_.next_file_number += 2;
    ASSERT_OK(manifest->Append(AddTable(state_.next_file_number)));
    FailAt(operation, "MANIFEST", absl::UnknownError("injected"));
    EXPECT_CODE(manifest->Append(AddTable(state_.next_file_number + 1)), Code::kUnknown);
    EXPECT_TRUE(manifest->failed());
    Heal();
    const std::string bytes = ReadFile(name);
    const absl::Status again = manifest->Append(AddTable(state_.next_file_number + 1));
    EXPECT_CODE(again, Code::kUnknown);
    EXPECT_THAT(Text(again), HasSubstr("injected"));
    EXPECT_FALSE(manifest->Finish().ok());
    EXPECT_EQ(ReadFile(name), bytes);
    // The edit that failed may be there or not; both are sound.
    ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
    EXPECT_EQ(contents.edits, std::string(operation) == "append" ? 2u : 3u);
  }
}

TEST_F(ManifestTest, AFullDiskChangesNothingAndMayBeTriedAgain) {
  ASSERT_OK_AND_ASSIGN(auto manifest, Create(1, 2));
  VersionEdit large = AddTable(10);
  large.unknown = {{500, std::string(400000, 'x')}};  // more than the space reserved at first
  FailAt("reserve", "MANIFEST", absl::ResourceExhaustedError("injected: disk full"));
  EXPECT_CODE(manifest->Append(large), Code::kResourceExhausted);
  EXPECT_FALSE(manifest->failed());
  ASSERT_OK(manifest->Append(AddTable(10)));  // fits into what is there
  Heal();
  large.added.clear();
  large.next_file_number = 12;
  ASSERT_OK(manifest->Append(large));
  ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
  EXPECT_EQ(contents.edits, 3u);
}

TEST_F(ManifestTest, AFailedRollOverLeavesAReadableDatabase) {
  // Every call of a roll-over fails in turn, in two ways. Whatever CURRENT then names is whole and holds the same.
  for (const bool full : {false, true}) {
    const absl::Status error = full ? absl::ResourceExhaustedError("injected: full") : absl::UnknownError("injected");
    int failed = 0;
    for (int n = 1;; ++n) {
      const uint64_t number = state_.next_file_number;
      ASSERT_OK(Create(number, number + 1));
      int calls = 0;
      std::string operation;
      directory_->hook = [&](std::string_view op, std::string_view) {
        if (++calls != n) return absl::OkStatus();
        operation = op;
        return error;
      };
      auto rolled = Create(number + 2, number + 3);
      Heal();
      state_.next_file_number += 4;
      ASSERT_OK_AND_ASSIGN(const ManifestContents contents, ReadManifest(*directory_));
      if (rolled.ok()) {
        EXPECT_EQ(contents.manifest_number, number + 2);
        if (calls < n) break;
        continue;  // a failure that did no harm
      }
      ++failed;
      if (absl::IsResourceExhausted(rolled.status())) {
        EXPECT_EQ(contents.manifest_number, number) << operation;
        EXPECT_FALSE(Exists(ManifestName(number + 2))) << operation;
        EXPECT_FALSE(Exists(TemporaryName(number + 3))) << operation;
        EXPECT_NE(operation, "rename");
      }
    }
    EXPECT_GE(failed,
              8);  // create, reserve, header, sync, record, sync, directory; temporary: create, append, sync, close; rename, directory
  }
}

TEST_F(ManifestTest, TheOrderOnDiskIsManifestThenDirectoryThenCurrent) {
  std::vector<std::string> calls;
  directory_->hook = [&](std::string_view op, std::string_view name) {
    calls.push_back(Concat(op, " ", name));
    return absl::OkStatus();
  };
  ASSERT_OK(Create(1, 2));
  Heal();
  // The last sync of the manifest, and what follows (but the proof).
  const auto last = std::find(calls.rbegin(), calls.rend(), "sync MANIFEST-000001");
  ASSERT_NE(last, calls.rend());
  std::vector<std::string> tail(last.base() - 1, calls.end());
  std::erase(tail, "append MANIFEST-000001");
  EXPECT_EQ(tail,
            (std::vector<std::string>{"sync MANIFEST-000001", "dirsync ", "create CURRENT.000002.tmp", "append CURRENT.000002.tmp",
                                      "sync CURRENT.000002.tmp", "close CURRENT.000002.tmp", "rename CURRENT.000002.tmp", "dirsync "}));
}

TEST_F(ManifestTest, AnExistingFileIsNeverOverwritten) {
  ASSERT_OK(Create(1, 2));
  const std::string before = ReadFile(ManifestName(1));
  EXPECT_CODE(Create(1, 3), Code::kFailedPrecondition);
  EXPECT_EQ(ReadFile(ManifestName(1)), before);
  EXPECT_OK(ReadManifest(*directory_));
}

TEST_F(ManifestTest, AReadErrorIsAnErrorAndNotAnEnd) {
  Fill(1);
  FailAt("open", "MANIFEST", absl::ResourceExhaustedError("injected: descriptors"));
  EXPECT_CODE(ReadManifest(*directory_), Code::kResourceExhausted);
  FailAt("size", "CURRENT", absl::FailedPreconditionError("injected: not a regular file"));
  EXPECT_CODE(ReadManifest(*directory_), Code::kDataLoss);
}

}  // namespace
}  // namespace tamis::internal
