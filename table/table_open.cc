// Opening a table: everything that later reads rely on is checked here.

#include <algorithm>
#include <utility>

#include "base/status_util.h"
#include "table/table_reader.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kFilterAlignment = 64;

// Keeps a filter, or why it is refused. ResourceExhausted (no descriptor or memory) says nothing of the filter, and passes: returned.
absl::Status Keep(absl::StatusOr<LoadedFilter> filter, LoadedFilter* kept, absl::Status* refusal) {
  if (filter.ok()) {
    *kept = *std::move(filter);
  } else if (absl::IsResourceExhausted(filter.status())) {
    return filter.status();
  } else {
    *refusal = filter.status();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<TableReader>> TableReader::Open(std::shared_ptr<const RandomAccessFile> file,
                                                               const TableOpenOptions& options) {
  std::shared_ptr<TableReader> table(new TableReader());
  table->file_ = std::move(file);
  TAMIS_RETURN_IF_ERROR(table->Load(options));
  return table;
}

TableReader::~TableReader() = default;

absl::Status TableReader::Load(const TableOpenOptions& options) {
  const uint64_t size = file_->size();
  if (size != options.file_size) {
    return absl::DataLossError(Concat(path(), ": table of ", size, " bytes, expected ", options.file_size));
  }
  if (size < kFooterBytes) return absl::DataLossError(Concat(path(), ": ", size, " bytes are too few for a table"));
  char footer[kFooterBytes];
  TAMIS_RETURN_IF_ERROR(file_->Read(size - kFooterBytes, absl::Span<char>(footer, kFooterBytes)));
  TAMIS_ASSIGN_OR_RETURN(footer_, DecodeFooter({footer, kFooterBytes}, size, path()));
  if (footer_.table_id != options.table_id) return absl::DataLossError(Concat(path(), ": the footer names another table id"));
  {
    TAMIS_ASSIGN_OR_RETURN(const BlockBytes bytes, ReadBlock(source(), footer_.meta_index, /*verify=*/true));
    absl::StatusOr<std::vector<MetaBlock>> blocks = DecodeMetaIndex(bytes.view());
    if (!blocks.ok()) return AtBlock(source(), footer_.meta_index.offset, blocks.status());
    meta_blocks_ = *std::move(blocks);
  }
  TAMIS_RETURN_IF_ERROR(LoadProperties());
  TAMIS_RETURN_IF_ERROR(LoadIndex());
  slots_ = std::make_unique<BlockSlots>(options.cache, index_.count());
  if (options.load_filter) TAMIS_RETURN_IF_ERROR(Keep(ReadOwnFilter(), &loaded_filter_, &filter_refusal_));
  TAMIS_RETURN_IF_ERROR(Keep(LoadFilter(MetaBlockType::kPrefixFilter), &prefix_filter_, &prefix_filter_refusal_));
  if (prefix_filter_.view.has_filter()) prefix_rule_ = prefix_filter_.view.prefix_rule();
  return absl::OkStatus();
}

const MetaBlock* TableReader::FindMeta(MetaBlockType type) const {
  for (const MetaBlock& block : meta_blocks_) {
    if (block.type == static_cast<uint32_t>(type) && block.name.empty()) return &block;
  }
  return nullptr;
}

absl::Status TableReader::LoadProperties() {
  const MetaBlock* block = FindMeta(MetaBlockType::kProperties);
  if (block == nullptr) return absl::DataLossError(Concat(path(), ": no properties block"));
  const auto check = [&](const absl::Status& status) { return AtBlock(source(), block->handle.offset, status); };
  TAMIS_ASSIGN_OR_RETURN(const BlockBytes bytes, ReadBlock(source(), block->handle, /*verify=*/true));
  absl::StatusOr<TableProperties> properties = DecodeTableProperties(bytes.view());
  if (!properties.ok()) return check(properties.status());
  properties_ = *std::move(properties);
  // Bounds that keep sums over many tables far from overflow. An entry has at least one stored byte for every kMaxExpansion.
  const uint64_t most = source().end * kMaxExpansion;
  const TableProperties& p = properties_;
  if (p.entries == 0 || std::max({p.entries, p.raw_key_bytes / kMaxKeyBytes, p.raw_value_bytes, p.raw_data_bytes}) > most ||
      p.stored_data_bytes > source().end || p.filter_bytes > source().end) {
    return check(absl::DataLossError("properties: numbers too large for the file"));
  }
  return absl::OkStatus();
}

absl::Status TableReader::LoadIndex() {
  const auto damaged = [&](const char* what) { return AtBlock(source(), footer_.index.offset, absl::DataLossError(what)); };
  TAMIS_ASSIGN_OR_RETURN(BlockBytes bytes, ReadBlock(source(), footer_.index, /*verify=*/true));
  index_bytes_ = std::move(bytes.buffer);
  absl::StatusOr<Block> index = Block::Parse(index_bytes_.view().substr(0, bytes.size));
  if (!index.ok()) return AtBlock(source(), footer_.index.offset, index.status());
  index_ = *index;
  TAMIS_RETURN_IF_ERROR(AtBlock(source(), footer_.index.offset, index_.VerifyOrder()));
  index_buckets_ = index_.Buckets();
  if (index_.count() != properties_.data_blocks) return damaged("index: not as many entries as the properties name data blocks");
  uint64_t end = std::min(footer_.index.offset, footer_.meta_index.offset);
  for (const MetaBlock& block : meta_blocks_) end = std::min(end, block.handle.offset);
  data_offsets_.reserve(size_t{index_.count()} + 1);
  data_offsets_.push_back(0);
  for (uint32_t i = 0; i < index_.count(); ++i) {
    Reader reader(index_.At(i).value);
    BlockHandle handle;
    if (!DecodeBlockHandle(&reader, &handle) || !reader.empty()) return damaged("index: malformed handle");
    if (handle.offset != data_offsets_.back() || !HandleFits(handle, end)) return damaged("index: handle outside of the data blocks");
    data_offsets_.push_back(handle.offset + handle.size + kBlockTrailerBytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedFilter> TableReader::ReadOwnFilter() const { return LoadFilter(MetaBlockType::kKeyFilter); }

absl::StatusOr<LoadedFilter> TableReader::LoadFilter(MetaBlockType type) const {
  const MetaBlock* block = FindMeta(type);
  if (block == nullptr) return LoadedFilter();
  const auto refuse = [&](const absl::Status& status) { return AtBlock(source(), block->handle.offset, status); };
  if (block->handle.offset % kFilterAlignment != 0) return refuse(absl::DataLossError("filter block is not aligned"));
  TAMIS_ASSIGN_OR_RETURN(BlockBytes bytes, ReadRawBlock(source(), block->handle));
  const bool of_prefixes = type == MetaBlockType::kPrefixFilter;
  absl::StatusOr<FilterView> view =
      FilterView::Open(bytes.view(), {.check_owner = true, .owner = footer_.table_id, .any_prefix_rule = of_prefixes});
  if (!view.ok()) return refuse(view.status());
  if (of_prefixes && view->prefix_rule().kind == FilterPrefixKind::kNone) {
    return refuse(absl::FailedPreconditionError("prefix filter without a rule"));
  }
  return LoadedFilter{std::move(bytes.buffer), *view};
}

}  // namespace tamis::internal
