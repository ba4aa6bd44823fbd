// The nodes of the adaptive radix tree (art.h), and the tagged references between them. For art.cc only.
//
// A node branches at byte `branch` of the key: all keys below it agree in their first `branch` bytes, with `sample` among others. `branch`
// counts from the start of the key and not from the parent, so a node does not change when a node is put between it and its parent (a
// prefix split copies nothing), and a prefix of any length costs nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/memtable/entry.h"

namespace tamis::internal::art {

// 0: nothing. Otherwise a pointer aligned to 8 with the kind in its low bits: the newest entry of a key, or a node.
using Ref = uintptr_t;
enum Kind : Ref { kEntry = 0, kNode4 = 1, kNode16 = 2, kNode48 = 3, kNode256 = 4 };
inline constexpr Ref kKindMask = 7;

inline Kind KindOf(Ref ref) { return static_cast<Kind>(ref & kKindMask); }
inline bool IsEntry(Ref ref) { return KindOf(ref) == kEntry; }
inline Ref ToRef(const Entry* entry) { return reinterpret_cast<Ref>(entry); }
inline const Entry* ToEntry(Ref ref) { return reinterpret_cast<const Entry*>(ref); }
// Walks fetch ahead: all children of a small node when they enter it, the next child of a large one with each step. Takes a scan of
// 500,000 random keys from 97 to 57 ns an entry, of 100,000 from 32 to 27.
inline void Prefetch(Ref ref) {
  if (ref == 0) return;
  const char* at = reinterpret_cast<const char*>(ref & ~kKindMask);
  __builtin_prefetch(at);
  __builtin_prefetch(at + 64);
}

// The up to 8 bytes of `key` before `end`, in an order of bits that is good for a test of equality at the same `end` only.
inline uint64_t LoadTail(const char* key, size_t end) {
  const auto load = [key]<typename T>(size_t at, T value) {
    std::memcpy(&value, key + at, sizeof value);
    return static_cast<uint64_t>(value);
  };
  if (end >= 8) return load(end - 8, uint64_t{});
  if (end >= 4) return load(0, uint32_t{}) | load(end - 4, uint32_t{}) << 32;
  if (end >= 2) return load(0, uint16_t{}) | load(end - 2, uint16_t{}) << 16;
  return end == 1 ? static_cast<uint8_t>(key[0]) : 0;
}

// The first position in [from, to) where a and b differ, else `to`.
inline size_t Mismatch(const char* a, const char* b, size_t from, size_t to) {
  for (; from + 8 <= to; from += 8) {
    uint64_t x, y;
    std::memcpy(&x, a + from, 8);
    std::memcpy(&y, b + from, 8);
    if (x == y) continue;
    const int zeros = std::endian::native == std::endian::little ? std::countr_zero(x ^ y) : std::countl_zero(x ^ y);
    return from + static_cast<size_t>(zeros) / 8;
  }
  while (from < to && a[from] == b[from]) ++from;
  return from;
}

struct Node {
  Node(const char* sample_key, size_t branch_at, bool skips_bytes)
      : sample(sample_key), tail(LoadTail(sample_key, branch_at)), branch(static_cast<uint32_t>(branch_at)), skips(skips_bytes) {}
  Node(const Node& other)
      : sample(other.sample),
        tail(other.tail),
        ends(other.ends.load(std::memory_order_relaxed)),
        branch(other.branch),
        skips(other.skips) {}
  Node& operator=(const Node&) = delete;

  // How far `key`, known to agree up to `depth`, agrees with the keys below: at most `branch`.
  size_t Match(std::string_view key, size_t depth) const {
    if (depth == branch) return branch;
    if (key.size() >= branch && branch - depth <= 8 && LoadTail(key.data(), branch) == tail) return branch;
    return Mismatch(key.data(), sample, depth, std::min<size_t>(key.size(), branch));
  }
  // False only if no key below agrees with `key`. A lookup needs no more, as it compares the whole key in the end. It reads no byte of
  // `sample`, which would be a cache miss of its own. REQUIRES: key.size() >= branch.
  bool MayMatch(std::string_view key) const { return !skips || LoadTail(key.data(), branch) == tail; }

  const char* const sample;
  const uint64_t tail;                      // the 8 bytes of sample before branch
  std::atomic<const Entry*> ends{nullptr};  // of the key that ends at branch
  const uint32_t branch;
  std::atomic<uint16_t> count{0};  // of children; for Node4 and Node16 stored with release after the child
  const bool skips;                // bytes lay between the parent's branch byte and this one when the node was made
};
static_assert(sizeof(Node) == 32);

// The high bit of each zero byte of x; above the lowest one also of others, so that only the lowest may be used.
inline uint64_t ZeroBytes(uint64_t x) { return (x - 0x0101010101010101u) & ~x & 0x8080808080808080u; }

// Children in order of arrival: the first `count` are valid. The key bytes are packed in words, because a reader looks at them all while
// the writer appends: bytes would have to be loaded one by one to be free of data races.
template <uint32_t kCapacityOf>
struct LinearNode : Node {
  static constexpr uint32_t kCapacity = kCapacityOf;
  using Node::Node;
  explicit LinearNode(const Node& other) : Node(other) {}

  const std::atomic<Ref>* Find(uint8_t byte) const {
    const uint32_t valid = count.load(std::memory_order_acquire);
    for (uint32_t w = 0; w < std::size(bytes); ++w) {
      const uint64_t hits = ZeroBytes(bytes[w].load(std::memory_order_relaxed) ^ (byte * 0x0101010101010101u));
      if (hits == 0) continue;
      const uint32_t i = w * 8 + static_cast<uint32_t>(std::countr_zero(hits)) / 8;
      return i < valid ? &slots[i] : nullptr;
    }
    return nullptr;
  }
  void Append(uint8_t byte, Ref child) {
    const uint32_t i = count.load(std::memory_order_relaxed);
    std::atomic<uint64_t>& word = bytes[i / 8];
    slots[i].store(child, std::memory_order_relaxed);
    word.store(word.load(std::memory_order_relaxed) | uint64_t{byte} << (i % 8 * 8), std::memory_order_relaxed);
    count.store(static_cast<uint16_t>(i + 1), std::memory_order_release);
  }
  // The child with the smallest byte above *byte, or the largest below, and its byte; 0 if there is none.
  Ref Next(int* byte) const {
    const auto better = [](int b, int from, int best) { return b > from && b < best; };
    return Nearest(byte, better, 256);
  }
  Ref Prev(int* byte) const {
    const auto better = [](int b, int from, int best) { return b < from && b > best; };
    return Nearest(byte, better, -1);
  }
  template <typename Visitor>
  void ForEach(Visitor visit) const {
    for (uint32_t i = 0; i < count.load(std::memory_order_relaxed); ++i) visit(ByteAt(i), slots[i].load(std::memory_order_relaxed));
  }
  void PrefetchAll() const {
    const uint32_t valid = count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < valid; ++i) Prefetch(slots[i].load(std::memory_order_relaxed));
  }
  void PrefetchNext(int) const {}
  void PrefetchPrev(int) const {}

  std::atomic<uint64_t> bytes[(kCapacity + 7) / 8] = {};
  std::atomic<Ref> slots[kCapacity] = {};

 private:
  uint8_t ByteAt(uint32_t i) const { return static_cast<uint8_t>(bytes[i / 8].load(std::memory_order_relaxed) >> (i % 8 * 8)); }
  template <typename Better>
  Ref Nearest(int* byte, Better better, int none) const {
    const uint32_t valid = count.load(std::memory_order_acquire);
    int best = none;
    uint32_t at = 0;
    for (uint32_t w = 0; w * 8 < valid; ++w) {
      uint64_t word = bytes[w].load(std::memory_order_relaxed);
      const uint32_t end = std::min(valid, w * 8 + 8);
      for (uint32_t i = w * 8; i < end; ++i, word >>= 8) {
        const int b = static_cast<int>(word & 0xff);
        const bool take = better(b, *byte, best);
        best = take ? b : best;
        at = take ? i : at;
      }
    }
    if (best == none) return 0;
    *byte = best;
    return slots[at].load(std::memory_order_acquire);
  }
};
using Node4 = LinearNode<4>;
using Node16 = LinearNode<16>;

// What is common to nodes that look a child up by its byte: Self::Child(byte) is the child or 0.
template <typename Self>
struct DirectNode : Node {
  explicit DirectNode(const Node& other) : Node(other) {}

  Ref Next(int* byte) const { return Nearest(byte, 1, 256); }
  Ref Prev(int* byte) const { return Nearest(byte, -1, -1); }
  template <typename Visitor>
  void ForEach(Visitor visit) const {
    for (int b = -1; const Ref child = Next(&b);) visit(static_cast<uint8_t>(b), child);
  }
  void PrefetchAll() const {}
  void PrefetchNext(int byte) const { Prefetch(Next(&byte)); }
  void PrefetchPrev(int byte) const { Prefetch(Prev(&byte)); }

 private:
  Ref Nearest(int* byte, int step, int end) const {
    for (int b = *byte + step; b != end; b += step) {
      if (const Ref child = static_cast<const Self*>(this)->Child(b); child != 0) {
        *byte = b;
        return child;
      }
    }
    return 0;
  }
};

struct Node48 : DirectNode<Node48> {
  static constexpr uint32_t kCapacity = 48;
  using DirectNode::DirectNode;

  Ref Child(int byte) const {
    const std::atomic<Ref>* slot = Find(static_cast<uint8_t>(byte));
    return slot == nullptr ? 0 : slot->load(std::memory_order_acquire);
  }
  const std::atomic<Ref>* Find(uint8_t byte) const {
    const uint8_t i = index[byte].load(std::memory_order_acquire);
    return i == 0 ? nullptr : &slots[i - 1];
  }
  void Append(uint8_t byte, Ref child) {
    const uint32_t i = count.load(std::memory_order_relaxed);
    slots[i].store(child, std::memory_order_relaxed);
    index[byte].store(static_cast<uint8_t>(i + 1), std::memory_order_release);
    count.store(static_cast<uint16_t>(i + 1), std::memory_order_relaxed);
  }

  std::atomic<uint8_t> index[256] = {};  // 1 + slot; 0: no child
  std::atomic<Ref> slots[kCapacity] = {};
};

struct Node256 : DirectNode<Node256> {
  static constexpr uint32_t kCapacity = 256;
  using DirectNode::DirectNode;

  Ref Child(int byte) const { return slots[byte].load(std::memory_order_acquire); }
  const std::atomic<Ref>* Find(uint8_t byte) const { return Child(byte) == 0 ? nullptr : &slots[byte]; }
  void Append(uint8_t byte, Ref child) {
    slots[byte].store(child, std::memory_order_release);
    count.store(static_cast<uint16_t>(count.load(std::memory_order_relaxed) + 1), std::memory_order_relaxed);
  }

  std::atomic<Ref> slots[256] = {};
};

inline const Node* ToNode(Ref ref) { return reinterpret_cast<const Node*>(ref & ~kKindMask); }

// visit(node) with the node's own type. REQUIRES: a node.
template <typename Visitor>
inline decltype(auto) Visit(Ref ref, Visitor visit) {
  Node* node = reinterpret_cast<Node*>(ref & ~kKindMask);
  switch (KindOf(ref)) {
    case kNode4:
      return visit(*static_cast<Node4*>(node));
    case kNode16:
      return visit(*static_cast<Node16*>(node));
    case kNode48:
      return visit(*static_cast<Node48*>(node));
    default:
      return visit(*static_cast<Node256*>(node));
  }
}

}  // namespace tamis::internal::art
