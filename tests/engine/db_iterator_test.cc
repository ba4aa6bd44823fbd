#include "engine/read/db_iterator.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status_util.h"
#include "engine/read/merging_cursor.h"
#include "tests/support/status_matchers.h"
#include "tests/support/vector_cursor.h"

namespace tamis::internal {
namespace {

using testing_support::TestEntry;
using testing_support::TestSource;
using testing_support::VectorCursor;

std::string Shown(const Iterator& it) {
  if (!it.Valid()) return it.status().ok() ? "end" : std::string(absl::StatusCodeToString(it.status().code()));
  return std::string(it.key()) + "=" + std::string(it.value());
}

TestEntry Put(std::string key, SequenceNumber sequence, std::string value = "") {
  return {std::move(key), sequence, EntryKind::kPut, std::move(value)};
}
TestEntry Del(std::string key, SequenceNumber sequence) { return {std::move(key), sequence, EntryKind::kDelete, ""}; }

DbIteratorOptions At(SequenceNumber sequence, std::optional<std::string> lower = {}, std::optional<std::string> upper = {}) {
  DbIteratorOptions options;
  options.sequence = sequence;
  options.lower_bound = std::move(lower);
  options.upper_bound = std::move(upper);
  return options;
}

std::unique_ptr<Iterator> Over(const std::vector<std::shared_ptr<TestSource>>& sources, DbIteratorOptions options) {
  std::vector<std::unique_ptr<Cursor>> cursors;
  for (const auto& source : sources) cursors.push_back(std::make_unique<VectorCursor>(source));
  return NewDbIterator(NewMergingCursor(std::move(cursors)), std::move(options));
}
std::unique_ptr<Iterator> Over(std::vector<TestEntry> entries, DbIteratorOptions options) {
  return Over({std::make_shared<TestSource>(std::move(entries))}, std::move(options));
}

// What an iterator over a plain map would do.
class ModelIterator {
 public:
  ModelIterator(std::map<std::string, std::string> all, const DbIteratorOptions& options) {
    for (auto& [key, value] : all) {
      if (options.lower_bound && key < *options.lower_bound) continue;
      if (options.upper_bound && key >= *options.upper_bound) continue;
      map_.emplace(key, value);
    }
    at_ = map_.end();
  }
  void SeekToFirst() { at_ = map_.begin(); }
  void SeekToLast() { at_ = map_.empty() ? map_.end() : std::prev(map_.end()); }
  void Seek(const std::string& target) { at_ = map_.lower_bound(target); }
  void SeekForPrev(const std::string& target) {
    at_ = map_.upper_bound(target);
    at_ = at_ == map_.begin() ? map_.end() : std::prev(at_);
  }
  void Next() {
    if (at_ != map_.end()) ++at_;
  }
  void Prev() {
    if (at_ != map_.end()) at_ = at_ == map_.begin() ? map_.end() : std::prev(at_);
  }
  std::string Shown() const { return at_ == map_.end() ? "end" : at_->first + "=" + at_->second; }

 private:
  std::map<std::string, std::string> map_;
  std::map<std::string, std::string>::const_iterator at_;
};

std::string RandomKey(Random& random) {
  std::string key;
  for (uint64_t n = random.Uniform(3); n > 0; --n) key.push_back("\0am\xff"[random.Uniform(4)]);
  return key;
}

std::optional<std::string> RandomBound(Random& random) {
  if (random.OneIn(2)) return std::nullopt;
  return RandomKey(random);
}

TEST(DbIterator, AnswersRandomMovesAsAMapDoesWhileTheMemtableGrows) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<std::shared_ptr<TestSource>> sources;
    for (uint64_t n = 1 + random.Uniform(5); n > 0; --n) sources.push_back(std::make_shared<TestSource>());
    std::map<std::string, std::string> state;
    DbIteratorOptions options = At(0, RandomBound(random), RandomBound(random));
    // Few keys and many versions, or many keys, by turns; later entries are beyond the iterator's sequence.
    const uint64_t last = random.Uniform(120);
    const uint64_t hot = random.Uniform(3);
    options.sequence = random.Uniform(last + 1);
    SequenceNumber sequence = 0;
    const auto write = [&](TestSource& source) {
      TestEntry entry = Put(hot != 0 ? std::string(1, "am"[random.Uniform(hot)]) : RandomKey(random), ++sequence);
      if (random.OneIn(4)) entry = Put(RandomKey(random), sequence);
      entry.value = std::to_string(sequence);
      if (random.OneIn(3)) entry.kind = EntryKind::kDelete;
      if (sequence <= options.sequence) {
        if (entry.kind == EntryKind::kPut) {
          state[entry.key] = entry.value;
        } else {
          state.erase(entry.key);
        }
      }
      source.Add(entry);
    };
    // In a real tree older sources hold older entries of a key; the iterator does not rely on it.
    for (uint64_t i = 0; i < last; ++i) write(*sources[random.Uniform(sources.size())]);

    auto it = Over(sources, options);
    ModelIterator model(state, options);
    for (int move = 0; move < 120; ++move) {
      const std::string target = RandomKey(random);
      switch (random.Uniform(12)) {
        case 0:
          it->SeekToFirst(), model.SeekToFirst();
          break;
        case 1:
          it->SeekToLast(), model.SeekToLast();
          break;
        case 2:
          it->Seek(target), model.Seek(target);
          break;
        case 3:
          it->SeekForPrev(target), model.SeekForPrev(target);
          break;
        case 4: {
          // To its own key, whose bytes the seek gives up.
          if (!it->Valid()) break;
          const std::string key(it->key());
          if (random.OneIn(2)) {
            it->Seek(it->key()), model.Seek(key);
          } else {
            it->SeekForPrev(it->key()), model.SeekForPrev(key);
          }
          break;
        }
        case 5:
        case 6:
        case 7:
        case 8:
          it->Next(), model.Next();
          break;
        default:
          it->Prev(), model.Prev();
      }
      ASSERT_EQ(Shown(*it), model.Shown()) << "move " << move;
      ASSERT_OK(it->status());
      if (random.OneIn(3)) write(*sources.front());
    }
  }
}

TEST(DbIterator, BoundsHoldInEveryMove) {
  // The keys a to j over four sources, [c, g).
  std::vector<std::shared_ptr<TestSource>> sources;
  for (int i = 0; i < 4; ++i) sources.push_back(std::make_shared<TestSource>());
  for (int i = 0; i < 10; ++i) sources[static_cast<size_t>(i % 4)]->Add(Put(std::string(1, static_cast<char>('a' + i)), 1));
  auto it = Over(sources, At(9, "c", "g"));
  const auto expect = [&](const char* key) { EXPECT_EQ(it->Valid() ? std::string(it->key()) : "end", key); };
  it->SeekToFirst(), expect("c");
  it->Prev(), expect("end");
  it->SeekToLast(), expect("f");
  it->Next(), expect("end");
  it->SeekToLast(), expect("f");
  it->Seek("a"), expect("c");
  it->Seek("g"), expect("end");
  it->Seek("z"), expect("end");
  it->SeekForPrev("z"), expect("f");
  it->SeekForPrev("g"), expect("f");
  it->SeekForPrev("c"), expect("c");
  it->SeekForPrev("b"), expect("end");
  EXPECT_OK(it->status());
}

TEST(DbIterator, EmptyStringsAreBoundsAndEmptyRangesAreEmpty) {
  const std::vector<TestEntry> entries = {Put("", 1, "0"), Put(std::string(1, '\0'), 2, "1"), Put("a", 3, "2")};
  auto it = Over(entries, At(9, ""));
  it->SeekToFirst();
  EXPECT_EQ(Shown(*it), "=0");
  it->Prev();
  EXPECT_EQ(Shown(*it), "end");
  const std::pair<const char*, const char*> empty[] = {{"", ""}, {"a", "a"}, {"b", "a"}, {"a", ""}};
  for (const auto& [lower, upper] : empty) {
    it = Over(entries, At(9, lower, upper));
    for (int kind = 0; kind < 5; ++kind) {
      if (kind == 0) it->SeekToFirst();
      if (kind == 1) it->SeekToLast();
      if (kind == 2) it->Seek("a");
      if (kind == 3) it->SeekForPrev("a");
      if (kind == 4) it->Seek("");
      EXPECT_EQ(Shown(*it), "end") << lower << " " << upper << " " << kind;
    }
  }
}

TEST(DbIterator, PrefixRangesOf0xffKeysHoldJustTheirKeys) {
  const std::vector<std::string> keys = {
      "\x01\xff", "\x01\xff\x05",           "\x01\xff\xff", std::string("\x02\0", 2), std::string("\x02\xff\0", 3),
      "\xff",     std::string("\xff\0", 2), "\xff\xff",     "\xff\xff\xff\x01"};
  std::vector<TestEntry> entries;
  for (const std::string& key : keys) entries.push_back(Put(key, entries.size() + 1));
  for (const std::string& prefix : {std::string(), std::string("\xff"), std::string("\xff\xff"), std::string("\x01\xff")}) {
    std::optional<std::string> upper = prefix;
    while (!upper->empty() && upper->back() == '\xff') upper->pop_back();
    if (upper->empty()) {
      upper.reset();
    } else {
      ++upper->back();
    }
    size_t expected = 0;
    for (const std::string& key : keys) expected += key.substr(0, prefix.size()) == prefix ? 1 : 0;
    auto it = Over(entries, At(99, prefix, upper));
    size_t forward = 0, backward = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) forward += it->key().substr(0, prefix.size()) == prefix ? 1 : 100;
    for (it->SeekToLast(); it->Valid(); it->Prev()) backward += it->key().substr(0, prefix.size()) == prefix ? 1 : 100;
    EXPECT_EQ(forward, expected) << prefix;
    EXPECT_EQ(backward, expected) << prefix;
  }
}

TEST(DbIterator, PutsAfterItsCreationChangeNoMove) {
  auto memtable = std::make_shared<TestSource>();
  for (int i = 1; i <= 5; ++i) memtable->Add(Put(std::to_string(i), static_cast<SequenceNumber>(i), "old"));
  auto it = Over({memtable}, At(5));
  it->SeekToLast();
  memtable->Add(Put("3", 6, "new"));
  memtable->Add(Put("35", 7, "new"));
  std::string moves = Shown(*it);
  for (int i = 0; i < 2; ++i) it->Prev(), moves.append(" ").append(Shown(*it));
  for (int i = 0; i < 2; ++i) it->Next(), moves.append(" ").append(Shown(*it));
  EXPECT_EQ(moves, "5=old 4=old 3=old 4=old 5=old");
}

TEST(DbIterator, AnErrorNeverLetsAnOlderValueShow) {
  // Three versions of b in three sources, the newest damaged.
  auto newest = std::make_shared<TestSource>(std::vector<TestEntry>{Put("b", 9, "new"), Put("d", 8, "d")});
  auto middle = std::make_shared<TestSource>(std::vector<TestEntry>{Put("b", 5, "middle"), Put("c", 6, "c")});
  auto oldest = std::make_shared<TestSource>(std::vector<TestEntry>{Put("a", 1, "a"), Put("b", 2, "old")});
  newest->MarkBad("b", 9);
  auto it = Over({newest, middle, oldest}, At(20));
  std::string met;
  for (it->SeekToLast(); it->Valid(); it->Prev()) met.append(Shown(*it)).append(" ");
  EXPECT_EQ(met.find("old"), std::string::npos) << met;
  EXPECT_EQ(met.find("middle"), std::string::npos) << met;
  EXPECT_CODE(it->status(), absl::StatusCode::kDataLoss);

  it->Next();
  it->Prev();
  EXPECT_FALSE(it->Valid());
  EXPECT_CODE(it->status(), absl::StatusCode::kDataLoss);

  for (int kind = 0; kind < 3; ++kind) {
    if (kind == 0) it->SeekToFirst();
    if (kind == 1) it->Seek("b");
    if (kind == 2) it->SeekForPrev("b");
    EXPECT_FALSE(it->Valid());
    EXPECT_CODE(it->status(), absl::StatusCode::kDataLoss);
  }
  it->Seek("c");
  EXPECT_EQ(Shown(*it), "c=c");
  EXPECT_OK(it->status());
  newest->ClearBad();
  it->SeekForPrev("b");
  EXPECT_EQ(Shown(*it), "b=new");
}

TEST(DbIterator, NoErrorShowsAWrongValueWhereverItStrikes) {
  // Every entry in turn is bad: each key that is shown has its true value, and what is not shown is covered by an error.
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<std::shared_ptr<TestSource>> sources;
    for (int i = 0; i < 3; ++i) sources.push_back(std::make_shared<TestSource>());
    std::map<std::string, std::string> state;
    for (SequenceNumber sequence = 1; sequence <= 40; ++sequence) {
      TestEntry entry = Put(std::string(1, "abc"[random.Uniform(3)]), sequence, std::to_string(sequence));
      if (random.OneIn(3)) entry.kind = EntryKind::kDelete;
      if (sequence <= 30) state.erase(entry.key);
      if (sequence <= 30 && entry.kind == EntryKind::kPut) state[entry.key] = entry.value;
      sources[random.Uniform(3)]->Add(entry);
    }
    for (const auto& source : sources) {
      for (const TestEntry& bad : std::vector<TestEntry>(source->entries())) {
        source->MarkBad(bad.key, bad.sequence);
        auto it = Over(sources, At(30));
        for (const bool forward : {true, false}) {
          std::map<std::string, std::string> met;
          for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); forward ? it->Next() : it->Prev()) {
            met.emplace(it->key(), it->value());
            ASSERT_EQ(state.count(std::string(it->key())), 1u);
            ASSERT_EQ(state[std::string(it->key())], it->value());
          }
          if (it->status().ok()) {
            ASSERT_EQ(met, state);
          }
        }
        source->ClearBad();
      }
    }
  }
}

TEST(DbIterator, AHandleThatIsNotUsableEndsIt) {
  auto handle = std::make_shared<HandleState>();
  DbIteratorOptions options = At(9);
  options.handle = handle;
  auto it = Over({Put("a", 1, "1"), Put("b", 2, "2")}, std::move(options));
  it->SeekToFirst();
  EXPECT_EQ(Shown(*it), "a=1");
  handle->MarkClosed();
  EXPECT_FALSE(it->Valid());
  EXPECT_CODE(it->status(), absl::StatusCode::kFailedPrecondition);
  it->Next();
  it->SeekToFirst();
  it->SeekForPrev("z");
  EXPECT_FALSE(it->Valid());
  EXPECT_CODE(it->status(), absl::StatusCode::kFailedPrecondition);
}

TEST(DbIterator, MovesOfAnIteratorThatIsNotValidAreHarmless) {
  auto it = Over({Put("a", 1, "1")}, At(9));
  EXPECT_FALSE(it->Valid());
  it->Next();
  it->Prev();
  EXPECT_FALSE(it->Valid());
  it->Seek("b");
  it->Prev();
  EXPECT_FALSE(it->Valid());
  EXPECT_OK(it->status());
}

TEST(DbIterator, ManyHiddenVersionsArePassedBySeeks) {
  // 1,000 versions of m, of which the sequence sees none, some or all: neither direction may step over each of them.
  std::vector<TestEntry> entries = {Put("a", 1, "a"), Put("z", 2, "z")};
  for (SequenceNumber s = 11; s <= 1010; ++s) entries.push_back(s == 500 ? Del("m", s) : Put("m", s, std::to_string(s)));
  for (const SequenceNumber sequence : {5, 250, 500, 2000}) {
    SCOPED_TRACE(sequence);
    auto owned = std::make_unique<VectorCursor>(std::make_shared<TestSource>(entries));
    VectorCursor& cursor = *owned;
    auto it = NewDbIterator(std::move(owned), At(sequence));
    const std::string middle = sequence == 250 ? " m=250" : sequence == 2000 ? " m=1010" : "";
    std::string met;
    for (it->SeekToFirst(); it->Valid(); it->Next()) met.append(Shown(*it)).append(" ");
    EXPECT_EQ(met, Concat("a=a", middle, " z=z "));
    EXPECT_LT(cursor.steps, 40);
    EXPECT_LT(cursor.seeks, 6);
    met.clear();
    cursor.steps = cursor.seeks = 0;
    for (it->SeekToLast(); it->Valid(); it->Prev()) met.append(Shown(*it)).append(" ");
    EXPECT_EQ(met, Concat("z=z", middle, " a=a "));
    EXPECT_LT(cursor.steps, 40);
    EXPECT_LT(cursor.seeks, 6);
  }
}

TEST(DbIterator, KeepsItsSourcesAliveUntilAfterTheCursor) {
  struct Alive {
    explicit Alive(bool* gone) : gone_(gone) {}
    ~Alive() { *gone_ = true; }
    bool* gone_;
  };
  class WatchingCursor final : public Cursor {
   public:
    explicit WatchingCursor(const bool* gone) : gone_(gone) {}
    ~WatchingCursor() override { EXPECT_FALSE(*gone_); }
    void SeekToFirst() override {}
    void SeekToLast() override {}
    void Seek(std::string_view, SequenceNumber) override {}
    void SeekForPrev(std::string_view, SequenceNumber) override {}
    void Next() override {}
    void Prev() override {}
    absl::Status status() const override { return absl::OkStatus(); }

   private:
    const bool* gone_;
  };
  bool gone = false;
  DbIteratorOptions options = At(1);
  options.keep_alive = std::make_shared<Alive>(&gone);
  auto it = NewDbIterator(std::make_unique<WatchingCursor>(&gone), std::move(options));
  EXPECT_FALSE(gone);
  it.reset();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace tamis::internal
