// An adaptive radix tree (Leis et al., "The Adaptive Radix Tree", ICDE 2013) from keys to chains of entries, in an arena.
//
// One writer; any number of readers, which take no lock and never retry. Keys are any bytes: a key may be empty, hold NULs or be a prefix
// of another.
//
// Invariants:
// I1 Everything a reader can reach was published by a store with release and is loaded with acquire: a root, a child slot, the `ends` of
//    a node, or the count (Node4, Node16) or index (Node48) that makes a slot valid.
// I2 What was published stays reachable: a node that grows is copied, the copy published with the new child in it, and the old node left
//    as it was to the readers in it. It is never written again, and not freed before the arena.
// I3 All keys below a node agree in their first `branch` bytes, and `branch` never changes. An inner node has a child and, in all, at
//    least two of children and `ends`.
// I4 A slot that leads to one key only holds its newest entry at once, whatever the length of the key; so what is met at the end of a
//    path has to be compared with the whole key.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "engine/memtable/entry.h"

namespace tamis::internal {

class Art {
 public:
  explicit Art(Arena* arena) : arena_(arena) {}
  Art(const Art&) = delete;
  Art& operator=(const Art&) = delete;

  // Writer: room in the arena for `count` inserts with `bytes` of keys and values in all. False if memory is short.
  [[nodiscard]] bool Reserve(uint64_t count, uint64_t bytes);
  // Writer: makes a new newest version of `key`.
  void Insert(std::string_view key, uint64_t sequence_and_kind, std::string_view value);

  // The newest entry of `key`, or null.
  const Entry* Find(std::string_view key) const;

  // A position at a key, for walks in order. Each move returns the newest entry of the key moved to as of then, or null past either end;
  // after null only First, Last and the seeks may be called. Keys inserted after the first move may or may not be met.
  class Walk {
   public:
    explicit Walk(const Art* tree) : tree_(tree) { path_.reserve(16); }  // of most trees the whole depth
    const Entry* First();
    const Entry* Last();
    const Entry* SeekAtOrAfter(std::string_view key);   // the first key >= `key`
    const Entry* SeekAtOrBefore(std::string_view key);  // the last key <= `key`
    const Entry* Next();
    const Entry* Prev();

   private:
    struct Frame {
      uintptr_t node;
      int byte;  // the child below; -1 for `ends`
    };
    enum class Place { kBefore, kEqual, kAfter, kGap };
    // Goes down towards `key` as far as the tree does. kGap: nothing is where the top frame points; else *ref is there, and `key` is
    // before all of it, equal to it (an entry), or after all of it.
    Place Locate(std::string_view key, uintptr_t* ref);
    const Entry* Leftmost(uintptr_t ref);
    const Entry* Rightmost(uintptr_t ref);

    const Art* tree_;
    std::vector<Frame> path_;
  };

 private:
  const Entry* NewEntry(const Entry* older, std::string_view key, uint64_t sequence_and_kind, std::string_view value);
  // A node at byte `branch` with `entry` and the older `sibling`, whose key or keys go on with the bytes of `sibling_key`.
  uintptr_t NewFork(const Entry* entry, size_t depth, size_t branch, uintptr_t sibling, std::string_view sibling_key);
  // A copy of a full node with one child more.
  uintptr_t Grow(uintptr_t ref, uint8_t byte, uintptr_t child);

  Arena* const arena_;
  std::atomic<uintptr_t> root_{0};
  // Writer: nodes in the tree that can still grow, by kind.
  uint64_t nodes4_ = 0;
  uint64_t nodes16_ = 0;
  uint64_t nodes48_ = 0;
};

}  // namespace tamis::internal
