#include "engine/memtable/art.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace tamis::internal {
namespace {

std::string KeyOf(const Entry* entry) { return std::string(entry->key()); }

// A tree beside the sorted set of the keys in it.
class ArtTest : public testing::Test {
 protected:
  void Insert(const std::string& key) {
    tree_.Insert(key, ++sequence_ << 8 | 1, "v" + key);
    keys_.insert(key);
  }

  void ExpectSameKeys() {
    std::vector<std::string> forward, backward;
    Art::Walk walk(&tree_);
    for (const Entry* e = walk.First(); e != nullptr; e = walk.Next()) forward.push_back(KeyOf(e));
    for (const Entry* e = walk.Last(); e != nullptr; e = walk.Prev()) backward.push_back(KeyOf(e));
    std::reverse(backward.begin(), backward.end());
    const std::vector<std::string> expected(keys_.begin(), keys_.end());
    EXPECT_TRUE(forward == expected) << forward.size() << " of " << expected.size();
    EXPECT_TRUE(backward == expected) << backward.size() << " of " << expected.size();
    for (const std::string& key : keys_) {
      const Entry* entry = tree_.Find(key);
      ASSERT_NE(entry, nullptr) << testing::PrintToString(key);
      EXPECT_EQ(entry->key(), key);
      EXPECT_EQ(entry->value(), "v" + key);
    }
  }

  void ExpectSameSeeks(const std::string& target) {
    SCOPED_TRACE(testing::PrintToString(target));
    EXPECT_EQ(tree_.Find(target) != nullptr, keys_.contains(target));
    Art::Walk walk(&tree_);
    const auto at = keys_.lower_bound(target);
    const Entry* entry = walk.SeekAtOrAfter(target);
    ASSERT_EQ(entry == nullptr, at == keys_.end());
    if (entry != nullptr) {
      EXPECT_EQ(KeyOf(entry), *at);
      const Entry* before = walk.Prev();
      ASSERT_EQ(before == nullptr, at == keys_.begin());
      if (before != nullptr) {
        EXPECT_EQ(KeyOf(before), *std::prev(at));
      }
    }
    const auto above = keys_.upper_bound(target);
    entry = walk.SeekAtOrBefore(target);
    ASSERT_EQ(entry == nullptr, above == keys_.begin());
    if (entry != nullptr) {
      EXPECT_EQ(KeyOf(entry), *std::prev(above));
      const Entry* after = walk.Next();
      ASSERT_EQ(after == nullptr, above == keys_.end());
      if (after != nullptr) {
        EXPECT_EQ(KeyOf(after), *above);
      }
    }
  }

  Arena arena_;
  Art tree_{&arena_};
  uint64_t sequence_ = 0;
  std::set<std::string> keys_;
};

TEST_F(ArtTest, EmptyTreeHasNoKeyAndNoPosition) {
  ExpectSameKeys();
  ExpectSameSeeks("");
  ExpectSameSeeks("a");
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(ArtTest, EmptyKeyIsOrdinary) {
  Insert("");
  ExpectSameKeys();
  ExpectSameSeeks("");
  ExpectSameSeeks(std::string(1, '\0'));
  Insert("a");
  ExpectSameKeys();
  ExpectSameSeeks("");
  ExpectSameSeeks("a");
}

TEST_F(ArtTest, AllKeysOfUpToTwoBytesInRandomOrderAreSortedUnsigned) {
  std::vector<std::string> keys = {""};
  for (int a = 0; a < 256; ++a) {
    keys.push_back(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) keys.push_back({static_cast<char>(a), static_cast<char>(b)});
  }
  Random random(67);
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Uniform(i)]);
  for (const std::string& key : keys) Insert(key);
  ASSERT_EQ(keys_.size(), 65536u + 256 + 1);
  ExpectSameKeys();
  for (int i = 0; i < 2000; ++i) ExpectSameSeeks(keys[random.Uniform(keys.size())]);
}

TEST_F(ArtTest, NodeOfEverySizeFindsWhatItHoldsAndNothingElse) {
  std::vector<int> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[i] = i;
  Random random(48);
  for (size_t i = 256; i > 1; --i) std::swap(bytes[i - 1], bytes[random.Uniform(i)]);
  for (const int byte : bytes) {
    Insert(std::string("prefix longer than eight bytes ") + static_cast<char>(byte) + "tail");
    for (int probe = 0; probe < 256; ++probe) {
      for (const char* tail : {"", "tail", "tail+", "tai", "z"}) {
        const std::string key = std::string("prefix longer than eight bytes ") + static_cast<char>(probe) + tail;
        ASSERT_EQ(tree_.Find(key) != nullptr, keys_.contains(key)) << keys_.size() << " children, byte " << probe << ", " << tail;
      }
    }
    if (keys_.size() % 5 == 0 || keys_.size() < 60) {
      ExpectSameKeys();
      for (int i = 0; i < 20; ++i)
        ExpectSameSeeks("prefix longer than eight bytes " + std::string(1, static_cast<char>(random.Uniform(256))));
    }
  }
  // The prefix itself, shorter ones, and ones that leave it at each byte.
  for (size_t length = 0; length <= 31; ++length) {
    std::string key = std::string("prefix longer than eight bytes ").substr(0, length);
    ExpectSameSeeks(key);
    for (const char c : {'\0', '\x01', '\x7f', '\xff'}) ExpectSameSeeks(key + c);
  }
}

// The node keeps only the 8 bytes before its branch; keys that differ earlier must not be taken for keys below it.
TEST_F(ArtTest, KeysThatLeaveALongPrefixAnywhereStayApart) {
  const std::string prefix = "prefix longer than eight bytes ";
  Insert(prefix + "1");
  Insert(prefix + "2");
  for (size_t i = 0; i < prefix.size(); ++i) {
    for (const char c : {'\0', '~', '\xff'}) {
      std::string key = prefix + "1";
      key[i] = c;
      ExpectSameSeeks(key);
      Insert(key);
      ExpectSameSeeks(key);
      ExpectSameSeeks(prefix);
    }
  }
  ExpectSameKeys();
}

TEST_F(ArtTest, EveryPrefixOfALongKeyCanBeAKey) {
  Random random(5);
  std::string key;
  for (int i = 0; i < 3000; ++i) key.push_back(static_cast<char>(random.Uniform(256)));
  std::vector<size_t> lengths;
  for (size_t length = 0; length <= key.size(); ++length) lengths.push_back(length);
  for (size_t i = lengths.size(); i > 1; --i) std::swap(lengths[i - 1], lengths[random.Uniform(i)]);
  for (const size_t length : lengths) Insert(key.substr(0, length));
  ExpectSameKeys();
  for (int i = 0; i < 300; ++i) {
    std::string probe = key.substr(0, random.Uniform(key.size()));
    ExpectSameSeeks(probe);
    ExpectSameSeeks(probe + static_cast<char>(random.Uniform(256)));
  }
}

TEST_F(ArtTest, RandomKeysOfSmallAlphabetsMatchASet) {
  for (const uint64_t letters : {1, 2, 3, 5, 20, 60, 256}) {
    for (const uint64_t longest : {3, 9, 17, 40}) {
      SCOPED_TRACE(testing::Message() << letters << " letters, up to " << longest << " bytes");
      Arena arena;
      Art tree(&arena);
      std::set<std::string> keys;
      Random random(letters * 100 + longest);
      const auto random_key = [&] {
        std::string key;
        for (uint64_t n = random.Uniform(longest + 1); n > 0; --n)
          key.push_back(static_cast<char>(random.Uniform(letters) * 255 / letters));
        return key;
      };
      for (int i = 0; i < 1500; ++i) {
        const std::string key = random_key();
        tree.Insert(key, static_cast<uint64_t>(i + 1) << 8, "");
        keys.insert(key);
        const std::string probe = random_key();
        ASSERT_EQ(tree.Find(probe) != nullptr, keys.contains(probe)) << testing::PrintToString(probe);
        Art::Walk walk(&tree);
        const Entry* after = walk.SeekAtOrAfter(probe);
        const auto at = keys.lower_bound(probe);
        ASSERT_EQ(after == nullptr ? "end" : KeyOf(after), at == keys.end() ? "end" : *at) << testing::PrintToString(probe);
        const Entry* before = walk.SeekAtOrBefore(probe);
        const auto above = keys.upper_bound(probe);
        ASSERT_EQ(before == nullptr ? "end" : KeyOf(before), above == keys.begin() ? "end" : *std::prev(above));
      }
      size_t met = 0;
      Art::Walk walk(&tree);
      auto expected = keys.begin();
      for (const Entry* e = walk.First(); e != nullptr; e = walk.Next(), ++expected, ++met) ASSERT_EQ(KeyOf(e), *expected);
      EXPECT_EQ(met, keys.size());
    }
  }
}

// Reserves for a batch, inserts it, and expects that nothing was taken from the system meanwhile.
template <typename KeyAt>
void ExpectReserveSuffices(Arena* arena, Art* tree, uint64_t* sequence, uint64_t count, KeyAt key_at) {
  std::vector<std::string> keys;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    keys.push_back(key_at(i));
    bytes += keys.back().size() + 1;
  }
  ASSERT_TRUE(tree->Reserve(count, bytes));
  const size_t footprint = arena->footprint();
  for (const std::string& key : keys) tree->Insert(key, ++*sequence << 8, "v");
  ASSERT_EQ(arena->footprint(), footprint) << count << " inserts";
}

TEST_F(ArtTest, ReservedInsertsTakeNothingFromTheSystem) {
  for (const uint64_t batch : {1, 2, 7, 33, 300, 5000}) {
    for (const uint64_t letters : {2, 5, 17, 49, 256}) {
      SCOPED_TRACE(testing::Message() << "batches of " << batch << ", " << letters << " letters");
      Arena arena;
      Art tree(&arena);
      uint64_t sequence = 0;
      Random random(batch * 1000 + letters);
      for (uint64_t done = 0; done < 10000; done += batch) {
        ExpectReserveSuffices(&arena, &tree, &sequence, batch, [&](uint64_t) {
          std::string key;
          for (uint64_t n = random.Uniform(12); n > 0; --n) key.push_back(static_cast<char>(random.Uniform(letters)));
          return key;
        });
      }
    }
  }
}

TEST_F(ArtTest, ReserveCoversABatchThatGrowsEveryFullNodeAtOnce) {
  for (const int full : {4, 16, 48}) {
    Arena arena;
    Art tree(&arena);
    uint64_t sequence = 0;
    for (int node = 0; node < 3000; ++node) {
      for (int child = 0; child < full; ++child) {
        const std::string key = {static_cast<char>(node >> 8), static_cast<char>(node), static_cast<char>(child)};
        tree.Insert(key, ++sequence << 8, "");
      }
    }
    ExpectReserveSuffices(&arena, &tree, &sequence, 3000, [](uint64_t node) {
      return std::string({static_cast<char>(node >> 8), static_cast<char>(node), '\xff'});
    });
  }
}

TEST_F(ArtTest, ReserveIsSmallForOneInsertAndLinearForMany) {
  ASSERT_TRUE(tree_.Reserve(1, 116));
  EXPECT_LE(arena_.footprint(), 5u << 10);
  Arena arena;
  Art tree(&arena);
  ASSERT_TRUE(tree.Reserve(100'000, 100'000 * 116));
  EXPECT_LE(arena.footprint(), 100'000u * 400);  // twice the bytes, as the arena must suit one large entry too
}

TEST_F(ArtTest, ReserveRefusesWhatCannotBe) {
  EXPECT_FALSE(tree_.Reserve(UINT64_MAX, 0));
  EXPECT_FALSE(tree_.Reserve(1, UINT64_MAX));
  EXPECT_FALSE(tree_.Reserve(UINT64_MAX, UINT64_MAX));
  Insert("still usable");
  ExpectSameKeys();
}

TEST_F(ArtTest, VersionsAreFoundInLogarithmicSteps) {
  constexpr uint64_t kVersions = 100'000;
  for (uint64_t s = 1; s <= kVersions; ++s) tree_.Insert("hot", 2 * s << 8, "");
  const Entry* head = tree_.Find("hot");
  ASSERT_NE(head, nullptr);
  // 17 doublings to go up and as many to come down; a plain chain needs 50,000 on average.
  for (uint64_t target = 1; target <= 2 * kVersions; target += 997) {
    int steps = 0;
    const Entry* at = head;
    while (at->older != nullptr && at->older->sequence() > target) {
      at = at->jump()->sequence() > target ? at->jump() : at->older;
      ++steps;
    }
    EXPECT_LE(steps, 60) << target;
  }
  for (uint64_t target = 0; target <= 2 * kVersions + 1; target += 1 + target % 7) {
    const Entry* version = NewestAtOrBelow(head, target);
    ASSERT_EQ(version == nullptr ? 0 : version->sequence(), std::min(target / 2 * 2, 2 * kVersions)) << target;
    if (target < 2 * kVersions) {
      ASSERT_EQ(OldestAbove(head, target)->sequence(), target / 2 * 2 + 2) << target;
    }
  }
}

}  // namespace
}  // namespace tamis::internal
