#include "table/table_reader.h"

#include <utility>

#include "base/epoch.h"
#include "base/status_util.h"
#include "filter/hash.h"
#include "table/table_cursor.h"
#include "tamis/filter_prefix.h"

namespace tamis::internal {

const std::string& TableReader::path() const { return file_->path(); }

absl::StatusOr<BlockRef> TableReader::ReadDataBlock(uint32_t ordinal, const TableReadOptions& options) const {
  const BlockHandle handle = DataHandle(ordinal);
  BlockRef block;
  TAMIS_ASSIGN_OR_RETURN(const size_t size, ReadBlockInto(source(), handle, options.verify_checksums, [&block](size_t bytes) {
                           block = BlockRef::Adopt(CachedBlock::New(bytes));
                           return block.get()->data();
                         }));
  TAMIS_RETURN_IF_ERROR(AtBlock(source(), handle.offset, block.get()->Parse(size)));
  // An unchecked block is not for readers that want theirs checked.
  if (options.fill_cache && options.verify_checksums) slots_->Offer(ordinal, block);
  return block;
}

absl::StatusOr<BlockRef> TableReader::LoadBlock(uint32_t ordinal, const TableReadOptions& options) const {
  {
    const EpochGuard guard;
    if (CachedBlock* const cached = slots_->Get(ordinal); cached != nullptr) return BlockRef::Share(cached);
  }
  return ReadDataBlock(ordinal, options);
}

absl::Status TableReader::Get(const TableReadOptions& options, const LookupKey& key, TableLookup* result) const {
  result->state = LookupState::kAbsent;
  result->cached = nullptr;
  result->block.Reset();
  result->block_read = false;
  const uint32_t ordinal = FindDataBlock(key.user_key, key.sequence);
  if (ordinal == index_.count()) return absl::OkStatus();
  const Block* block;
  if (CachedBlock* const cached = slots_->Get(ordinal); cached != nullptr) {
    result->cached = cached;
    block = &cached->block();
  } else {
    TAMIS_ASSIGN_OR_RETURN(result->block, ReadDataBlock(ordinal, options));
    result->block_read = true;
    block = &result->block.get()->block();
  }
  const uint32_t i = block->LowerBound(key.user_key, key.sequence);
  // Past the last entry there is nothing to be found in the next block either: the index key i is at or after the target and before that
  // block, and has the target's user key only if it is the last entry's own pair, which then is at or after the target.
  if (i == block->count()) return absl::OkStatus();
  Block::Entry entry;
  if (!block->KeyEquals(i, key.user_key, &entry)) return absl::OkStatus();
  result->state = entry.kind == EntryKind::kDelete ? LookupState::kDeleted : LookupState::kFound;
  result->sequence = entry.sequence;
  result->value = entry.value;
  return absl::OkStatus();
}

std::unique_ptr<Cursor> TableReader::NewCursor(const TableReadOptions& options, bool read_ahead) const {
  return std::make_unique<TableCursor>(this, options, read_ahead);
}

PrefixAnswer TableReader::AskPrefixFilter(std::string_view lower, std::string_view upper) const {
  std::string_view prefix;
  if (!prefix_filter_.view.has_filter() || !SamePrefix(prefix_rule_, lower, upper, &prefix)) return PrefixAnswer::kNotAsked;
  // The filter's own seed: its answer is right whatever that is.
  return prefix_filter_.view.MayContain(KeyHash(prefix, prefix_filter_.view.seed())) ? PrefixAnswer::kMaybe : PrefixAnswer::kCertainlyNot;
}

uint64_t TableReader::ResidentBytes() const {
  uint64_t bytes = sizeof(TableReader) + index_bytes_.size() + loaded_filter_.bytes.size() + prefix_filter_.bytes.size() +
                   data_offsets_.capacity() * sizeof(uint64_t) + index_buckets_.MemoryBytes() + index_.count() * sizeof(void*);
  bytes += properties_.smallest_key.capacity() + properties_.largest_key.capacity();
  for (const auto& [tag, field] : properties_.unknown) bytes += sizeof(tag) + sizeof(field) + field.capacity();
  return bytes;
}

uint64_t TableReader::ApproximateOffsetOf(std::string_view user_key) const { return data_offsets_[FindDataBlock(user_key, kMaxSequence)]; }

}  // namespace tamis::internal
