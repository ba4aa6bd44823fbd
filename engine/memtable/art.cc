#include "engine/memtable/art.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "engine/memtable/art_node.h"

namespace tamis::internal {

using art::Node;
using art::Node16;
using art::Node256;
using art::Node4;
using art::Node48;
using art::Ref;

static_assert(alignof(Node256) <= 8 && alignof(Node48) <= 8, "the arena aligns to 8");

// An insert makes one entry and at most one of: a fork (a Node4), a child more, or the copy of a full node with a child more. So each
// insert that is not just a new version belongs to one node, counting a node and its grown copies as one.
//
// A node forked in the batch gets its first two members by one insert; with k inserts it has cost 72 bytes from k = 1, 248 from 4 (the
// fifth child), 920 from 16 and 3000 from 48: never more than 72 k. A node from before may have to grow at the first insert; from the
// second on the copies cost again less than 72 an insert (672 more after 12 from a fresh Node16, 2080 more after 32 from a fresh
// Node48). So the nodes cost at most 72 an insert, and for each node from before that is touched what its first growth costs above 72:
// no more of these than inserts and than there are such nodes, dearest first. Large batches thus reserve little more than they use.
bool Art::Reserve(uint64_t count, uint64_t bytes) {
  static_assert(sizeof(Node4) == 72 && sizeof(Node16) == 176 && sizeof(Node48) == 672 && sizeof(Node256) == 2080);
  constexpr uint64_t kAddressable = uint64_t{1} << 47;
  constexpr uint64_t kPerInsert = kEntryOverheadMax + sizeof(Node4);
  if (bytes > kAddressable || count > kAddressable / 4096) return false;
  uint64_t total = bytes + count * kPerInsert;
  uint64_t left = count;
  const auto add_growths = [&](uint64_t nodes, uint64_t cost) {
    const uint64_t growths = std::min(left, nodes);
    left -= growths;
    total += growths * (cost - sizeof(Node4));
  };
  add_growths(nodes48_, sizeof(Node256));
  add_growths(nodes16_, sizeof(Node48));
  add_growths(nodes4_, sizeof(Node16));
  const uint64_t largest_entry = kEntryOverheadMax + std::min(bytes, kMaxKeyBytes + kMaxValueBytes);
  return arena_->Reserve(total, std::max<uint64_t>(largest_entry, sizeof(Node256)));
}

const Entry* Art::NewEntry(const Entry* older, std::string_view key, uint64_t sequence_and_kind, std::string_view value) {
  TAMIS_DCHECK(older == nullptr || older->sequence_and_kind >> 8 < sequence_and_kind >> 8);
  return WriteEntry(arena_->Allocate(EntryBytes(older, key, value)), older, sequence_and_kind, key, value);
}

Ref Art::NewFork(const Entry* entry, size_t depth, size_t branch, Ref sibling, std::string_view sibling_key) {
  Node4* fork = new (arena_->Allocate(sizeof(Node4))) Node4(entry->data(), branch, branch > depth);
  const auto add = [&](std::string_view key, Ref ref) {
    if (key.size() > branch) {
      fork->Append(static_cast<uint8_t>(key[branch]), ref);
    } else {
      fork->ends.store(art::ToEntry(ref), std::memory_order_relaxed);
    }
  };
  add(sibling_key, sibling);
  add(entry->key(), art::ToRef(entry));
  ++nodes4_;
  return reinterpret_cast<Ref>(fork) | art::kNode4;
}

namespace {

template <typename Larger, typename Smaller>
Ref CopyWith(void* memory, const Smaller& old, art::Kind kind, uint8_t byte, Ref child) {
  Larger* copy = new (memory) Larger(static_cast<const Node&>(old));
  old.ForEach([copy](uint8_t b, Ref c) { copy->Append(b, c); });
  copy->Append(byte, child);
  return reinterpret_cast<Ref>(static_cast<Node*>(copy)) | kind;
}

}  // namespace

Ref Art::Grow(Ref ref, uint8_t byte, Ref child) {
  const Node* node = art::ToNode(ref);
  Ref copy;
  switch (art::KindOf(ref)) {
    case art::kNode4:
      copy = CopyWith<Node16>(arena_->Allocate(sizeof(Node16)), *static_cast<const Node4*>(node), art::kNode16, byte, child);
      --nodes4_, ++nodes16_;
      break;
    case art::kNode16:
      copy = CopyWith<Node48>(arena_->Allocate(sizeof(Node48)), *static_cast<const Node16*>(node), art::kNode48, byte, child);
      --nodes16_, ++nodes48_;
      break;
    default:
      TAMIS_DCHECK(art::KindOf(ref) == art::kNode48);
      copy = CopyWith<Node256>(arena_->Allocate(sizeof(Node256)), *static_cast<const Node48*>(node), art::kNode256, byte, child);
      --nodes48_;
  }
  return copy;
}

void Art::Insert(std::string_view key, uint64_t sequence_and_kind, std::string_view value) {
  std::atomic<Ref>* slot = &root_;
  for (size_t depth = 0;;) {
    const Ref ref = slot->load(std::memory_order_relaxed);
    if (art::IsEntry(ref)) {
      const Entry* found = art::ToEntry(ref);
      const bool same = found != nullptr && found->key() == key;
      const Entry* entry = NewEntry(same ? found : nullptr, key, sequence_and_kind, value);
      if (found == nullptr || same) return slot->store(art::ToRef(entry), std::memory_order_release);
      const size_t branch = art::Mismatch(key.data(), found->data(), depth, std::min<size_t>(key.size(), found->key_bytes));
      return slot->store(NewFork(entry, depth, branch, ref, found->key()), std::memory_order_release);
    }
    Node* node = const_cast<Node*>(art::ToNode(ref));
    const size_t match = node->Match(key, depth);
    if (match < node->branch) {
      const Entry* entry = NewEntry(nullptr, key, sequence_and_kind, value);
      return slot->store(NewFork(entry, depth, match, ref, {node->sample, node->branch}), std::memory_order_release);
    }
    if (key.size() == node->branch) {
      const Entry* entry = NewEntry(node->ends.load(std::memory_order_relaxed), key, sequence_and_kind, value);
      return node->ends.store(entry, std::memory_order_release);
    }
    const uint8_t byte = static_cast<uint8_t>(key[node->branch]);
    const std::atomic<Ref>* child = art::Visit(ref, [byte](auto& n) { return n.Find(byte); });
    if (child != nullptr) {
      slot = const_cast<std::atomic<Ref>*>(child);
      depth = node->branch + 1;
      continue;
    }
    const Ref entry = art::ToRef(NewEntry(nullptr, key, sequence_and_kind, value));
    const bool appended = art::Visit(ref, [byte, entry](auto& n) {
      if (n.count.load(std::memory_order_relaxed) == n.kCapacity) return false;
      n.Append(byte, entry);
      return true;
    });
    if (!appended) slot->store(Grow(ref, byte, entry), std::memory_order_release);
    return;
  }
}

const Entry* Art::Find(std::string_view key) const {
  Ref ref = root_.load(std::memory_order_acquire);
  while (!art::IsEntry(ref)) {
    const Node* node = art::ToNode(ref);
    if (key.size() < node->branch || !node->MayMatch(key)) return nullptr;
    if (key.size() == node->branch) {
      ref = art::ToRef(node->ends.load(std::memory_order_acquire));
      break;
    }
    const uint8_t byte = static_cast<uint8_t>(key[node->branch]);
    const std::atomic<Ref>* child = art::Visit(ref, [byte](auto& n) { return n.Find(byte); });
    if (child == nullptr) return nullptr;
    ref = child->load(std::memory_order_acquire);
  }
  const Entry* entry = art::ToEntry(ref);
  return entry != nullptr && entry->key() == key ? entry : nullptr;
}

// Walk ------------------------------------------------------------------------------------------------------------------------------

const Entry* Art::Walk::Leftmost(Ref ref) {
  while (!art::IsEntry(ref)) {
    path_.push_back({ref, -1});
    if (const Entry* ends = art::ToNode(ref)->ends.load(std::memory_order_acquire)) return ends;
    ref = art::Visit(ref, [this](const auto& n) {
      n.PrefetchAll();
      const Ref child = n.Next(&path_.back().byte);
      n.PrefetchNext(path_.back().byte);
      return child;
    });
  }
  return art::ToEntry(ref);
}

const Entry* Art::Walk::Rightmost(Ref ref) {
  while (!art::IsEntry(ref)) {
    path_.push_back({ref, 256});
    ref = art::Visit(ref, [this](const auto& n) {
      n.PrefetchAll();
      const Ref child = n.Prev(&path_.back().byte);
      n.PrefetchPrev(path_.back().byte);
      return child;
    });
  }
  return art::ToEntry(ref);
}

const Entry* Art::Walk::Next() {
  for (; !path_.empty(); path_.pop_back()) {
    Frame& top = path_.back();
    const Ref ref = art::Visit(top.node, [&top](const auto& n) {
      const Ref child = n.Next(&top.byte);
      if (child != 0) n.PrefetchNext(top.byte);
      return child;
    });
    if (ref != 0) return Leftmost(ref);
  }
  return nullptr;
}

const Entry* Art::Walk::Prev() {
  for (; !path_.empty(); path_.pop_back()) {
    Frame& top = path_.back();
    if (top.byte == -1) continue;
    const Ref ref = art::Visit(top.node, [&top](const auto& n) {
      const Ref child = n.Prev(&top.byte);
      if (child != 0) n.PrefetchPrev(top.byte);
      return child;
    });
    if (ref != 0) return Rightmost(ref);
    top.byte = -1;
    if (const Entry* ends = art::ToNode(top.node)->ends.load(std::memory_order_acquire)) return ends;
  }
  return nullptr;
}

const Entry* Art::Walk::First() {
  path_.clear();
  return Leftmost(tree_->root_.load(std::memory_order_acquire));
}

const Entry* Art::Walk::Last() {
  path_.clear();
  return Rightmost(tree_->root_.load(std::memory_order_acquire));
}

Art::Walk::Place Art::Walk::Locate(std::string_view key, Ref* found) {
  path_.clear();
  Ref ref = tree_->root_.load(std::memory_order_acquire);
  size_t depth = 0;
  while (!art::IsEntry(ref)) {
    *found = ref;
    const Node* node = art::ToNode(ref);
    const size_t match = node->Match(key, depth);
    if (match < node->branch) {
      const bool before = key.size() == match || static_cast<uint8_t>(key[match]) < static_cast<uint8_t>(node->sample[match]);
      return before ? Place::kBefore : Place::kAfter;
    }
    if (key.size() == match) {
      path_.push_back({ref, -1});
      *found = art::ToRef(node->ends.load(std::memory_order_acquire));
      return *found == 0 ? Place::kGap : Place::kEqual;
    }
    const uint8_t byte = static_cast<uint8_t>(key[match]);
    path_.push_back({ref, byte});
    const std::atomic<Ref>* child = art::Visit(ref, [byte](const auto& n) { return n.Find(byte); });
    if (child == nullptr) return Place::kGap;
    ref = child->load(std::memory_order_acquire);
    depth = match + 1;
  }
  *found = ref;
  if (ref == 0) return Place::kGap;
  const int order = key.compare(art::ToEntry(ref)->key());
  return order < 0 ? Place::kBefore : (order == 0 ? Place::kEqual : Place::kAfter);
}

const Entry* Art::Walk::SeekAtOrAfter(std::string_view key) {
  Ref ref;
  switch (Locate(key, &ref)) {
    case Place::kEqual:
      return art::ToEntry(ref);
    case Place::kBefore:
      return Leftmost(ref);
    default:
      return Next();
  }
}

const Entry* Art::Walk::SeekAtOrBefore(std::string_view key) {
  Ref ref;
  switch (Locate(key, &ref)) {
    case Place::kEqual:
      return art::ToEntry(ref);
    case Place::kAfter:
      return Rightmost(ref);
    default:
      return Prev();
  }
}

}  // namespace tamis::internal
