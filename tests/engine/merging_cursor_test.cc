#include "engine/read/merging_cursor.h"

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/vector_cursor.h"

namespace tamis::internal {
namespace {

using testing_support::EntryBefore;
using testing_support::NewVectorCursor;
using testing_support::TestEntry;
using testing_support::TestSource;
using testing_support::VectorCursor;

std::string Shown(const Cursor& cursor) {
  if (!cursor.Valid()) return cursor.status().ok() ? "end" : cursor.status().ToString();
  return std::string(cursor.key()) + "@" + std::to_string(cursor.sequence()) + "=" + std::string(cursor.value());
}

// Keys of several shapes: short, with NUL and 0xff, with long common beginnings, fixed-width numbers.
std::string RandomKey(Random& random, int shape) {
  switch (shape) {
    case 0: {
      std::string key;
      for (uint64_t n = random.Uniform(4); n > 0; --n) key.push_back("\0a\xff"[random.Uniform(3)]);
      return key;
    }
    case 1: {
      std::string digits = std::to_string(random.Uniform(300));
      return std::string(16 - digits.size(), '0') + digits;
    }
    case 2:
      return "/usr/share/doc/" + std::string(random.Uniform(3), 'x') + std::to_string(random.Uniform(40)) + "/copyright-and-more";
    default: {
      std::string key(8, '\0');
      for (char& c : key) c = static_cast<char>(random.Next());
      return key;
    }
  }
}

struct Merged {
  std::vector<TestEntry> all;  // sorted
  std::vector<std::shared_ptr<TestSource>> sources;
  std::unique_ptr<Cursor> cursor;
};

Merged RandomMerged(Random& random, int shape, size_t inputs) {
  Merged merged;
  std::vector<std::vector<TestEntry>> parts(inputs);
  const uint64_t entries = random.Uniform(200);
  for (uint64_t sequence = 1; sequence <= entries; ++sequence) {
    TestEntry entry{RandomKey(random, shape), sequence, random.OneIn(4) ? EntryKind::kDelete : EntryKind::kPut, std::to_string(sequence)};
    merged.all.push_back(entry);
    // Some inputs stay empty or small.
    parts[random.Uniform(1 + random.Uniform(inputs))].push_back(std::move(entry));
  }
  std::sort(merged.all.begin(), merged.all.end(), EntryBefore);
  std::vector<std::unique_ptr<Cursor>> cursors;
  for (auto& part : parts) {
    merged.sources.push_back(std::make_shared<TestSource>(std::move(part)));
    cursors.push_back(std::make_unique<VectorCursor>(merged.sources.back()));
  }
  merged.cursor = NewMergingCursor(std::move(cursors));
  return merged;
}

TEST(MergingCursor, AnswersRandomMovesAsASortedListDoes) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int shape = static_cast<int>(seed % 4);
    Merged merged = RandomMerged(random, shape, 1 + random.Uniform(11));
    const auto& all = merged.all;
    Cursor& cursor = *merged.cursor;
    size_t at = all.size();  // all.size(): not Valid
    for (int move = 0; move < 300; ++move) {
      const uint64_t kind = random.Uniform(20);
      const TestEntry target{random.OneIn(2) && !all.empty() ? all[random.Uniform(all.size())].key : RandomKey(random, shape),
                             random.OneIn(3) ? 0 : random.Uniform(220), EntryKind::kPut, ""};
      if (kind == 0) {
        cursor.SeekToFirst();
        at = 0;
      } else if (kind == 1) {
        cursor.SeekToLast();
        at = all.empty() ? 0 : all.size() - 1;
      } else if (kind == 2) {
        cursor.Seek(target.key, target.sequence);
        at = static_cast<size_t>(std::lower_bound(all.begin(), all.end(), target, EntryBefore) - all.begin());
      } else if (kind == 3) {
        cursor.SeekForPrev(target.key, target.sequence);
        const auto after = std::upper_bound(all.begin(), all.end(), target, EntryBefore);
        at = after == all.begin() ? all.size() : static_cast<size_t>(after - all.begin()) - 1;
      } else if (at == all.size()) {
        continue;
      } else if (kind < 12 + seed % 5) {
        cursor.Next();
        ++at;
      } else {
        cursor.Prev();
        at = at == 0 ? all.size() : at - 1;
      }
      if (at >= all.size()) {
        at = all.size();
        ASSERT_EQ(Shown(cursor), "end");
      } else {
        ASSERT_EQ(Shown(cursor), all[at].key + "@" + std::to_string(all[at].sequence) + "=" + all[at].value);
        ASSERT_EQ(cursor.kind(), all[at].kind);
      }
    }
  }
}

TEST(MergingCursor, MeetsEveryEntryOnceInBothDirections) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Merged merged = RandomMerged(random, static_cast<int>(seed % 4), 2 + random.Uniform(15));
    size_t met = 0;
    for (merged.cursor->SeekToFirst(); merged.cursor->Valid(); merged.cursor->Next()) {
      ASSERT_EQ(merged.cursor->sequence(), merged.all[met++].sequence);
    }
    EXPECT_EQ(met, merged.all.size());
    for (merged.cursor->SeekToLast(); merged.cursor->Valid(); merged.cursor->Prev()) {
      ASSERT_EQ(merged.cursor->sequence(), merged.all[--met].sequence);
    }
    EXPECT_EQ(met, 0u);
    EXPECT_OK(merged.cursor->status());
  }
}

TEST(MergingCursor, OneInputIsReturnedAsItIsAndNoneIsEmpty) {
  auto input = NewVectorCursor({{"a", 1, EntryKind::kPut, ""}});
  Cursor* const raw = input.get();
  std::vector<std::unique_ptr<Cursor>> one;
  one.push_back(std::move(input));
  EXPECT_EQ(NewMergingCursor(std::move(one)).get(), raw);
  auto none = NewMergingCursor({});
  none->SeekToFirst();
  EXPECT_FALSE(none->Valid());
  EXPECT_OK(none->status());
}

TEST(MergingCursor, KeysThatLeaveTheCommonBeginningStayInOrder) {
  // The first keys share 20 bytes, later ones nothing; and one key of 0xff ties with "has left".
  const std::string stem(20, 'k');
  const std::string high = stem + std::string(12, '\xff');
  std::vector<std::unique_ptr<Cursor>> inputs;
  inputs.push_back(NewVectorCursor({{stem + "1", 1, EntryKind::kPut, "1"}, {"l", 2, EntryKind::kPut, "4"}}));
  inputs.push_back(
      NewVectorCursor({{stem + "2", 3, EntryKind::kPut, "2"}, {high, 4, EntryKind::kPut, "3"}, {"z", 5, EntryKind::kPut, "6"}}));
  inputs.push_back(NewVectorCursor({{"m", 6, EntryKind::kPut, "5"}}));
  inputs.push_back(NewVectorCursor({{stem, 7, EntryKind::kPut, "0"}}));
  auto cursor = NewMergingCursor(std::move(inputs));
  std::string met;
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) met += cursor->value();
  EXPECT_EQ(met, "0123456");
  met.clear();
  for (cursor->SeekToLast(); cursor->Valid(); cursor->Prev()) met += cursor->value();
  EXPECT_EQ(met, "6543210");
}

TEST(MergingCursor, AnErrorOfOneInputEndsTheMergeBeforeAnythingBehindItIsShown) {
  auto good = std::make_shared<TestSource>(
      std::vector<TestEntry>{{"a", 1, EntryKind::kPut, ""}, {"c", 2, EntryKind::kPut, "old"}, {"e", 3, EntryKind::kPut, ""}});
  auto damaged = std::make_shared<TestSource>(std::vector<TestEntry>{{"b", 5, EntryKind::kPut, ""}, {"c", 6, EntryKind::kPut, "new"}});
  damaged->MarkBad("c", 6);
  std::vector<std::unique_ptr<Cursor>> inputs;
  inputs.push_back(std::make_unique<VectorCursor>(good));
  inputs.push_back(std::make_unique<VectorCursor>(damaged));
  auto cursor = NewMergingCursor(std::move(inputs));

  cursor->SeekToFirst();
  EXPECT_EQ(Shown(*cursor), "a@1=");
  cursor->Next();
  EXPECT_EQ(Shown(*cursor), "b@5=");
  cursor->Next();
  EXPECT_FALSE(cursor->Valid());
  EXPECT_CODE(cursor->status(), absl::StatusCode::kDataLoss);
  cursor->Next();  // harmless
  EXPECT_CODE(cursor->status(), absl::StatusCode::kDataLoss);

  for (int kind = 0; kind < 3; ++kind) {
    SCOPED_TRACE(kind);
    if (kind == 0) cursor->SeekToLast();
    if (kind == 1) cursor->Seek("c", 100);
    if (kind == 2) cursor->SeekForPrev("d", 0);
    EXPECT_FALSE(cursor->Valid());
    EXPECT_CODE(cursor->status(), absl::StatusCode::kDataLoss);
  }

  // A change of direction seeks the other inputs: their errors count, too.
  cursor->Seek("d", kMaxSequence);
  EXPECT_EQ(Shown(*cursor), "e@3=");
  cursor->Prev();
  EXPECT_FALSE(cursor->Valid());
  EXPECT_CODE(cursor->status(), absl::StatusCode::kDataLoss);

  damaged->ClearBad();
  cursor->SeekToLast();
  EXPECT_EQ(Shown(*cursor), "e@3=");
  EXPECT_OK(cursor->status());
}

TEST(MergingCursor, EntriesAddedToAnInputWhileItStandsDoNotDisturbTheRest) {
  auto live = std::make_shared<TestSource>(std::vector<TestEntry>{{"b", 2, EntryKind::kPut, ""}, {"d", 4, EntryKind::kPut, ""}});
  std::vector<std::unique_ptr<Cursor>> inputs;
  inputs.push_back(std::make_unique<VectorCursor>(live));
  inputs.push_back(NewVectorCursor({{"a", 1, EntryKind::kPut, ""}, {"c", 3, EntryKind::kPut, ""}}));
  auto cursor = NewMergingCursor(std::move(inputs));
  cursor->SeekToFirst();
  std::string met;
  SequenceNumber added = 100;
  while (cursor->Valid()) {
    if (cursor->sequence() < 100) met += cursor->key();
    live->Add({"a", ++added, EntryKind::kPut, ""});
    live->Add({"c", ++added, EntryKind::kPut, ""});
    cursor->Next();
    if (added > 130) break;
  }
  EXPECT_EQ(met, "abcd");
}

}  // namespace
}  // namespace tamis::internal
