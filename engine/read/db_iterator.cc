// Invariants, whenever valid_:
//   D1  Forward: cursor_ is at the shown entry, the newest visible one of its key.
//   D2  Backward: shown_key_ and shown_value_ hold the shown entry; cursor_ is before all entries of shown_key_ (or at no entry).
//   D3  An error of cursor_ met at any time makes the iterator not Valid, before anything found until then is shown: what could not be
//       read may have been a newer version.
#include "engine/read/db_iterator.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "engine/read/key_equal.h"

namespace tamis::internal {
namespace {

// From this many hidden entries of one key in a row on, a seek past them is cheaper than steps.
constexpr uint32_t kStepsBeforeSeek = 8;
// A value buffer larger than this is not kept for values a quarter of its size or less.
constexpr size_t kKeptValueBytes = size_t{1} << 20;

class DbIterator final : public Iterator {
 public:
  DbIterator(std::unique_ptr<Cursor> cursor, DbIteratorOptions options) : options_(std::move(options)), cursor_(std::move(cursor)) {
    if (options_.upper_bound) upper_prefix_ = LoadBigPrefix(*options_.upper_bound);
    empty_range_ = options_.lower_bound && options_.upper_bound && *options_.lower_bound >= *options_.upper_bound;
  }

  void SeekToFirst() override {
    if (!StartSeek(true)) return;
    if (options_.lower_bound) {
      cursor_->Seek(*options_.lower_bound, options_.sequence);
    } else {
      cursor_->SeekToFirst();
    }
    FindForward(Hidden::kNothing);
  }

  void SeekToLast() override {
    if (!StartSeek(false)) return;
    if (options_.upper_bound) {
      SeekCursorBefore(*options_.upper_bound);
    } else {
      cursor_->SeekToLast();
    }
    FindBackward();
  }

  void Seek(std::string_view target) override {
    if (options_.lower_bound && target < *options_.lower_bound) target = *options_.lower_bound;
    target_.assign(target);  // it may point into what the cursor is about to give up
    if (!StartSeek(true)) return;
    if (options_.upper_bound && target_ >= *options_.upper_bound) return;
    cursor_->Seek(target_, options_.sequence);
    FindForward(Hidden::kNothing);
  }

  void SeekForPrev(std::string_view target) override {
    if (options_.upper_bound && target >= *options_.upper_bound) return SeekToLast();
    target_.assign(target);
    if (!StartSeek(false)) return;
    if (options_.lower_bound && target_ < *options_.lower_bound) return;
    cursor_->SeekForPrev(target_, 0);
    FindBackward();
  }

  void Next() override {
    if (!StartMove()) return;
    if (!forward_) {
      forward_ = true;
      cursor_->Seek(shown_key_, 0);
      return FindForward(Hidden::kNothing);
    }
    shown_key_.assign(cursor_->key());
    cursor_->Next();
    FindForward(Hidden::kAll);
  }

  void Prev() override {
    if (!StartMove()) return;
    if (forward_) {
      forward_ = false;
      shown_key_.assign(cursor_->key());
      StepCursorBefore(shown_key_);
    }
    FindBackward();
  }

  bool Valid() const override { return valid_ && Usable(); }
  std::string_view key() const override { return forward_ ? cursor_->key() : std::string_view(shown_key_); }
  std::string_view value() const override { return forward_ ? cursor_->value() : std::string_view(shown_value_); }
  absl::Status status() const override { return Usable() ? status_ : options_.handle->Check(); }

 private:
  // Which entries of the key in shown_key_ are passed over.
  enum class Hidden : uint8_t { kNothing, kNewer, kAll };

  bool Usable() const { return options_.handle == nullptr || options_.handle->Usable(); }

  bool StartSeek(bool forward) {
    forward_ = forward;
    valid_ = false;
    status_ = absl::OkStatus();
    return !empty_range_ && Usable();
  }
  // A move of an iterator that is not Valid changes nothing.
  bool StartMove() {
    if (!valid_ || !Usable()) return false;
    valid_ = false;
    return true;
  }

  // Ends a move: shows what was found, unless the cursor stopped by an error (D3).
  void Finish(bool found) {
    if (!cursor_->Valid()) status_ = cursor_->status();
    valid_ = found && status_.ok();
  }

  bool InUpperBound(std::string_view key) const {
    if (!options_.upper_bound) return true;
    const uint64_t prefix = LoadBigPrefix(key);
    return prefix == upper_prefix_ ? key < *options_.upper_bound : prefix < upper_prefix_;
  }
  bool InLowerBound(std::string_view key) const { return !options_.lower_bound || key >= *options_.lower_bound; }

  // Goes on from the cursor's entry to the newest visible version of a key that is no delete. `hidden` applies to shown_key_.
  void FindForward(Hidden hidden) {
    uint32_t steps = 0;
    for (; cursor_->Valid();) {
      const EntryView& entry = cursor_->entry();
      const bool same_key = hidden != Hidden::kNothing && KeysEqual(entry.key, shown_key_);
      if (!same_key && !InUpperBound(entry.key)) return;
      const bool visible = entry.sequence <= options_.sequence && !(same_key && hidden == Hidden::kAll);
      if (visible && entry.kind == EntryKind::kPut) {
        valid_ = true;
        return;
      }
      if (!same_key) {
        shown_key_.assign(entry.key);
        steps = 0;
      }
      // A visible delete hides all that follows of its key; an entry too new to be seen hides nothing.
      if (visible) {
        hidden = Hidden::kAll;
      } else if (!same_key) {
        hidden = Hidden::kNewer;
      }
      if (++steps < kStepsBeforeSeek) {
        cursor_->Next();
      } else {
        cursor_->Seek(shown_key_, hidden == Hidden::kAll ? 0 : options_.sequence);
        steps = 0;
      }
    }
    Finish(false);
  }

  // Goes back from the cursor's entry, the oldest of its key, to a key whose newest visible version is no delete, and to before it.
  void FindBackward() {
    while (cursor_->Valid()) {
      if (!InLowerBound(cursor_->key())) return;
      shown_key_.assign(cursor_->key());
      if (TakeNewestVisible()) return Finish(true);
      if (!status_.ok()) return;
    }
    Finish(false);
  }

  // Walks back over all entries of shown_key_, oldest first, at the first of which the cursor is. True: the newest visible one is a put,
  // now in shown_value_.
  bool TakeNewestVisible() {
    bool put = false;
    for (uint32_t steps = 0; cursor_->Valid() && KeysEqual(cursor_->key(), shown_key_); ++steps) {
      if (cursor_->sequence() > options_.sequence) {
        StepCursorBefore(shown_key_);
        break;
      }
      if (steps == kStepsBeforeSeek) {
        cursor_->Seek(shown_key_, options_.sequence);
        if (!cursor_->Valid() || cursor_->key() != shown_key_) return LostEntry();
        put = TakeVersion();
        SeekCursorBefore(shown_key_);
        break;
      }
      put = TakeVersion();
      cursor_->Prev();
    }
    return put;
  }

  bool TakeVersion() {
    if (cursor_->kind() != EntryKind::kPut) return false;
    const std::string_view value = cursor_->value();
    if (shown_value_.capacity() > kKeptValueBytes && value.size() < shown_value_.capacity() / 4) shown_value_ = std::string();
    shown_value_.assign(value);
    return true;
  }

  // An entry that backward moves met is not found by a seek: its source is not in order.
  bool LostEntry() {
    status_ = cursor_->Valid() ? absl::OkStatus() : cursor_->status();
    if (status_.ok()) status_ = absl::DataLossError("a table is not in order: an entry met backward is not found by its key");
    return false;
  }

  // From an entry of `key` to the last entry of a smaller key.
  void StepCursorBefore(std::string_view key) {
    for (uint32_t steps = 0; cursor_->Valid() && cursor_->key() == key; ++steps) {
      if (steps == kStepsBeforeSeek) return SeekCursorBefore(key);
      cursor_->Prev();
    }
  }
  void SeekCursorBefore(std::string_view key) {
    cursor_->SeekForPrev(key, kMaxSequence);
    while (cursor_->Valid() && cursor_->key() == key) cursor_->Prev();  // an entry of just that sequence
  }

  const DbIteratorOptions options_;  // before cursor_: keep_alive outlives it
  const std::unique_ptr<Cursor> cursor_;
  uint64_t upper_prefix_ = 0;  // of upper_bound
  bool empty_range_ = false;
  bool forward_ = true;
  bool valid_ = false;
  std::string shown_key_;  // D2; while looking for an entry, the key looked at
  std::string shown_value_;
  std::string target_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<Iterator> NewDbIterator(std::unique_ptr<Cursor> cursor, DbIteratorOptions options) {
  return std::make_unique<DbIterator>(std::move(cursor), std::move(options));
}

}  // namespace tamis::internal
