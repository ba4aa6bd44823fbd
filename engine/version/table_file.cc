#include "engine/version/table_file.h"

#include <utility>

#include "base/status_util.h"
#include "engine/version/file_names.h"
#include "engine/version/filter_file.h"

namespace tamis::internal {
namespace {

// A file that may be deleted once the last reference to it is gone.
void MarkKept(const TableFileContext& context, std::atomic<bool>* obsolete, uint64_t bytes) {
  if (obsolete->exchange(true, std::memory_order_acq_rel) || context.kept_bytes == nullptr) return;
  context.kept_bytes->fetch_add(bytes, std::memory_order_relaxed);
}

void ReportObsolete(const TableFileContext& context, const std::string& name, uint64_t bytes) {
  if (context.kept_bytes != nullptr) context.kept_bytes->fetch_sub(bytes, std::memory_order_relaxed);
  if (context.on_obsolete) context.on_obsolete(name, bytes);
}

}  // namespace

// What all TableFile objects of one table share (F1).
class TableFile::Core {
 public:
  Core(const TableMeta& meta, std::shared_ptr<const TableFileContext> context)
      : number_(meta.number), id_(meta.id), size_(meta.size), context_(std::move(context)) {}
  ~Core() {
    // The last reference: nobody else looks at the members. The descriptor goes before the name does.
    reader_.reset();
    file_.reset();
    if (obsolete_.load(std::memory_order_acquire)) ReportObsolete(*context_, TableName(number_), size_);
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const TableFileContext& context() const { return *context_; }
  void MarkObsolete() { MarkKept(*context_, &obsolete_, size_); }

  absl::Status OpenFile() {
    MutexLock lock(mutex_);
    return OpenFileLocked();
  }

  absl::StatusOr<const TableReader*> Reader() {
    MutexLock lock(mutex_);
    if (reader_ != nullptr) return reader_.get();
    TAMIS_RETURN_IF_ERROR(OpenFileLocked());
    TableOpenOptions options;
    options.table_id = id_;
    options.file_size = size_;
    options.cache = context_->block_cache;
    options.load_filter = false;  // each TableFile has its own
    TAMIS_ASSIGN_OR_RETURN(reader_, TableReader::Open(file_, options));
    file_.reset();  // the reader holds it now
    if (context_->on_opened) context_->on_opened(number_, *reader_);
    return reader_.get();
  }

  TableMarks marks;

 private:
  absl::Status OpenFileLocked() TAMIS_REQUIRES(mutex_) {
    if (file_ != nullptr || reader_ != nullptr) return absl::OkStatus();
    TAMIS_ASSIGN_OR_RETURN(file_, context_->descriptors->Open(TableName(number_), size_, context_->keep_open));
    return absl::OkStatus();
  }

  const uint64_t number_;
  const Id128 id_;
  const uint64_t size_;
  const std::shared_ptr<const TableFileContext> context_;
  std::atomic<bool> obsolete_{false};
  Mutex mutex_;
  std::shared_ptr<const RandomAccessFile> file_ TAMIS_GUARDED_BY(mutex_);  // opened by OpenFile, until Reader takes it
  std::shared_ptr<TableReader> reader_ TAMIS_GUARDED_BY(mutex_);
};

TableFile::TableFile(TableMeta meta, std::shared_ptr<const TableFileContext> context)
    : meta_(std::move(meta)), core_(std::make_shared<Core>(meta_, std::move(context))) {}

TableFile::TableFile(TableMeta meta, std::shared_ptr<Core> core) : meta_(std::move(meta)), core_(std::move(core)) {}

TableFile::~TableFile() {
  if (filter_obsolete_.load(std::memory_order_acquire)) {
    ReportObsolete(core_->context(), FilterName(meta_.filter_file->number), meta_.filter_file->size);
  }
}

std::shared_ptr<TableFile> TableFile::WithFilter(std::optional<FilterFileMeta> filter_file, bool own_filter_unused) const {
  TableMeta meta = meta_;
  meta.filter_file = filter_file;
  meta.own_filter_unused = own_filter_unused;
  return std::shared_ptr<TableFile>(new TableFile(std::move(meta), core_));
}

void TableFile::MarkObsolete() {
  core_->MarkObsolete();
  MarkFilterObsolete();
}

void TableFile::MarkFilterObsolete() {
  if (meta_.filter_file) MarkKept(core_->context(), &filter_obsolete_, meta_.filter_file->size);
}

TableMarks& TableFile::marks() const { return core_->marks; }

std::shared_ptr<TableMarks> TableFile::SharedMarks() const { return {core_, &core_->marks}; }

absl::Status TableFile::OpenFile() const {
  TAMIS_RETURN_IF_ERROR(core_->OpenFile());
  MutexLock lock(mutex_);
  if (!meta_.filter_file || filter_file_ != nullptr || LoadedReader() != nullptr) return absl::OkStatus();
  const TableFileContext& context = core_->context();
  absl::StatusOr<std::shared_ptr<const RandomAccessFile>> file =
      context.descriptors->Open(FilterName(meta_.filter_file->number), meta_.filter_file->size, context.keep_open);
  if (file.ok()) filter_file_ = *std::move(file);  // else Reader meets the error, and knows what follows from it
  return absl::OkStatus();
}

absl::StatusOr<LoadedFilter> TableFile::LoadFilterFile() const {
  const TableFileContext& context = core_->context();
  std::shared_ptr<const RandomAccessFile> file = std::move(filter_file_);
  if (file == nullptr) {
    TAMIS_ASSIGN_OR_RETURN(file,
                           context.descriptors->Open(FilterName(meta_.filter_file->number), meta_.filter_file->size, context.keep_open));
  }
  return ReadFilterFile(*file, *meta_.filter_file, meta_.id);
}

absl::Status TableFile::LoadFilter(const TableReader& reader) const {
  LoadedFilter filter;
  absl::Status refusal;
  bool own = !meta_.own_filter_unused;
  if (meta_.filter_file) {
    absl::StatusOr<LoadedFilter> loaded = LoadFilterFile();
    if (absl::IsResourceExhausted(loaded.status())) return loaded.status();  // no descriptor or memory: says nothing of the filter
    refusal = loaded.status();
    own = own && !loaded.ok();
    if (loaded.ok()) filter = *std::move(loaded);
  }
  if (own) {
    absl::StatusOr<LoadedFilter> loaded = reader.ReadOwnFilter();
    if (absl::IsResourceExhausted(loaded.status())) return loaded.status();
    if (refusal.ok()) refusal = loaded.status();
    if (loaded.ok()) filter = *std::move(loaded);
  }
  filter_ = std::move(filter);
  filter_info_ = filter_.view.Info();
  filter_rate_limit_ = filter_info_.predicted_fpr + kAboveChanceDeviations * fpr_model::RateDeviation(filter_info_);
  filter_refusal_ = std::move(refusal);
  return absl::OkStatus();
}

absl::StatusOr<const TableReader*> TableFile::Reader() const {
  if (const TableReader* loaded = LoadedReader()) return loaded;
  const TableReader* reader;
  {
    MutexLock lock(mutex_);
    if (const TableReader* loaded = LoadedReader()) return loaded;
    TAMIS_ASSIGN_OR_RETURN(reader, core_->Reader());
    TAMIS_RETURN_IF_ERROR(LoadFilter(*reader));
    loaded_.store(reader, std::memory_order_release);
  }
  if (core_->context().on_loaded) core_->context().on_loaded(*this);
  return reader;
}

}  // namespace tamis::internal
