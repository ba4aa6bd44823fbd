// Keys and values are byte strings, also empty ones and 0xff; iterators keep their state and their bounds.
#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/support/build_kind.h"
#include "tests/support/database_test_util.h"

namespace tamis {
namespace {

using internal::Random;
using testing_support::Contents;
using testing_support::GetOr;
using testing_support::Key;
using testing_support::ReadAll;
using testing_support::ReadAllBackward;
using testing_support::SmallOptions;

class BytesAndBoundsTest : public ::testing::Test {
 protected:
  BytesAndBoundsTest() : path_(directory_.path() + "/db") { Open(); }
  void Open() {
    db_.reset();
    ASSERT_OK_AND_ASSIGN(db_, DB::Open(options_, path_));
  }
  // The state stays the same through all of these: memtable, table, compacted, reopened.
  void InEveryPlace(const std::function<void()>& check) {
    check();
    ASSERT_OK(db_->Flush());
    check();
    ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    check();
    Open();
    check();
  }

  testing_support::TempDir directory_{testing_support::TempDir::MemoryBase()};
  Options options_ = SmallOptions();
  std::string path_;
  std::unique_ptr<DB> db_;
};

TEST_F(BytesAndBoundsTest, EmptyKeysAndValuesAreOrdinary) {
  ASSERT_OK(db_->Put("", "x"));
  ASSERT_OK(db_->Put("a", ""));
  InEveryPlace([&] {
    EXPECT_EQ(GetOr(*db_, ""), "x");
    EXPECT_EQ(GetOr(*db_, "a"), "");
    EXPECT_EQ(ReadAll(*db_), (Contents{{"", "x"}, {"a", ""}}));
    EXPECT_EQ(ReadAllBackward(*db_), (Contents{{"", "x"}, {"a", ""}}));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator());
    it->Seek("");
    ASSERT_TRUE(it->Valid());
    EXPECT_EQ(it->key(), "");
    it->SeekForPrev("");
    ASSERT_TRUE(it->Valid());
    EXPECT_EQ(it->value(), "x");
    it->Prev();
    EXPECT_FALSE(it->Valid());
    EXPECT_OK(it->status());
  });
  ASSERT_OK(db_->Put("", ""));
  InEveryPlace([&] { EXPECT_EQ(GetOr(*db_, ""), ""); });
  ASSERT_OK(db_->Delete(""));
  InEveryPlace([&] {
    EXPECT_EQ(GetOr(*db_, ""), std::nullopt);
    EXPECT_EQ(ReadAll(*db_), (Contents{{"a", ""}}));
  });
}

TEST_F(BytesAndBoundsTest, PrefixesOfAllOnesFindExactlyTheirKeys) {
  const std::vector<std::string> keys = {
      "\x01\xff", "\x01\xff\x05", "\x01\xff\xff",     std::string("\x02\x00", 2), std::string("\x02\xff\x00", 3),
      "\xff",     "\xff\xff",     "\xff\xff\xff\x01", std::string("\xff\x00", 2)};
  for (const std::string& key : keys) ASSERT_OK(db_->Put(key, "v" + key));
  InEveryPlace([&] {
    for (const std::string& prefix :
         {std::string(), std::string("\xff"), std::string("\xff\xff"), std::string("\x01\xff"), std::string("\x02")}) {
      Contents expected;
      for (const std::string& key : keys) {
        if (key.substr(0, prefix.size()) == prefix) expected[key] = "v" + key;
      }
      // The least string above all that begin with the prefix; none for all ones.
      std::string end = prefix;
      while (!end.empty() && end.back() == '\xff') end.pop_back();
      ReadOptions options;
      options.lower_bound = prefix;
      if (!end.empty()) {
        end.back() = static_cast<char>(end.back() + 1);
        options.upper_bound = end;
      }
      EXPECT_EQ(ReadAll(*db_, options), expected);
      EXPECT_EQ(ReadAllBackward(*db_, options), expected);
    }
  });
}

TEST_F(BytesAndBoundsTest, AllKeysOfOneAndTwoBytesSortUnsigned) {
  std::vector<std::string> keys;
  for (int a = 0; a < 256; ++a) {
    keys.push_back(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) keys.push_back({static_cast<char>(a), static_cast<char>(b)});
  }
  Random random(3);
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Uniform(i)]);
  for (const std::string& key : keys) ASSERT_OK(db_->Put(key, key));
  const auto unsigned_less = [](const std::string& a, const std::string& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](char x, char y) { return static_cast<uint8_t>(x) < static_cast<uint8_t>(y); });
  };
  std::sort(keys.begin(), keys.end(), unsigned_less);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator());
  size_t next = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++next) ASSERT_EQ(it->key(), keys[next]);
  EXPECT_EQ(next, keys.size());
  for (it->SeekToLast(); it->Valid(); it->Prev()) ASSERT_EQ(it->key(), keys[--next]);
  EXPECT_EQ(next, 0u);
  for (const std::string& key : keys) ASSERT_EQ(GetOr(*db_, key), key);
}

TEST_F(BytesAndBoundsTest, KeysOfManyLengthsAreFound) {
  const auto key_of = [](size_t length) { return std::string(length, static_cast<char>('a' + length % 26)); };
  std::set<size_t> lengths;
  for (size_t i = 1; i <= 1100; ++i) lengths.insert(i);
  lengths.insert({4095, 4096, 4097, 32767, 32768, 65534, 65535});
  for (const size_t length : lengths) ASSERT_OK(db_->Put(key_of(length), length % 2 == 0 ? "" : std::string(100, 'v')));
  InEveryPlace([&] {
    for (const size_t length : lengths) ASSERT_EQ(GetOr(*db_, key_of(length)), length % 2 == 0 ? "" : std::string(100, 'v'));
    EXPECT_EQ(ReadAll(*db_).size(), lengths.size());
    EXPECT_EQ(ReadAllBackward(*db_).size(), lengths.size());
  });
}

TEST_F(BytesAndBoundsTest, AnEmptyDatabaseHasNoKeysInAnyDirection) {
  InEveryPlace([&] {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator());
    EXPECT_FALSE(it->Valid());
    EXPECT_OK(it->status());
    for (int move = 0; move < 4; ++move) {
      if (move == 0) it->SeekToFirst();
      if (move == 1) it->SeekToLast();
      if (move == 2) it->Seek("x");
      if (move == 3) it->SeekForPrev("x");
      EXPECT_FALSE(it->Valid());
      EXPECT_OK(it->status());
    }
    EXPECT_EQ(*db_->ApproximateSize(std::nullopt, std::nullopt), 0u);
    EXPECT_EQ(*db_->ApproximateCount(std::nullopt, std::nullopt), 0u);
    EXPECT_FALSE(*db_->MayExist(ReadOptions(), "x"));
  });
}

TEST_F(BytesAndBoundsTest, AnIteratorSeesTheStateOfItsCreation) {
  for (const char* key : {"1", "2", "3", "4", "5"}) ASSERT_OK(db_->Put(key, "old"));
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator());
    const Contents before = ReadAll(*db_);
    it->SeekToLast();
    ASSERT_EQ(it->key(), "5");
    ASSERT_OK(db_->Put("3", flushed ? "newest" : "new"));
    ASSERT_OK(db_->Put("35", "between"));
    if (flushed) ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    std::string moves;
    const auto note = [&] {
      ASSERT_TRUE(it->Valid());
      EXPECT_EQ(it->value(), before.at(std::string(it->key())));
      moves += std::string(it->key()) + " ";
    };
    it->Prev(), note();
    if (it->key() == "4" && flushed) it->Prev(), note();  // 35 was there when the second one was made
    it->Prev(), note();
    it->Next(), note();
    EXPECT_EQ(moves, flushed ? "4 35 3 35 " : "4 3 4 ");
  }
}

TEST_F(BytesAndBoundsTest, ASnapshotDoesNotSeeWhatCameLater) {
  ASSERT_OK(db_->Put("deleted then added", "old"));
  ASSERT_OK(db_->Delete("deleted then added"));
  ASSERT_OK_AND_ASSIGN(const Snapshot snapshot, db_->GetSnapshot());
  ASSERT_OK(db_->Put("new", "n"));
  ASSERT_OK(db_->Put("deleted then added", "n"));
  ReadOptions options;
  options.snapshot = &snapshot;
  for (int place = 0; place < 3; ++place) {
    for (const char* key : {"new", "deleted then added"}) {
      EXPECT_EQ(GetOr(*db_, key, options), std::nullopt);
      EXPECT_EQ(GetOr(*db_, key), "n");
    }
    EXPECT_TRUE(ReadAll(*db_, options).empty());
    EXPECT_TRUE(ReadAllBackward(*db_, options).empty());
    if (place == 0) ASSERT_OK(db_->Flush());
    if (place == 1) ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  }
}

// Every sequence of four moves on keys a..j spread over a memtable and three levels, against a sorted list.
TEST_F(BytesAndBoundsTest, AllMixesOfMovesInsideBoundsMatchAModel) {
  for (const char* key : {"a", "d", "g", "j"}) ASSERT_OK(db_->Put(key, "v"));
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  for (const char* key : {"b", "e", "h", "cc"}) ASSERT_OK(db_->Put(key, "v"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Delete("cc"));
  for (const char* key : {"c", "f", "fz"}) ASSERT_OK(db_->Put(key, "v"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Delete("fz"));
  ASSERT_OK(db_->Put("i", "v"));
  ReadOptions options;
  options.lower_bound = "c";
  options.upper_bound = "g";
  const std::vector<std::string> keys = {"c", "d", "e", "f"};
  const int kEnd = 4;
  const std::vector<std::string> targets = {"", "a", "c", "cc", "d", "dd", "f", "fz", "g", "z"};
  const int kMoves = 4 + static_cast<int>(2 * targets.size());
  const auto apply = [&](Iterator* it, int move, int* at) {
    if (move == 0) {
      it->SeekToFirst();
      *at = 0;
    } else if (move == 1) {
      it->SeekToLast();
      *at = 3;
    } else if (move == 2) {
      if (*at == kEnd) return;
      it->Next();
      ++*at;
    } else if (move == 3) {
      if (*at == kEnd) return;
      it->Prev();
      *at = *at == 0 ? kEnd : *at - 1;
    } else {
      const std::string& target = targets[static_cast<size_t>((move - 4) / 2)];
      if (move % 2 == 0) {
        it->Seek(target);
        *at = static_cast<int>(std::lower_bound(keys.begin(), keys.end(), target) - keys.begin());
      } else {
        it->SeekForPrev(target);
        *at = static_cast<int>(std::upper_bound(keys.begin(), keys.end(), target) - keys.begin()) - 1;
        if (*at < 0) *at = kEnd;
      }
    }
  };
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Iterator> it, db_->NewIterator(options));
  for (int first = 0; first < kMoves; ++first) {
    for (int second = 0; second < kMoves; ++second) {
      for (int third = 0; third < 4; ++third) {
        for (int fourth = 2; fourth < 4; ++fourth) {
          int at = kEnd;
          for (const int move : {first, second, third, fourth}) {
            if (move == 2 && at == kEnd && move != first) continue;
            apply(it.get(), move, &at);
            if (first == 2 || first == 3) break;  // a move of an iterator that is nowhere
            ASSERT_EQ(it->Valid(), at != kEnd) << first << " " << second << " " << third << " " << fourth;
            ASSERT_OK(it->status());
            if (at == kEnd) continue;
            ASSERT_EQ(it->key(), keys[static_cast<size_t>(at)]) << first << " " << second << " " << third << " " << fourth;
          }
        }
      }
    }
  }
}

TEST_F(BytesAndBoundsTest, BoundsThatLeaveNothingGiveNothing) {
  for (const char* key : {"a", "b", "c"}) ASSERT_OK(db_->Put(key, "v"));
  for (const auto& [lower, upper] : std::vector<std::pair<std::string, std::string>>{{"b", "b"}, {"c", "a"}, {"", ""}, {"bb", "bc"}}) {
    ReadOptions options;
    options.lower_bound = lower;
    options.upper_bound = upper;
    EXPECT_TRUE(ReadAll(*db_, options).empty());
    EXPECT_TRUE(ReadAllBackward(*db_, options).empty());
    EXPECT_OK(db_->CompactRange(lower, upper));
    EXPECT_EQ(*db_->ApproximateCount(lower, upper), 0u);
  }
}

TEST_F(BytesAndBoundsTest, MultiGetEqualsGets) {
  Random random(17);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_OK(db_->Put(Key(random.Uniform(1000) * 2), std::to_string(i)));
    if (i % 5 == 0) ASSERT_OK(db_->Delete(Key(random.Uniform(1000) * 2)));
    if (i == 1500) ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  }
  ASSERT_OK_AND_ASSIGN(const Snapshot snapshot, db_->GetSnapshot());
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put(Key(random.Uniform(1000) * 2), "later"));
  for (const size_t count : {0u, 1u, 2u, 31u, 32u, 33u, 64u, 65u, 1000u}) {
    for (int variant = 0; variant < 4; ++variant) {
      std::vector<std::string> keys;
      for (size_t i = 0; i < count; ++i) keys.push_back(Key(random.Uniform(2100)));  // unsorted, absent ones, duplicates
      if (count > 2) keys[2] = keys[0];
      ReadOptions options;
      if (variant & 1) options.snapshot = &snapshot;
      options.use_filters = (variant & 2) == 0;
      const std::vector<std::string_view> views(keys.begin(), keys.end());
      std::vector<PinnedValue> values(count);
      std::vector<absl::Status> statuses(count, absl::UnknownError("untouched"));
      db_->MultiGet(options, views, absl::MakeSpan(values), absl::MakeSpan(statuses));
      for (size_t i = 0; i < count; ++i) {
        const auto expected = GetOr(*db_, keys[i], options);
        ASSERT_EQ(statuses[i].code(), expected ? absl::StatusCode::kOk : absl::StatusCode::kNotFound) << statuses[i];
        if (!expected) continue;
        ASSERT_EQ(values[i].view(), *expected);
        ASSERT_TRUE(*db_->MayExist(options, keys[i]));
      }
    }
  }
  std::vector<std::string_view> two = {"a", "b"};
  std::vector<PinnedValue> one(1);
  std::vector<absl::Status> statuses(2);
  db_->MultiGet(ReadOptions(), two, absl::MakeSpan(one), absl::MakeSpan(statuses));
  for (const absl::Status& status : statuses) EXPECT_CODE(status, absl::StatusCode::kInvalidArgument);
}

// 200 hot keys in tiny files; every read at the head and at each snapshot is compared with a map of versions.
TEST_F(BytesAndBoundsTest, VersionsUnderSnapshotsStayRightThroughCompactions) {
  options_.memtable_bytes = 8 << 10;
  Open();
  const int operations = testing_support::kSanitized ? 20'000 : 100'000;
  Random random(20);
  Contents model;
  struct Held {
    Snapshot snapshot;
    Contents model;
  };
  std::vector<Held> held;
  const auto check = [&](bool all) {
    ASSERT_TRUE(ReadAll(*db_) == model);
    for (Held& one : held) {
      ReadOptions options;
      options.snapshot = &one.snapshot;
      ASSERT_TRUE(ReadAll(*db_, options) == one.model);
      ASSERT_TRUE(!all || ReadAllBackward(*db_, options) == one.model);
      for (int i = 0; i < 5; ++i) {
        const std::string key = Key(random.Uniform(200));
        const auto found = one.model.find(key);
        ASSERT_EQ(GetOr(*db_, key, options), found == one.model.end() ? std::nullopt : std::optional(found->second));
      }
    }
  };
  for (int i = 0; i < operations; ++i) {
    const std::string key = Key(random.Uniform(200));
    if (random.OneIn(3)) {
      ASSERT_OK(db_->Delete(key));
      model.erase(key);
    } else if (random.OneIn(8)) {
      WriteBatch batch;
      for (int j = 0; j < 4; ++j) {
        const std::string other = Key(random.Uniform(200));
        batch.Put(other, "b" + std::to_string(i));
        batch.Delete(key);
        model[other] = "b" + std::to_string(i);
        model.erase(key);
      }
      ASSERT_OK(db_->Write(batch));
    } else {
      model[key] = "value" + std::to_string(i);
      ASSERT_OK(db_->Put(key, model[key]));
    }
    if (i % 700 == 0) {
      ASSERT_OK_AND_ASSIGN(Snapshot snapshot, db_->GetSnapshot());
      held.push_back({std::move(snapshot), model});
    }
    if (held.size() > 6) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random.Uniform(held.size())));
    if (i % 1500 == 0) check(false);
    if (i % 20'000 == 19'999) {
      ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
      check(true);
    }
    if (HasFatalFailure()) return;
  }
  check(true);
  held.clear();
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  check(true);
  ASSERT_OK_AND_ASSIGN(const Stats stats, db_->GetStats());
  EXPECT_LE(stats.levels.back().entries, model.size() * 3 / 2 + 16) << "old versions were kept";
}

TEST_F(BytesAndBoundsTest, DeletedKeysStayDeletedThroughCompactionsOfParts) {
  const uint64_t n = 20'000;
  for (uint64_t i = 0; i < n; ++i) {
    ASSERT_OK(db_->Put(Key(i, "A"), "a"));
    ASSERT_OK(db_->Put(Key(i, "B"), "b"));
  }
  ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
  for (uint64_t i = 0; i < n; ++i) ASSERT_OK(db_->Delete(Key(i, "B")));
  const auto check = [&] {
    ReadOptions b;
    b.lower_bound = "B";
    ASSERT_TRUE(ReadAll(*db_, b).empty());
    ReadOptions a;
    a.upper_bound = "B";
    ASSERT_EQ(ReadAll(*db_, a).size(), n);
  };
  check();
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(db_->CompactRange(Key(n / 4, "B"), Key(n / 2, "B")));
    check();
    ASSERT_OK(db_->CompactRange(std::nullopt, Key(n / 3, "B")));
    check();
    ASSERT_OK(db_->CompactRange(std::nullopt, std::nullopt));
    check();
  }
  Open();
  check();
}

}  // namespace
}  // namespace tamis
