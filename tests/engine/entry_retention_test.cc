#include "engine/compact/entry_retention.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support/script_runner.h"
#include "tests/support/status_matchers.h"
#include "tests/support/vector_cursor.h"

namespace tamis::internal {
namespace {

using testing_support::EntryBefore;
using testing_support::TestEntry;

std::vector<TestEntry> Retain(const std::vector<TestEntry>& entries, const std::vector<SequenceNumber>& snapshots,
                              const std::set<std::string>& below) {
  EntryRetention retention(snapshots, [&](std::string_view key) { return below.count(std::string(key)) != 0; });
  std::vector<TestEntry> kept;
  for (const TestEntry& entry : entries) {
    if (retention.Keep(entry.key, entry.sequence, entry.kind)) kept.push_back(entry);
  }
  EXPECT_EQ(kept.size() + retention.dropped_hidden() + retention.dropped_deletes(), entries.size());
  return kept;
}

// What `key` reads as at `sequence`: its value; "" for a delete; nullopt if the entries do not say (then what lies below decides).
std::optional<std::string> ReadAt(const std::vector<TestEntry>& entries, const std::string& key, SequenceNumber sequence) {
  for (const TestEntry& entry : entries) {
    if (entry.key == key && entry.sequence <= sequence) return entry.kind == EntryKind::kPut ? "v" + entry.value : "";
  }
  return std::nullopt;
}

struct History {
  std::vector<TestEntry> entries;  // in internal-key order
  std::vector<SequenceNumber> snapshots;
  std::set<std::string> below;
};

History RandomHistory(uint64_t seed) {
  Random random(seed);
  History history;
  const uint64_t keys = 1 + random.Uniform(6);
  const uint64_t last = 1 + random.Uniform(60);
  for (SequenceNumber sequence = 1; sequence <= last; ++sequence) {
    if (random.OneIn(5)) continue;  // of another table
    history.entries.push_back({std::string(1, static_cast<char>('a' + random.Uniform(keys))), sequence,
                               random.OneIn(3) ? EntryKind::kDelete : EntryKind::kPut, std::to_string(sequence)});
  }
  std::sort(history.entries.begin(), history.entries.end(), EntryBefore);
  const uint64_t snapshots = random.Uniform(6);
  for (uint64_t i = 0; i < snapshots; ++i) history.snapshots.push_back(random.Uniform(last + 10));
  std::sort(history.snapshots.begin(), history.snapshots.end());
  for (uint64_t k = 0; k < keys; ++k) {
    if (random.OneIn(2)) history.below.insert(std::string(1, static_cast<char>('a' + k)));
  }
  return history;
}

// Read with what may lie below: older than everything here.
std::string ReadThrough(const History& history, const std::vector<TestEntry>& entries, const std::string& key, SequenceNumber sequence) {
  if (auto read = ReadAt(entries, key, sequence)) return *read;
  return history.below.count(key) != 0 ? "from below" : "";
}

TEST(EntryRetention, EverySnapshotAndTheNewestStateReadTheSameAsBefore) {
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE(seed);
    const History history = RandomHistory(seed);
    const auto kept = Retain(history.entries, history.snapshots, history.below);
    std::vector<SequenceNumber> states = history.snapshots;
    states.push_back(kMaxSequence);
    for (SequenceNumber state : states) {
      for (char key = 'a'; key < 'h'; ++key) {
        const std::string k(1, key);
        ASSERT_EQ(ReadThrough(history, kept, k, state), ReadThrough(history, history.entries, k, state)) << k << " at " << state;
      }
    }
  }
}

TEST(EntryRetention, KeepsOnlyWhatASnapshotOrTheNewestStateReads) {
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE(seed);
    const History history = RandomHistory(seed);
    const auto kept = Retain(history.entries, history.snapshots, history.below);
    std::vector<SequenceNumber> states = history.snapshots;
    states.push_back(kMaxSequence);
    std::set<SequenceNumber> read;
    for (SequenceNumber state : states) {
      std::set<std::string> seen;
      for (const TestEntry& entry : history.entries) {
        if (entry.sequence <= state && seen.insert(entry.key).second) read.insert(entry.sequence);
      }
    }
    for (const TestEntry& entry : kept) {
      ASSERT_EQ(read.count(entry.sequence), 1u) << entry.key << "@" << entry.sequence << " is read by nobody";
      const bool oldest = entry.sequence <= states.front();
      ASSERT_FALSE(entry.kind == EntryKind::kDelete && oldest && history.below.count(entry.key) == 0)
          << entry.key << "@" << entry.sequence << " is a delete with nothing to hide";
    }
  }
}

TEST(EntryRetention, RetentionInTwoStepsLosesNothing) {
  // Split by age into a newer and an older table, each retained on its own (the newer one with the older below it), then together.
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const History history = RandomHistory(seed);
    const SequenceNumber cut = seed % 60;
    std::vector<TestEntry> newer, older;
    std::set<std::string> below_newer = history.below;
    for (const TestEntry& entry : history.entries) {
      (entry.sequence > cut ? newer : older).push_back(entry);
      if (entry.sequence <= cut) below_newer.insert(entry.key);
    }
    std::vector<TestEntry> both = Retain(newer, history.snapshots, below_newer);
    for (const TestEntry& entry : Retain(older, history.snapshots, history.below)) both.push_back(entry);
    std::sort(both.begin(), both.end(), EntryBefore);
    const auto kept = Retain(both, history.snapshots, history.below);
    std::vector<SequenceNumber> states = history.snapshots;
    states.push_back(kMaxSequence);
    for (SequenceNumber state : states) {
      for (char key = 'a'; key < 'h'; ++key) {
        const std::string k(1, key);
        ASSERT_EQ(ReadThrough(history, kept, k, state), ReadThrough(history, history.entries, k, state)) << k << " at " << state;
      }
    }
  }
}

TEST(EntryRetention, AsksWhatLiesBelowOnlyForDeletesWithKeysAscending) {
  std::vector<std::string> asked;
  EntryRetention retention({}, [&](std::string_view key) {
    asked.emplace_back(key);
    return false;
  });
  EXPECT_TRUE(retention.Keep("", 9, EntryKind::kPut));
  EXPECT_FALSE(retention.Keep("", 8, EntryKind::kDelete));
  EXPECT_FALSE(retention.Keep("a", 7, EntryKind::kDelete));
  EXPECT_FALSE(retention.Keep("a", 6, EntryKind::kPut));
  EXPECT_FALSE(retention.Keep("b", 5, EntryKind::kDelete));
  EXPECT_EQ(asked, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(retention.dropped_hidden(), 2u);
  EXPECT_EQ(retention.dropped_deletes(), 2u);
}

TEST(EntryRetention, DecidesAsTheScriptSays) {
  testing_support::RunScript("entry_retention.txt", [](const testing_support::ScriptLines& input) {
    std::vector<SequenceNumber> snapshots;
    std::set<std::string> below;
    std::vector<TestEntry> entries;
    for (const std::string& line : input) {
      std::istringstream words(line);
      std::string first, kind;
      words >> first;
      if (first == "snapshots") {
        for (SequenceNumber s; words >> s;) snapshots.push_back(s);
      } else if (first == "below") {
        for (std::string key; words >> key;) below.insert(key);
      } else {
        TestEntry entry;
        entry.key = first;
        words >> entry.sequence >> kind;
        entry.kind = kind == "del" ? EntryKind::kDelete : EntryKind::kPut;
        entries.push_back(entry);
      }
    }
    testing_support::ScriptLines output;
    EntryRetention retention(snapshots, [&](std::string_view key) { return below.count(std::string(key)) != 0; });
    for (const TestEntry& entry : entries) {
      const bool keep = retention.Keep(entry.key, entry.sequence, entry.kind);
      output.push_back((keep ? "keep " : "drop ") + entry.key + " " + std::to_string(entry.sequence));
    }
    output.push_back("hidden " + std::to_string(retention.dropped_hidden()) + ", deletes " + std::to_string(retention.dropped_deletes()));
    return output;
  });
}

}  // namespace
}  // namespace tamis::internal
