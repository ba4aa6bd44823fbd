// The memtable: recent entries in memory, ordered. One writer, any number of readers without locks; nothing is removed before the whole
// memtable is.
//
// It is an adaptive radix tree (art.h) over user keys whose leaves hold chains of versions, newest first. The writer adds entries with
// ascending sequences; a reader sees an entry once it has read, with acquire, a visible sequence at or above the entry's that the writer
// published with release after Add. Readers and cursors hold a reference (shared_ptr) or an epoch guard that keeps the memtable alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/arena.h"
#include "engine/memtable/art.h"
#include "table/cursor.h"
#include "table/internal_key.h"

namespace tamis::internal {

class Memtable {
 public:
  Memtable() = default;
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // Reserves the memory that adding `count` entries with `bytes` of keys and values in all can take at most. False if memory is short;
  // nothing changed. After true, adding exactly those entries allocates nothing from the system.
  [[nodiscard]] bool Reserve(uint64_t count, uint64_t bytes);
  // REQUIRES: called by the one writer, with sequences ascending.
  void Add(SequenceNumber sequence, EntryKind kind, std::string_view key, std::string_view value);

  struct Lookup {
    LookupState state = LookupState::kAbsent;
    SequenceNumber sequence = 0;
    std::string_view value;  // lives as long as the memtable
  };
  // The newest entry of `key` at or below `sequence`. Lock-free, allocates nothing.
  Lookup Get(std::string_view key, SequenceNumber sequence) const;

  // All versions in internal-key order. `keep_alive` is held by the cursor (may be null if the caller guarantees the lifetime). Stable
  // while the writer goes on: entries added after the cursor was positioned may or may not be met; those of sequences visible at
  // creation are all met.
  std::unique_ptr<Cursor> NewCursor(std::shared_ptr<const Memtable> keep_alive) const;

  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  uint64_t deletes() const { return deletes_.load(std::memory_order_relaxed); }
  uint64_t used_bytes() const { return arena_.used(); }            // compared with Options::memtable_bytes
  uint64_t footprint_bytes() const { return arena_.footprint(); }  // taken from the system
  // Sequences of the first and last entry; 0 when empty. For the writer, or once the memtable is immutable.
  SequenceNumber first_sequence() const { return first_sequence_; }
  SequenceNumber last_sequence() const { return last_sequence_; }

 private:
  Arena arena_;
  Art tree_{&arena_};
  std::atomic<uint64_t> entries_{0};
  std::atomic<uint64_t> deletes_{0};
  SequenceNumber first_sequence_ = 0;
  SequenceNumber last_sequence_ = 0;
};

}  // namespace tamis::internal
