#include "engine/version/version_edit.h"

#include <functional>

#include "base/coding.h"
#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;

constexpr uint64_t kNext = 100;

Id128 Id(uint8_t first) { return Id128{first, 2, 3}; }

TableMeta Table(uint64_t number, std::string smallest = "a", std::string largest = "b") {
  TableMeta table;
  table.number = number;
  table.id = Id(static_cast<uint8_t>(number));
  table.size = 1000 + number;
  table.smallest = std::move(smallest);
  table.largest = std::move(largest);
  table.smallest_sequence = 1;
  table.largest_sequence = 9;
  table.entries = 5;
  table.deletes = 1;
  table.distinct_keys = 4;
  return table;
}

VersionEdit FullEdit() {
  VersionEdit edit;
  edit.identity = DatabaseIdentity{Id(7), 0x1234567890abcdef};
  edit.optional_features = 5;
  edit.next_file_number = kNext;
  edit.flushed_sequence = 77;
  edit.new_logs = {{11, 0xdeadbeef}, {12, 3}};
  edit.oldest_log = 10;
  edit.added.emplace_back(0, Table(20));
  edit.added.emplace_back(3, Table(21, "", std::string("\0\xff\n\"", 4)));
  edit.added.back().second.filter_file = FilterFileMeta{22, 4096, 0xfeed};
  edit.added.back().second.unknown = {{50 * 2, "future"}};
  edit.dropped = {{1, 5}, {2, 6}};
  edit.proven = ProvenPoint{11, 12345};
  edit.unknown = {{60 * 2, "x"}, {61 * 2, ""}};
  return edit;
}

std::string Field(uint32_t tag, std::string_view bytes) {
  std::string field;
  PutVarint32(&field, tag);
  PutLengthPrefixed(&field, bytes);
  return field;
}
std::string Known(uint32_t number, std::string_view bytes) { return Field(number * 2 + 1, bytes); }
std::string Varint(uint64_t value) {
  std::string bytes;
  PutVarint64(&bytes, value);
  return bytes;
}

// The fields of one table, to be left out or replaced.
std::map<uint32_t, std::string> TableFields() {
  return {{1, Varint(20)},
          {2, std::string(16, 'i')},
          {3, Varint(1000)},
          {4, "a"},
          {5, "b"},
          {6, Varint(1) + Varint(9)},
          {7, Varint(5) + Varint(1) + Varint(4)}};
}
std::string TableRecord(const std::map<uint32_t, std::string>& fields, std::string extra = "") {
  std::string bytes = Varint(0);
  for (const auto& [number, field] : fields) bytes += Known(number, field);
  return Known(7, bytes + extra);
}

TEST(VersionEdit, ComesBackWhole) {
  const VersionEdit edit = FullEdit();
  ASSERT_OK_AND_ASSIGN(const VersionEdit decoded, VersionEdit::Decode(edit.Encode()));
  EXPECT_EQ(decoded.Encode(), edit.Encode());
  EXPECT_EQ(decoded.DebugString(), edit.DebugString());
  EXPECT_EQ(decoded.identity->hash_seed, 0x1234567890abcdefu);
  EXPECT_EQ(decoded.added[1].second.largest, edit.added[1].second.largest);
  EXPECT_EQ(decoded.added[1].second.filter_file->checksum, 0xfeedu);
  EXPECT_EQ(decoded.added[1].second.unknown, edit.added[1].second.unknown);
  EXPECT_EQ(decoded.proven, edit.proven);
  EXPECT_EQ(decoded.unknown, edit.unknown);
  ASSERT_OK_AND_ASSIGN(const VersionEdit empty, VersionEdit::Decode(""));
  EXPECT_EQ(empty.Encode(), "");
}

TEST(VersionEdit, IsEncodedAsDocumented) {
  VersionEdit edit;
  edit.next_file_number = 300;
  edit.dropped = {{2, 5}};
  edit.new_logs = {{6, 1}};
  EXPECT_EQ(edit.Encode(), std::string("\x07\x02\xac\x02\x0b\x09\x06\x01\0\0\0\0\0\0\0\x11\x02\x02\x05", 19));
}

TEST(VersionEdit, TextNamesEveryField) {
  const std::string text = FullEdit().DebugString();
  for (const char* part :
       {"identity: database 070203", "hash seed 1234567890abcdef", "optional 5", "next file number: 100", "flushed sequence: 77",
        "new log: 11 id 00000000deadbeef", "oldest log: 10", "drop: level 1 table 5", "add: level 3 table 21 size 1021",
        "\\x00\\xff\\n\\\"", "filter 22 size 4096", "unknown field 50", "proven: log 11 offset 12345", "unknown field 60"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 14);
}

TEST(VersionEdit, EveryTruncationIsDataLossOrAWholeField) {
  const std::string bytes = FullEdit().Encode();
  int whole = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto decoded = VersionEdit::Decode(cut);
    if (decoded.ok()) {
      ++whole;
      EXPECT_EQ(decoded->Encode(), cut);
    } else {
      EXPECT_CODE(decoded, Code::kDataLoss);
    }
  }
  EXPECT_EQ(whole, 14);  // behind each field but the last, and nothing at all
}

TEST(VersionEdit, SurvivesMutations) {
  const std::string good = FullEdit().Encode();
  Random random(5);
  for (int i = 0; i < 100000; ++i) {
    std::string bytes = good;
    for (uint64_t n = random.Uniform(3) + 1; n > 0; --n) bytes[random.Uniform(bytes.size())] = static_cast<char>(random.Next());
    const auto decoded = VersionEdit::Decode(bytes);
    if (!decoded.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(decoded.status()) || absl::IsUnimplemented(decoded.status())) << decoded.status();
      continue;
    }
    ASSERT_OK_AND_ASSIGN(const VersionEdit again, VersionEdit::Decode(decoded->Encode()));
    EXPECT_EQ(again.Encode(), decoded->Encode());
    ManifestState().Apply(*decoded).IgnoreError();
  }
}

TEST(VersionEdit, TheMarkOfAnUnusedOwnFilterIsKeptAndOptional) {
  VersionEdit edit;
  TableMeta table = Table(5);
  table.own_filter_unused = true;
  edit.added.emplace_back(1, table);
  ASSERT_OK_AND_ASSIGN(const VersionEdit decoded, VersionEdit::Decode(edit.Encode()));
  EXPECT_TRUE(decoded.added[0].second.own_filter_unused);
  EXPECT_TRUE(decoded.added[0].second.unknown.empty());
  EXPECT_NE(decoded.DebugString().find("own filter unused"), std::string::npos);
  EXPECT_EQ(decoded.Encode(), edit.Encode());
}

TEST(VersionEdit, UnknownFieldsThatMustBeUnderstoodAreUnimplementedWithTheirNumber) {
  const auto edit = VersionEdit::Decode(Known(10, "x"));
  EXPECT_CODE(edit, Code::kUnimplemented);
  EXPECT_THAT(std::string(edit.status().message()), HasSubstr("field 10 "));
  const auto table = VersionEdit::Decode(TableRecord(TableFields(), Known(12, "x")));
  EXPECT_CODE(table, Code::kUnimplemented);
  EXPECT_THAT(std::string(table.status().message()), HasSubstr("table field 12 "));
}

TEST(VersionEdit, AnUnknownRequiredFeatureIsUnimplementedWithItsBit) {
  for (int bit = 0; bit < 64; ++bit) {
    VersionEdit edit;
    edit.required_features = uint64_t{1} << bit;
    const auto decoded = VersionEdit::Decode(edit.Encode());
    EXPECT_CODE(decoded, Code::kUnimplemented);
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("bit " + std::to_string(bit) + " "));
  }
}

TEST(VersionEdit, ReservedTableFieldsAreUnderstoodOnlyWhereTheyMeanNothing) {
  auto fields = TableFields();
  fields[9] = Varint(0);
  fields[11] = Varint(0);
  EXPECT_OK(VersionEdit::Decode(TableRecord(fields)));
  fields[9] = Varint(1);
  EXPECT_CODE(VersionEdit::Decode(TableRecord(fields)), Code::kUnimplemented);
  fields = TableFields();
  fields[11] = Varint(1);
  EXPECT_CODE(VersionEdit::Decode(TableRecord(fields)), Code::kUnimplemented);
  fields = TableFields();
  fields[10] = Varint(0);
  EXPECT_CODE(VersionEdit::Decode(TableRecord(fields)), Code::kUnimplemented);
  fields = TableFields();
  fields[9] = "";
  EXPECT_CODE(VersionEdit::Decode(TableRecord(fields)), Code::kDataLoss);
}

TEST(VersionEdit, ATableNeedsItsFieldsOnceAndInBounds) {
  ASSERT_OK(VersionEdit::Decode(TableRecord(TableFields())));
  for (uint32_t number = 1; number <= 7; ++number) {
    auto fields = TableFields();
    fields.erase(number);
    EXPECT_EQ(testing_support::StatusOf(VersionEdit::Decode(TableRecord(fields))).code(), Code::kDataLoss) << number;
    EXPECT_EQ(testing_support::StatusOf(VersionEdit::Decode(TableRecord(TableFields(), Known(number, TableFields()[number])))).code(),
              Code::kDataLoss)
        << number;
  }
  const std::pair<uint32_t, std::string> bad[] = {{1, Varint(0)},
                                                  {1, Varint(uint64_t{1} << 62)},
                                                  {1, ""},
                                                  {1, Varint(1) + "x"},
                                                  {2, std::string(15, 'i')},
                                                  {2, std::string(17, 'i')},
                                                  {3, ""},
                                                  {4, std::string(65536, 'k')},
                                                  {5, std::string(65536, 'k')},
                                                  {6, Varint(2) + Varint(1)},
                                                  {6, Varint(1)},
                                                  {6, Varint(1) + Varint(kMaxSequence + 1)},
                                                  {7, Varint(1) + Varint(2) + Varint(1)},
                                                  {7, Varint(1) + Varint(1) + Varint(2)},
                                                  {7, Varint(1)},
                                                  {8, Varint(0) + Varint(1) + std::string(8, 'c')},
                                                  {8, Varint(30) + Varint(1) + std::string(7, 'c')},
                                                  {8, ""}};
  for (const auto& [number, bytes] : bad) {
    auto fields = TableFields();
    fields[number] = bytes;
    EXPECT_EQ(testing_support::StatusOf(VersionEdit::Decode(TableRecord(fields))).code(), Code::kDataLoss)
        << number << " of " << bytes.size();
  }
  auto fields = TableFields();
  fields[4] = fields[5] = std::string(65535, 'k');
  EXPECT_OK(VersionEdit::Decode(TableRecord(fields)));
}

TEST(VersionEdit, MalformedFieldsAreDataLoss) {
  const std::string id(16, 'i'), eight(8, 'e');
  const std::string bad[] = {Known(1, id),
                             Known(1, id + eight + "x"),
                             Known(1, std::string(16, '\0') + eight),
                             Known(1, id + eight) + Known(1, id + eight),
                             Known(2, eight),
                             Known(3, Varint(0)),
                             Known(3, ""),
                             Known(3, Varint(5)) + Known(3, Varint(5)),
                             Known(3, Varint(UINT64_MAX)),
                             Known(4, Varint(kMaxSequence + 1)),
                             Known(4, Varint(1)) + Known(4, Varint(1)),
                             Known(5, Varint(0) + eight),
                             Known(5, Varint(3)),
                             Known(6, Varint(0)),
                             Known(6, Varint(1)) + Known(6, Varint(1)),
                             Known(7, Varint(kMaxLevels)),
                             Known(7, ""),
                             Known(7, Varint(0)),
                             Known(8, Varint(kMaxLevels) + Varint(1)),
                             Known(8, Varint(0) + Varint(0)),
                             Known(8, Varint(0)),
                             Known(9, Varint(0) + Varint(1)),
                             Known(9, Varint(1)),
                             Known(9, Varint(1) + Varint(1)) + Known(9, Varint(1) + Varint(1)),
                             Field(0, ""),
                             Field(1, ""),
                             Field(1 * 2, ""),
                             Field(3 * 2, Varint(5)),
                             Field(9 * 2, Varint(1) + Varint(1)),
                             TableRecord(TableFields(), Field(11 * 2, Varint(0))),  // number 0; a known number as if it were optional
                             "\x07",
                             "\x07\x05x",
                             std::string("\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12),
                             "\xff\xff\xff\xff\xff\x01"};
  for (const std::string& bytes : bad)
    EXPECT_EQ(testing_support::StatusOf(VersionEdit::Decode(bytes)).code(), Code::kDataLoss) << testing::PrintToString(bytes);
}

TEST(VersionEdit, KeepsTheLatestOfEachUnknownFieldAndBoundsTheirNumber) {
  ASSERT_OK_AND_ASSIGN(const VersionEdit edit, VersionEdit::Decode(Field(90, "old") + Field(80, "y") + Field(90, "new")));
  EXPECT_EQ(edit.unknown, (UnknownFields{{80, "y"}, {90, "new"}}));
  std::string many;
  for (uint32_t i = 0; i < kMaxUnknownFields; ++i) many += Field(100 + 2 * i, "");
  EXPECT_OK(VersionEdit::Decode(many));
  EXPECT_CODE(VersionEdit::Decode(many + Field(98, "")), Code::kDataLoss);
}

// A state with tables 20 (L0) and 21 (L3), logs 11 and 12.
ManifestState FullState() {
  VersionEdit edit = FullEdit();
  edit.dropped.clear();
  ManifestState state;
  EXPECT_OK(state.Apply(edit));
  return state;
}

TEST(ManifestState, AddsEditsUp) {
  ManifestState state = FullState();
  EXPECT_TRUE(state.has_identity());
  EXPECT_EQ(state.next_file_number, kNext);
  EXPECT_EQ(state.logs, (std::map<uint64_t, uint64_t>{{11, 0xdeadbeef}, {12, 3}}));
  VersionEdit edit;
  edit.next_file_number = 120;
  edit.new_logs = {{110, 4}};
  edit.oldest_log = 12;
  edit.flushed_sequence = 80;
  edit.dropped = {{0, 20}, {3, 21}};
  edit.added.emplace_back(4, Table(21));  // moved
  edit.added.emplace_back(0, Table(111));
  edit.proven = ProvenPoint{11, 5};  // smaller than known: no step back
  edit.optional_features = 8;
  edit.unknown = {{60 * 2, "newer"}};
  ASSERT_OK(state.Apply(edit));
  EXPECT_EQ(state.logs, (std::map<uint64_t, uint64_t>{{12, 3}, {110, 4}}));
  EXPECT_EQ(state.oldest_log, 12u);
  EXPECT_EQ(state.flushed_sequence, 80u);
  EXPECT_EQ(state.optional_features, 13u);
  EXPECT_EQ(state.proven, (ProvenPoint{11, 12345}));
  EXPECT_TRUE(state.levels[3].empty());
  EXPECT_TRUE(state.levels[4].contains(21));
  EXPECT_EQ(state.levels[0].size(), 1u);
  EXPECT_EQ(state.unknown, (UnknownFields{{120, "newer"}, {122, ""}}));
}

TEST(ManifestState, RefusesEachContradiction) {
  struct Case {
    const char* part;
    std::function<void(VersionEdit*)> make;
  };
  const Case cases[] = {{"identity",
                         [](VersionEdit* e) {
                           e->identity = DatabaseIdentity{Id(1), 1};
                         }},
                        {"next file number", [](VersionEdit* e) { e->next_file_number = kNext - 1; }},
                        {"flushed sequence", [](VersionEdit* e) { e->flushed_sequence = 76; }},
                        {"oldest log", [](VersionEdit* e) { e->oldest_log = 9; }},
                        {"oldest log", [](VersionEdit* e) { e->oldest_log = kNext + 1; }},
                        {"a second time",
                         [](VersionEdit* e) {
                           e->new_logs = {{12, 9}};
                         }},
                        {"older than the oldest",
                         [](VersionEdit* e) {
                           e->new_logs = {{9, 9}};
                         }},
                        {"at or above",
                         [](VersionEdit* e) {
                           e->new_logs = {{kNext, 9}};
                         }},
                        {"at or above",
                         [](VersionEdit* e) {
                           e->proven = ProvenPoint{kNext, 9};
                         }},
                        {"already at level 0", [](VersionEdit* e) { e->added.emplace_back(0, Table(20)); }},
                        {"already at level 0", [](VersionEdit* e) { e->added.emplace_back(5, Table(20)); }},
                        {"already at level 3", [](VersionEdit* e) { e->added.emplace_back(0, Table(21)); }},
                        {"already at level 6",
                         [](VersionEdit* e) {
                           e->added = {{6, Table(30)}, {7, Table(30)}};
                         }},
                        {"at or above", [](VersionEdit* e) { e->added.emplace_back(0, Table(kNext)); }},
                        {"at or above",
                         [](VersionEdit* e) {
                           e->added.emplace_back(0, Table(30));
                           e->added[0].second.filter_file = FilterFileMeta{kNext, 1, 1};
                         }},
                        {"ends before it begins", [](VersionEdit* e) { e->added.emplace_back(0, Table(30, "b", "a")); }},
                        {"level 12 does not exist", [](VersionEdit* e) { e->added.emplace_back(kMaxLevels, Table(30)); }},
                        {"level 12 does not exist",
                         [](VersionEdit* e) {
                           e->dropped = {{kMaxLevels, 20}};
                         }},
                        {"is not there",
                         [](VersionEdit* e) {
                           e->dropped = {{1, 20}};
                         }},
                        {"is not there",
                         [](VersionEdit* e) {
                           e->dropped = {{0, 30}};
                         }},
                        {"is not there",
                         [](VersionEdit* e) {
                           e->dropped = {{0, 20}, {0, 20}};
                         }},
                        {"unknown fields", [](VersionEdit* e) {
                           for (uint32_t i = 0; i < kMaxUnknownFields; ++i) e->unknown.emplace_back(200 + 2 * i, "");
                         }}};
  for (const Case& c : cases) {
    ManifestState state = FullState();
    VersionEdit edit;
    c.make(&edit);
    const absl::Status status = state.Apply(edit);
    EXPECT_CODE(status, Code::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.part));
  }
}

TEST(ManifestState, CheckFindsOverlapBelowLevelZero) {
  ManifestState state;
  state.next_file_number = kNext;
  state.levels[0] = {{1, Table(1, "a", "z")}, {2, Table(2, "a", "z")}};
  state.levels[1] = {{3, Table(3, "m", "n")}, {4, Table(4, "a", "b")}, {5, Table(5, "c", "c")}};
  EXPECT_OK(state.Check());
  state.levels[1].emplace(6, Table(6, "b", "bb"));
  EXPECT_CODE(state.Check(), Code::kDataLoss);
  state.levels[1].erase(6);
  state.levels[2] = {{7, Table(7, "a", "z")}, {8, Table(8, "c", "d")}};
  const absl::Status status = state.Check();
  EXPECT_CODE(status, Code::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tables 7 and 8 overlap at level 2"));
}

TEST(ManifestState, SnapshotMakesTheSameState) {
  const ManifestState state = FullState();
  ASSERT_OK_AND_ASSIGN(const VersionEdit edit, VersionEdit::Decode(state.Snapshot().Encode()));
  ManifestState copy;
  ASSERT_OK(copy.Apply(edit));
  EXPECT_EQ(copy.Snapshot().Encode(), state.Snapshot().Encode());
  EXPECT_EQ(copy.unknown, state.unknown);
  EXPECT_EQ(copy.levels[3].at(21).unknown, state.levels[3].at(21).unknown);
  ManifestState fresh;
  ASSERT_OK(fresh.Apply(ManifestState().Snapshot()));
  EXPECT_FALSE(fresh.has_identity());
}

}  // namespace
}  // namespace tamis::internal
