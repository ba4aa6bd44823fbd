#include "tamis/write_batch.h"

#include <algorithm>

#include "base/coding.h"
#include "base/status_util.h"
#include "engine/write/batch_format.h"
#include "table/internal_key.h"

namespace tamis {

using internal::Concat;
using internal::EntryKind;

namespace {

// Sizes are checked before a byte is looked at: a caller may pass a length that is nonsense.
absl::Status CheckLimits(uint64_t batch_bytes, uint64_t key_bytes, uint64_t value_bytes) {
  if (key_bytes > internal::kMaxKeyBytes) {
    return absl::InvalidArgumentError(Concat("key of ", key_bytes, " bytes: at most ", internal::kMaxKeyBytes, " are allowed"));
  }
  if (value_bytes > internal::kMaxValueBytes) {
    return absl::InvalidArgumentError(Concat("value of ", value_bytes, " bytes: at most ", internal::kMaxValueBytes, " are allowed"));
  }
  if (batch_bytes > internal::kMaxBatchBytes) {
    return absl::InvalidArgumentError(Concat("write batch of ", batch_bytes, " bytes: at most ", internal::kMaxBatchBytes, " are allowed"));
  }
  return absl::OkStatus();
}

// Room for `bytes` more, so that the appends that follow cannot fail half-way through a write.
void MakeRoom(std::string* representation, uint64_t bytes) {
  const size_t needed = representation->size() + static_cast<size_t>(bytes);
  if (needed > representation->capacity()) representation->reserve(std::max(needed, 2 * representation->capacity()));
}

// Of a write up to the end of its key.
uint64_t EncodedBytes(uint64_t key_bytes) { return 1 + internal::VarintLength(key_bytes) + key_bytes; }

void AppendKey(std::string* to, EntryKind kind, std::string_view key) {
  char head[1 + internal::kMaxVarint32Bytes];
  head[0] = static_cast<char>(kind);
  const char* const end = internal::EncodeVarint32(head + 1, static_cast<uint32_t>(key.size()));
  to->append(head, static_cast<size_t>(end - head));
  to->append(key);
}

}  // namespace

WriteBatch::WriteBatch() = default;

void WriteBatch::Put(std::string_view key, std::string_view value) {
  absl::Status limits = CheckLimits(0, key.size(), value.size());
  if (limits.ok()) {
    const uint64_t bytes = EncodedBytes(key.size()) + internal::VarintLength(value.size()) + value.size();
    limits = CheckLimits(representation_.size() + bytes, 0, 0);
    if (limits.ok()) {
      MakeRoom(&representation_, bytes);
      AppendKey(&representation_, EntryKind::kPut, key);
      internal::PutVarint32(&representation_, static_cast<uint32_t>(value.size()));
      representation_.append(value);
      ++count_;
      return;
    }
  }
  if (status_.ok()) status_ = std::move(limits);
}

void WriteBatch::Delete(std::string_view key) {
  absl::Status limits = CheckLimits(0, key.size(), 0);
  if (limits.ok()) limits = CheckLimits(representation_.size() + EncodedBytes(key.size()), 0, 0);
  if (!limits.ok()) {
    if (status_.ok()) status_ = std::move(limits);
    return;
  }
  MakeRoom(&representation_, EncodedBytes(key.size()));
  AppendKey(&representation_, EntryKind::kDelete, key);
  ++count_;
}

void WriteBatch::Append(const WriteBatch& other) {
  absl::Status limits = other.status_;
  if (limits.ok()) limits = CheckLimits(representation_.size() + other.representation_.size(), 0, 0);
  if (!limits.ok()) {
    if (status_.ok()) status_ = std::move(limits);
    return;
  }
  const uint64_t other_count = other.count_;
  representation_.append(other.representation_);
  count_ += other_count;
}

void WriteBatch::Clear() {
  representation_.clear();
  count_ = 0;
  status_ = absl::OkStatus();
}

absl::Status WriteBatch::Iterate(Handler* handler) const {
  if (!status_.ok()) return status_;
  internal::BatchReader reader(representation_);
  EntryKind kind;
  std::string_view key;
  std::string_view value;
  while (reader.Next(&kind, &key, &value)) {
    if (kind == EntryKind::kPut) {
      handler->Put(key, value);
    } else {
      handler->Delete(key);
    }
  }
  return reader.status();
}

}  // namespace tamis
