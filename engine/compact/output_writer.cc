#include "engine/compact/output_writer.h"

#include "base/status_util.h"
#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kMaxGrandparentFiles = 10;

TableMeta MetaOf(uint64_t number, const Id128& id, TableSummary summary) {
  TableMeta meta;
  meta.number = number;
  meta.id = id;
  meta.size = summary.file_size;
  meta.smallest = std::move(summary.properties.smallest_key);
  meta.largest = std::move(summary.properties.largest_key);
  meta.smallest_sequence = summary.properties.smallest_sequence;
  meta.largest_sequence = summary.properties.largest_sequence;
  meta.entries = summary.properties.entries;
  meta.deletes = summary.properties.deletes;
  meta.distinct_keys = summary.properties.distinct_keys;
  return meta;
}

}  // namespace

OutputWriter::OutputWriter(OutputOptions options)
    : options_(std::move(options)), filter_divider_(options_.filter_bits, options_.filter_carry) {}

OutputWriter::~OutputWriter() {
  if (handed_over_) return;
  builder_.reset();
  file_.reset();
  tables_.clear();
  // Nothing refers to these files; one that cannot be removed now is removed as an orphan at the next open.
  for (const uint64_t number : numbers_) options_.context->directory->Remove(TableName(number)).IgnoreError();
}

absl::Status OutputWriter::Add(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value) {
  if (builder_ != nullptr && options_.target_file_bytes != 0 && user_key != last_key_ && ShouldCut(user_key)) {
    TAMIS_RETURN_IF_ERROR(CloseFile());
  }
  if (builder_ == nullptr) TAMIS_RETURN_IF_ERROR(OpenFile());
  TAMIS_RETURN_IF_ERROR(builder_->Add(user_key, sequence, kind, value));
  if (options_.target_file_bytes != 0) last_key_.assign(user_key);
  ++entries_;
  return absl::OkStatus();
}

bool OutputWriter::ShouldCut(std::string_view next_key) {
  while (grandparent_ < options_.grandparents.size() && std::string_view(options_.grandparents[grandparent_].first) < next_key) {
    grandparent_bytes_ += options_.grandparents[grandparent_].second;
    ++grandparent_;
  }
  return builder_->EstimatedFileBytes() >= options_.target_file_bytes ||
         grandparent_bytes_ > kMaxGrandparentFiles * options_.target_file_bytes;
}

absl::Status OutputWriter::OpenFile() {
  number_ = options_.new_file_number();
  table_id_ = options_.random->NextId128();
  numbers_.push_back(number_);
  TAMIS_ASSIGN_OR_RETURN(file_, options_.context->directory->CreateAppend(TableName(number_)));
  TableBuildOptions table = options_.table;
  table.table_id = table_id_;
  table.bits_per_key = options_.filter_bits.bits_per_key;
  builder_ = std::make_unique<TableBuilder>(table, file_.get());
  grandparent_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status OutputWriter::CloseFile() {
  builder_->SetBitsPerKey(filter_divider_.Take(builder_->entries()));
  TAMIS_ASSIGN_OR_RETURN(TableSummary summary, builder_->Finish());
  TAMIS_RETURN_IF_ERROR(file_->Sync());
  TAMIS_RETURN_IF_ERROR(file_->Close());
  finished_bytes_ += summary.file_size;
  builder_.reset();
  file_.reset();
  auto table = std::make_shared<TableFile>(MetaOf(number_, table_id_, std::move(summary)), options_.context);
  // Reads footer, index and filter back.
  const absl::StatusOr<const TableReader*> reader = table->Reader();
  TAMIS_RETURN_IF_ERROR(reader.status());
  if (!table->filter_refusal().ok()) return Annotate(table->filter_refusal(), "a filter just written");
  if (!(*reader)->prefix_filter_refusal().ok()) return Annotate((*reader)->prefix_filter_refusal(), "a prefix filter just written");
  if ((*reader)->properties().entries != table->meta().entries) {
    return absl::DataLossError(Concat((*reader)->path(), ": the number of entries read back differs from what was written"));
  }
  tables_.push_back(std::move(table));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::shared_ptr<TableFile>>> OutputWriter::Finish() {
  if (builder_ != nullptr) TAMIS_RETURN_IF_ERROR(CloseFile());
  if (!tables_.empty()) TAMIS_RETURN_IF_ERROR(options_.context->directory->Sync());
  handed_over_ = true;
  return std::move(tables_);
}

uint64_t OutputWriter::bytes_written() const {
  return finished_bytes_ + (builder_ != nullptr ? builder_->EstimatedFileBytes() : 0);
}

}  // namespace tamis::internal
