// TableReader::Verify: reads every byte of a table again and compares its parts with each other.

#include <algorithm>
#include <utility>

#include "base/status_util.h"
#include "filter/hash.h"
#include "table/table_reader.h"
#include "tamis/filter_prefix.h"

namespace tamis::internal {

class TableVerifier {
 public:
  TableVerifier(const TableReader& table, uint64_t hash_seed, const std::function<bool(uint64_t, uint64_t)>& progress,
                const FilterView* other_filter)
      : table_(table), source_(table.source()), hash_seed_(hash_seed), progress_(progress), other_filter_(other_filter) {}

  absl::Status Run() {
    TAMIS_RETURN_IF_ERROR(CheckFooter());
    TAMIS_RETURN_IF_ERROR(CheckMetaBlocks());
    TAMIS_RETURN_IF_ERROR(CheckFilterBlock());
    TAMIS_RETURN_IF_ERROR(LoadPrefixFilter());
    for (uint32_t i = 0; i < table_.index_.count(); ++i) TAMIS_RETURN_IF_ERROR(CheckDataBlock(i));
    TAMIS_RETURN_IF_ERROR(CheckProperties());
    TAMIS_RETURN_IF_ERROR(CheckPrefixCount());
    return CheckLayout();
  }

 private:
  absl::Status Damaged(std::string_view what) const { return absl::DataLossError(Concat(source_.file->path(), ": ", what)); }
  absl::Status DamagedAt(uint64_t offset, std::string_view what) const {
    return AtBlock(source_, offset, absl::DataLossError(ToAbsl(what)));
  }
  absl::Status Progress(uint64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(done_, table_.footer_.file_size)) return absl::CancelledError("verify was cancelled");
    return absl::OkStatus();
  }

  absl::Status CheckFooter();
  absl::Status CheckMetaBlocks();
  absl::Status CheckFilterBlock();
  absl::Status LoadPrefixFilter();
  absl::Status CheckDataBlock(uint32_t ordinal);
  absl::Status CheckIndexEntry(uint32_t ordinal, uint64_t offset, const Block& block);
  absl::Status CheckEntry(uint64_t offset, const EntryView& entry);
  absl::Status CheckFilters(uint64_t offset, std::string_view key);
  absl::Status CheckPrefixCount() const;
  absl::Status CheckProperties() const;
  absl::Status CheckLayout();

  const TableReader& table_;
  const BlockSource source_;
  const uint64_t hash_seed_;
  const std::function<bool(uint64_t, uint64_t)>& progress_;
  const FilterView* const other_filter_;
  uint64_t done_ = 0;
  LoadedFilter filter_;
  LoadedFilter prefix_filter_;
  FilterPrefixRule prefix_rule_;
  uint64_t prefixes_ = 0;  // distinct ones under prefix_rule_
  std::string last_prefix_;
  TableProperties found_;  // by counting
  std::string last_key_;
  SequenceNumber last_sequence_ = 0;
};

absl::Status TableVerifier::CheckFooter() {
  char bytes[kFooterBytes];
  TAMIS_RETURN_IF_ERROR(source_.file->Read(source_.end, absl::Span<char>(bytes, kFooterBytes)));
  TAMIS_ASSIGN_OR_RETURN(const Footer footer, DecodeFooter({bytes, kFooterBytes}, table_.footer_.file_size, table_.path()));
  if (footer.table_id != table_.footer_.table_id) return Damaged("the footer names another table id");
  return Progress(kFooterBytes);
}

absl::Status TableVerifier::CheckMetaBlocks() {
  const auto check = [&](const BlockHandle& handle) -> absl::Status {
    TAMIS_RETURN_IF_ERROR(ReadBlock(source_, handle, /*verify=*/true).status());
    return Progress(handle.size + kBlockTrailerBytes);
  };
  TAMIS_RETURN_IF_ERROR(check(table_.footer_.meta_index));
  TAMIS_RETURN_IF_ERROR(check(table_.footer_.index));
  for (const MetaBlock& block : table_.meta_blocks_) TAMIS_RETURN_IF_ERROR(check(block.handle));
  return absl::OkStatus();
}

absl::Status TableVerifier::CheckFilterBlock() {
  const MetaBlock* block = table_.FindMeta(MetaBlockType::kKeyFilter);
  if (block == nullptr) {
    return table_.properties_.filter_bytes == 0 ? absl::OkStatus() : Damaged("properties name a filter, there is none");
  }
  TAMIS_ASSIGN_OR_RETURN(filter_, table_.LoadFilter(MetaBlockType::kKeyFilter));
  const FilterInfo info = filter_.view.Info();
  if (info.seed != hash_seed_) return DamagedAt(block->handle.offset, Concat("filter of hash seed ", info.seed, ", not ", hash_seed_));
  if (info.kind != table_.properties_.filter_kind || block->handle.size != table_.properties_.filter_bytes) {
    return DamagedAt(block->handle.offset, "filter is not the one the properties describe");
  }
  if (info.keys != table_.properties_.distinct_keys)
    return DamagedAt(block->handle.offset, "filter has another number of keys than the table");
  return absl::OkStatus();
}

absl::Status TableVerifier::LoadPrefixFilter() {
  TAMIS_ASSIGN_OR_RETURN(prefix_filter_, table_.LoadFilter(MetaBlockType::kPrefixFilter));
  if (!prefix_filter_.view.has_filter()) return absl::OkStatus();
  const FilterInfo info = prefix_filter_.view.Info();
  prefix_rule_ = info.prefix_rule;
  if (info.seed == hash_seed_) return absl::OkStatus();
  return DamagedAt(table_.FindMeta(MetaBlockType::kPrefixFilter)->handle.offset,
                   Concat("prefix filter of hash seed ", info.seed, ", not ", hash_seed_));
}

absl::Status TableVerifier::CheckDataBlock(uint32_t ordinal) {
  const BlockHandle handle = table_.DataHandle(ordinal);
  TAMIS_ASSIGN_OR_RETURN(const BlockBytes bytes, ReadBlock(source_, handle, /*verify=*/true));
  absl::StatusOr<Block> block = Block::Parse(bytes.view());
  if (!block.ok()) return AtBlock(source_, handle.offset, block.status());
  TAMIS_RETURN_IF_ERROR(AtBlock(source_, handle.offset, block->VerifyOrder()));
  BlockCursor cursor;
  cursor.Reset(*block);
  for (cursor.SeekToFirst(); cursor.Valid(); cursor.Next()) TAMIS_RETURN_IF_ERROR(CheckEntry(handle.offset, cursor.entry()));
  TAMIS_RETURN_IF_ERROR(CheckIndexEntry(ordinal, handle.offset, *block));
  ++found_.data_blocks;
  found_.raw_data_bytes += bytes.size;
  found_.stored_data_bytes += handle.size + kBlockTrailerBytes;
  return Progress(handle.size + kBlockTrailerBytes);
}

// Index key i: at or after every entry of block i, before every entry of block i + 1.
absl::Status TableVerifier::CheckIndexEntry(uint32_t ordinal, uint64_t offset, const Block& block) {
  std::string key;
  const auto stands = [&](uint32_t entry, uint32_t index_entry) {
    std::string index_key;
    table_.index_.CopyKey(index_entry, &index_key);
    block.CopyKey(entry, &key);
    return CompareInternalKeys(key, block.At(entry).sequence, index_key, table_.index_.At(index_entry).sequence);
  };
  if (stands(block.count() - 1, ordinal) > 0) return DamagedAt(offset, "entries behind the block's index key");
  if (ordinal > 0 && stands(0, ordinal - 1) <= 0) return DamagedAt(offset, "entries before the previous block's index key");
  return absl::OkStatus();
}

absl::Status TableVerifier::CheckEntry(uint64_t offset, const EntryView& entry) {
  const bool first = found_.entries == 0;
  if (!first && CompareInternalKeys(last_key_, last_sequence_, entry.key, entry.sequence) >= 0) {
    return DamagedAt(offset, "entries are not in order");
  }
  if (entry.sequence == 0) return DamagedAt(offset, "entry of sequence 0");
  if (first || last_key_ != entry.key) {
    ++found_.distinct_keys;
    TAMIS_RETURN_IF_ERROR(CheckFilters(offset, entry.key));
  }
  if (first) found_.smallest_key = entry.key;
  found_.smallest_sequence = first ? entry.sequence : std::min(found_.smallest_sequence, entry.sequence);
  found_.largest_sequence = std::max(found_.largest_sequence, entry.sequence);
  ++found_.entries;
  found_.deletes += entry.kind == EntryKind::kDelete;
  found_.raw_key_bytes += entry.key.size();
  found_.raw_value_bytes += entry.value.size();
  last_key_ = entry.key;
  last_sequence_ = entry.sequence;
  return absl::OkStatus();
}

// No filter may deny a key of the table.
absl::Status TableVerifier::CheckFilters(uint64_t offset, std::string_view key) {
  if (other_filter_ != nullptr && other_filter_->has_filter() && !other_filter_->MayContain(KeyHash(key, other_filter_->seed()))) {
    return DamagedAt(offset, "a filter file denies a key of the table");
  }
  if (filter_.view.has_filter() && !filter_.view.MayContain(KeyHash(key, filter_.view.seed()))) {
    return DamagedAt(offset, "the filter denies a key of the table");
  }
  if (!prefix_filter_.view.has_filter()) return absl::OkStatus();
  const std::optional<std::string_view> prefix = PrefixOf(prefix_rule_, key);
  if (!prefix) return absl::OkStatus();
  if (!prefix_filter_.view.MayContain(KeyHash(*prefix, prefix_filter_.view.seed()))) {
    return DamagedAt(offset, "the prefix filter denies a key of the table");
  }
  prefixes_ += *prefix != last_prefix_;  // no prefix is empty
  last_prefix_.assign(*prefix);
  return absl::OkStatus();
}

absl::Status TableVerifier::CheckPrefixCount() const {
  if (!prefix_filter_.view.has_filter() || prefix_filter_.view.Info().keys == prefixes_) return absl::OkStatus();
  return DamagedAt(table_.FindMeta(MetaBlockType::kPrefixFilter)->handle.offset,
                   Concat("prefix filter of ", prefix_filter_.view.Info().keys, " prefixes, the table has ", prefixes_));
}

absl::Status TableVerifier::CheckProperties() const {
  const TableProperties& said = table_.properties_;
  const auto differ = [&](std::string_view what) { return Damaged(Concat("properties: ", what, " is not what the entries say")); };
  if (said.entries != found_.entries) return differ("number of entries");
  if (said.deletes != found_.deletes) return differ("number of deletes");
  if (said.distinct_keys != found_.distinct_keys) return differ("number of keys");
  if (said.smallest_key != found_.smallest_key) return differ("smallest key");
  if (said.largest_key != last_key_) return differ("largest key");
  if (said.smallest_sequence != found_.smallest_sequence) return differ("smallest sequence");
  if (said.largest_sequence != found_.largest_sequence) return differ("largest sequence");
  if (said.raw_key_bytes != found_.raw_key_bytes) return differ("key bytes");
  if (said.raw_value_bytes != found_.raw_value_bytes) return differ("value bytes");
  if (said.raw_data_bytes != found_.raw_data_bytes) return differ("raw data bytes");
  if (said.stored_data_bytes != found_.stored_data_bytes) return differ("stored data bytes");
  if (said.data_blocks != found_.data_blocks) return differ("number of data blocks");
  return absl::OkStatus();
}

// Blocks cover the file but for zero bytes, fewer than 64, before a filter.
absl::Status TableVerifier::CheckLayout() {
  constexpr uint64_t kMostPadding = 63;
  std::vector<BlockHandle> blocks = {table_.footer_.index, table_.footer_.meta_index};
  for (const MetaBlock& block : table_.meta_blocks_) blocks.push_back(block.handle);
  std::sort(blocks.begin(), blocks.end(), [](const BlockHandle& a, const BlockHandle& b) { return a.offset < b.offset; });
  uint64_t end = table_.data_offsets_.back();
  for (const BlockHandle& block : blocks) {
    if (block.offset < end) return DamagedAt(block.offset, "overlaps another block");
    const uint64_t gap = block.offset - end;
    if (gap > kMostPadding) return DamagedAt(block.offset, Concat(gap, " bytes before it belong to nothing"));
    char bytes[kMostPadding];
    if (gap != 0) TAMIS_RETURN_IF_ERROR(source_.file->Read(end, absl::Span<char>(bytes, gap)));
    if (std::any_of(bytes, bytes + gap, [](char c) { return c != 0; })) return DamagedAt(block.offset, "padding before it is not zero");
    end = block.offset + block.size + kBlockTrailerBytes;
    TAMIS_RETURN_IF_ERROR(Progress(gap));
  }
  return end == source_.end ? absl::OkStatus() : Damaged("bytes before the footer belong to nothing");
}

absl::Status TableReader::Verify(uint64_t hash_seed, const std::function<bool(uint64_t, uint64_t)>& progress,
                                 const FilterView* other_filter) const {
  return TableVerifier(*this, hash_seed, progress, other_filter).Run();
}

}  // namespace tamis::internal
