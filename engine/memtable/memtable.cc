#include "engine/memtable/memtable.h"

#include <utility>

#include "absl/status/status.h"
#include "base/check.h"

namespace tamis::internal {

namespace {

// Moves over the versions of a key by the chain that hung there when the cursor came to the key, and over keys by the walk.
class MemtableCursor final : public Cursor {
 public:
  MemtableCursor(const Art* tree, std::shared_ptr<const Memtable> keep_alive) : keep_alive_(std::move(keep_alive)), walk_(tree) {}

  void SeekToFirst() override { ToNewest(walk_.First()); }
  void SeekToLast() override { ToOldest(walk_.Last()); }

  void Seek(std::string_view user_key, SequenceNumber sequence) override {
    const Entry* head = walk_.SeekAtOrAfter(user_key);
    if (head == nullptr || head->key() != user_key) return ToNewest(head);
    if (const Entry* version = NewestAtOrBelow(head, sequence)) return To(head, version);
    ToNewest(walk_.Next());
  }

  void SeekForPrev(std::string_view user_key, SequenceNumber sequence) override {
    const Entry* head = walk_.SeekAtOrBefore(user_key);
    if (head == nullptr || head->key() != user_key || sequence == 0) return ToOldest(head);
    if (head->sequence() >= sequence) return To(head, OldestAbove(head, sequence - 1));
    ToOldest(walk_.Prev());
  }

  void Next() override {
    TAMIS_DCHECK(valid_);
    if (current_->older != nullptr) return To(head_, current_->older);
    ToNewest(walk_.Next());
  }

  void Prev() override {
    TAMIS_DCHECK(valid_);
    if (current_ != head_) return To(head_, OldestAbove(head_, current_->sequence()));
    ToOldest(walk_.Prev());
  }

  absl::Status status() const override { return absl::OkStatus(); }

 private:
  void To(const Entry* head, const Entry* version) {
    head_ = head;
    current_ = version;
    valid_ = version != nullptr;
    if (valid_) entry_ = {version->key(), version->value(), version->sequence(), version->kind()};
  }
  void ToNewest(const Entry* head) { To(head, head); }
  void ToOldest(const Entry* head) {
    // Sequence 0 is below all real ones, so the oldest above it is the first version.
    To(head, head == nullptr ? nullptr : OldestAbove(head, 0));
  }

  const std::shared_ptr<const Memtable> keep_alive_;
  Art::Walk walk_;
  const Entry* head_ = nullptr;
  const Entry* current_ = nullptr;
};

}  // namespace

bool Memtable::Reserve(uint64_t count, uint64_t bytes) { return tree_.Reserve(count, bytes); }

void Memtable::Add(SequenceNumber sequence, EntryKind kind, std::string_view key, std::string_view value) {
  TAMIS_DCHECK(sequence > 0 && sequence <= kMaxSequence && sequence >= last_sequence_);
  TAMIS_DCHECK(key.size() <= kMaxKeyBytes && value.size() <= kMaxValueBytes);
  tree_.Insert(key, sequence << 8 | static_cast<uint8_t>(kind), value);
  // One writer: a plain addition, without the locked instruction of fetch_add.
  if (entries() == 0) first_sequence_ = sequence;
  last_sequence_ = sequence;
  entries_.store(entries() + 1, std::memory_order_relaxed);
  if (kind == EntryKind::kDelete) deletes_.store(deletes() + 1, std::memory_order_relaxed);
}

Memtable::Lookup Memtable::Get(std::string_view key, SequenceNumber sequence) const {
  const Entry* head = tree_.Find(key);
  if (head == nullptr) return {};
  const Entry* version = NewestAtOrBelow(head, sequence);
  if (version == nullptr) return {};
  const LookupState state = version->kind() == EntryKind::kDelete ? LookupState::kDeleted : LookupState::kFound;
  return {state, version->sequence(), version->value()};
}

std::unique_ptr<Cursor> Memtable::NewCursor(std::shared_ptr<const Memtable> keep_alive) const {
  return std::make_unique<MemtableCursor>(&tree_, std::move(keep_alive));
}

}  // namespace tamis::internal
