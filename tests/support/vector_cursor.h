// A cursor over a sorted vector, for tests of what stands on cursors. Unlike real ones it hands out its bytes in buffers that are freed at
// the next move (so that AddressSanitizer sees a use of stale bytes), finds its place again by key at every move (so that entries may be
// added while it stands, as in a memtable), and stops with DataLoss at entries that are marked bad.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "table/cursor.h"

namespace tamis::testing_support {

struct TestEntry {
  std::string key;
  internal::SequenceNumber sequence = 0;
  internal::EntryKind kind = internal::EntryKind::kPut;
  std::string value;
};

inline bool EntryBefore(const TestEntry& a, const TestEntry& b) {
  return internal::CompareInternalKeys(a.key, a.sequence, b.key, b.sequence) < 0;
}

class TestSource {
 public:
  explicit TestSource(std::vector<TestEntry> entries = {}) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end(), EntryBefore);
  }
  void Add(TestEntry entry) {
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), entry, EntryBefore);
    entries_.insert(place, std::move(entry));
  }
  void MarkBad(std::string_view key, internal::SequenceNumber sequence) { bad_.emplace(key, sequence); }
  void ClearBad() { bad_.clear(); }
  bool IsBad(const TestEntry& entry) const { return bad_.count({entry.key, entry.sequence}) != 0; }
  const std::vector<TestEntry>& entries() const { return entries_; }

 private:
  std::vector<TestEntry> entries_;
  std::set<std::pair<std::string, internal::SequenceNumber>> bad_;
};

class VectorCursor final : public internal::Cursor {
 public:
  explicit VectorCursor(std::shared_ptr<const TestSource> source) : source_(std::move(source)) {}

  void SeekToFirst() override { Land(0); }
  void SeekToLast() override { Land(source_->entries().size() - 1); }
  void Seek(std::string_view user_key, internal::SequenceNumber sequence) override {
    ++seeks;
    Land(LowerBound(user_key, sequence));
  }
  void SeekForPrev(std::string_view user_key, internal::SequenceNumber sequence) override {
    ++seeks;
    Land(UpperBound(user_key, sequence) - 1);
  }
  void Next() override {
    ++steps;
    Land(UpperBound(key(), this->sequence()));
  }
  void Prev() override {
    ++steps;
    Land(LowerBound(key(), this->sequence()) - 1);
  }
  absl::Status status() const override { return status_; }

  int seeks = 0;
  int steps = 0;

 private:
  size_t LowerBound(std::string_view key, internal::SequenceNumber sequence) const {
    const auto& all = source_->entries();
    return static_cast<size_t>(std::lower_bound(all.begin(), all.end(), TestEntry{std::string(key), sequence, {}, {}}, EntryBefore) -
                               all.begin());
  }
  size_t UpperBound(std::string_view key, internal::SequenceNumber sequence) const {
    const auto& all = source_->entries();
    return static_cast<size_t>(std::upper_bound(all.begin(), all.end(), TestEntry{std::string(key), sequence, {}, {}}, EntryBefore) -
                               all.begin());
  }
  // An index out of range (also -1) is no entry.
  void Land(size_t index) {
    status_ = absl::OkStatus();
    valid_ = index < source_->entries().size();
    if (!valid_) {
      shown_.reset();
      return;
    }
    auto shown = std::make_unique<TestEntry>(source_->entries()[index]);
    if (source_->IsBad(*shown)) {
      valid_ = false;
      status_ = absl::DataLossError("bad entry");
      shown_.reset();
      return;
    }
    shown_ = std::move(shown);
    entry_ = {shown_->key, shown_->value, shown_->sequence, shown_->kind};
  }

  const std::shared_ptr<const TestSource> source_;
  std::unique_ptr<TestEntry> shown_;
  absl::Status status_;
};

inline std::unique_ptr<internal::Cursor> NewVectorCursor(std::vector<TestEntry> entries) {
  return std::make_unique<VectorCursor>(std::make_shared<TestSource>(std::move(entries)));
}

}  // namespace tamis::testing_support
