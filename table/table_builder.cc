#include "table/table_builder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_util.h"
#include "filter/hash.h"
#include "table/block_builder.h"
#include "table/block_io.h"
#include "tamis/filter_prefix.h"

namespace tamis::internal {
namespace {

constexpr size_t kFilterAlignment = 64;
constexpr uint32_t kMaxBlockBytes = 1u << 20;
constexpr uint64_t kEntryOverhead = 16;  // about: header, array element, offset

}  // namespace

struct TableBuilder::State {
  State(const TableBuildOptions& build_options, AppendFile* file)
      : options(build_options),
        block_bytes(std::clamp<uint32_t>(build_options.block_bytes, 1, kMaxBlockBytes)),
        bits_per_key(build_options.bits_per_key),
        writer(file, build_options.table_id) {
    properties.level_at_creation = options.level;
    if (options.filter_kind == FilterKind::kNone) return;
    // Hashes are collected whatever the bits are now: they may be set later.
    filter = NewFilter(UsableBits(), {});
    if (options.prefix_rule && options.prefix_bits_per_key != 0)
      prefix_filter = NewFilter(options.prefix_bits_per_key, *options.prefix_rule);
  }

  std::unique_ptr<FilterBuilder> NewFilter(double bits, FilterPrefixRule rule) {
    absl::StatusOr<std::unique_ptr<FilterBuilder>> created = FilterBuilder::Create(
        {.kind = options.filter_kind, .bits_per_key = bits, .seed = options.hash_seed, .owner = options.table_id, .prefix_rule = rule});
    if (created.ok()) return *std::move(created);
    if (status.ok()) status = created.status();
    return nullptr;
  }

  double UsableBits() const { return bits_per_key == 0 ? kMinBitsPerKey : bits_per_key; }
  absl::Status Check(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) const;
  void Count(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value);
  absl::Status AddEntry(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value);
  absl::Status FinishBlock();
  void AddIndexEntry(std::string_view key, SequenceNumber sequence);
  void AddPrefix(std::string_view user_key);
  absl::Status WriteFilters(std::vector<MetaBlock>* meta);
  absl::StatusOr<FilterInfo> WriteFilter(FilterBuilder* from, MetaBlockType type, std::vector<MetaBlock>* meta);
  absl::StatusOr<TableSummary> WriteAll();

  const TableBuildOptions options;
  const uint32_t block_bytes;
  double bits_per_key;
  BlockWriter writer;
  std::unique_ptr<FilterBuilder> filter;
  std::unique_ptr<FilterBuilder> prefix_filter;
  std::string last_prefix;  // added to it; empty: none yet (no prefix is empty)
  BlockBuilder block;
  BlockBuilder index;
  // The last entry added. A block that was written has its index entry only once the key behind it is known.
  std::string last_key;
  SequenceNumber last_sequence = 0;
  bool block_pending = false;
  BlockHandle pending_handle;
  TableProperties properties;
  absl::Status status;  // the first error
  bool finished = false;
};

absl::Status TableBuilder::State::Check(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) const {
  if (finished) return absl::InternalError("table builder: Add after Finish");
  if (user_key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(
        Concat("table builder: key of ", user_key.size(), " or value of ", value.size(), " bytes is too long"));
  }
  if (sequence == 0 || sequence > kMaxSequence || !IsKnownEntryKind(static_cast<uint8_t>(kind))) {
    return absl::InternalError(Concat("table builder: sequence ", sequence, " or kind ", static_cast<uint32_t>(kind)));
  }
  if (properties.entries != 0 && CompareInternalKeys(last_key, last_sequence, user_key, sequence) >= 0) {
    return absl::InternalError("table builder: entries are not in order");
  }
  return absl::OkStatus();
}

void TableBuilder::State::Count(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) {
  TableProperties& p = properties;
  const bool first = p.entries == 0;
  if (first) p.smallest_key = user_key;
  p.smallest_sequence = first ? sequence : std::min(p.smallest_sequence, sequence);
  p.largest_sequence = std::max(p.largest_sequence, sequence);
  ++p.entries;
  p.deletes += kind == EntryKind::kDelete;
  p.raw_key_bytes += user_key.size();
  p.raw_value_bytes += value.size();
  if (first || last_key != user_key) {
    ++p.distinct_keys;
    if (filter != nullptr) filter->AddHash(KeyHash(user_key, options.hash_seed));
    if (prefix_filter != nullptr) AddPrefix(user_key);
    last_key.assign(user_key);
  }
  last_sequence = sequence;
}

// Under every rule the keys of a prefix are all that begin with it: they stand side by side, and the compare is enough.
void TableBuilder::State::AddPrefix(std::string_view user_key) {
  if (!last_prefix.empty() && user_key.starts_with(last_prefix)) return;
  const std::optional<std::string_view> prefix = PrefixOf(*options.prefix_rule, user_key);
  if (!prefix) return;
  prefix_filter->AddHash(KeyHash(*prefix, options.hash_seed));
  last_prefix.assign(*prefix);
}

absl::Status TableBuilder::State::AddEntry(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) {
  TAMIS_RETURN_IF_ERROR(Check(user_key, sequence, kind, value));
  // An entry that would pass the target starts a block of its own, unless that leaves one less than half full.
  const uint64_t size = block.empty() ? 0 : block.EstimatedBytes();
  const uint64_t entry = user_key.size() + value.size() + kEntryOverhead;
  if (size * 2 >= block_bytes || (!block.empty() && entry >= block_bytes)) {
    if (size + entry > block_bytes) TAMIS_RETURN_IF_ERROR(FinishBlock());
  }
  if (block_pending) {
    if (last_key == user_key) {
      AddIndexEntry(last_key, last_sequence);
    } else {
      AddIndexEntry(ShortestSeparator(last_key, user_key), 0);
    }
  }
  block.Add(user_key, sequence, kind, value);
  Count(user_key, sequence, kind, value);
  return absl::OkStatus();
}

absl::Status TableBuilder::State::FinishBlock() {
  const std::string_view bytes = block.Finish();
  TAMIS_ASSIGN_OR_RETURN(pending_handle, writer.Write(bytes, options.compression));
  ++properties.data_blocks;
  properties.raw_data_bytes += bytes.size();
  properties.stored_data_bytes += pending_handle.size + kBlockTrailerBytes;
  block.Reset();
  block_pending = true;
  return absl::OkStatus();
}

void TableBuilder::State::AddIndexEntry(std::string_view key, SequenceNumber sequence) {
  std::string handle;
  EncodeBlockHandle(pending_handle, &handle);
  index.Add(key, sequence, EntryKind::kPut, handle);
  block_pending = false;
}

absl::Status TableBuilder::State::WriteFilters(std::vector<MetaBlock>* meta) {
  if (filter != nullptr && bits_per_key != 0) {
    TAMIS_ASSIGN_OR_RETURN(const FilterInfo info, WriteFilter(filter.get(), MetaBlockType::kKeyFilter, meta));
    properties.filter_kind = info.kind;  // a ribbon that could not be solved is a blocked Bloom filter
    properties.filter_bytes = info.size_bytes;
    properties.filter_bits_target = bits_per_key;
    properties.filter_fpr_predicted = info.predicted_fpr;
  }
  if (prefix_filter == nullptr) return absl::OkStatus();
  return WriteFilter(prefix_filter.get(), MetaBlockType::kPrefixFilter, meta).status();
}

absl::StatusOr<FilterInfo> TableBuilder::State::WriteFilter(FilterBuilder* from, MetaBlockType type, std::vector<MetaBlock>* meta) {
  TAMIS_ASSIGN_OR_RETURN(const FilterBytes bytes, from->Finish());
  TAMIS_ASSIGN_OR_RETURN(const FilterView view,
                         FilterView::Open(bytes.view(), {.check_owner = true, .owner = options.table_id, .any_prefix_rule = true}));
  TAMIS_RETURN_IF_ERROR(writer.Pad(kFilterAlignment));
  MetaBlock block_of_filter{static_cast<uint32_t>(type), 0, "", {}};
  TAMIS_ASSIGN_OR_RETURN(block_of_filter.handle, writer.Write(bytes.view(), Compression::kNone));
  meta->push_back(std::move(block_of_filter));
  return view.Info();
}

absl::StatusOr<TableSummary> TableBuilder::State::WriteAll() {
  if (properties.entries == 0) return absl::InternalError("table builder: no entries");
  if (!block.empty()) TAMIS_RETURN_IF_ERROR(FinishBlock());
  AddIndexEntry(last_key, 0);
  properties.largest_key = last_key;
  std::vector<MetaBlock> meta;
  TAMIS_RETURN_IF_ERROR(WriteFilters(&meta));
  MetaBlock block_of_properties{static_cast<uint32_t>(MetaBlockType::kProperties), kMetaBlockRequired, "", {}};
  TAMIS_ASSIGN_OR_RETURN(block_of_properties.handle, writer.Write(EncodeTableProperties(properties), Compression::kNone));
  meta.push_back(std::move(block_of_properties));
  Footer footer;
  // The index is read once and searched on every lookup: not worth compressing at a 1/100 of the file.
  TAMIS_ASSIGN_OR_RETURN(footer.index, writer.Write(index.Finish(), Compression::kNone));
  TAMIS_ASSIGN_OR_RETURN(footer.meta_index, writer.Write(EncodeMetaIndex(meta), Compression::kNone));
  footer.table_id = options.table_id;
  footer.file_size = writer.offset() + kFooterBytes;
  TAMIS_RETURN_IF_ERROR(writer.WriteFooter(EncodeFooter(footer)));
  return TableSummary{footer.file_size, properties};
}

TableBuilder::TableBuilder(const TableBuildOptions& options, AppendFile* file) : state_(std::make_unique<State>(options, file)) {}
TableBuilder::~TableBuilder() = default;

absl::Status TableBuilder::Add(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) {
  if (state_->status.ok()) state_->status = state_->AddEntry(user_key, sequence, kind, value);
  return state_->status;
}

uint64_t TableBuilder::entries() const { return state_->properties.entries; }

uint64_t TableBuilder::EstimatedFileBytes() const {
  const State& state = *state_;
  uint64_t bytes = state.writer.offset() + kFooterBytes;
  if (!state.block.empty()) bytes += state.block.EstimatedBytes();
  if (!state.index.empty()) bytes += state.index.EstimatedBytes();
  if (!state.status.ok()) return bytes;
  double filter_bits = 0;
  if (state.filter != nullptr) filter_bits += static_cast<double>(state.properties.distinct_keys) * state.bits_per_key;
  if (state.prefix_filter != nullptr) filter_bits += static_cast<double>(state.prefix_filter->keys()) * state.options.prefix_bits_per_key;
  bytes += static_cast<uint64_t>(filter_bits / 8);
  return bytes;
}

void TableBuilder::SetBitsPerKey(double bits_per_key) {
  State& state = *state_;
  state.bits_per_key = bits_per_key;
  if (state.filter == nullptr || !state.status.ok()) return;
  state.status = state.filter->SetBitsPerKey(state.UsableBits());
}

absl::StatusOr<TableSummary> TableBuilder::Finish() {
  State& state = *state_;
  if (!state.status.ok()) return state.status;
  if (state.finished) return absl::InternalError("table builder: Finish twice");
  state.finished = true;
  absl::StatusOr<TableSummary> summary = state.WriteAll();
  if (!summary.ok()) state.status = summary.status();
  return summary;
}

}  // namespace tamis::internal
