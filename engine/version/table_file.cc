#include "engine/version/table_file.h"

#include "base/status_util.h"
#include "engine/version/file_names.h"

namespace tamis::internal {

TableFile::~TableFile() {
  // The last reference: nobody else looks at the members. The descriptor goes before the name does.
  loaded_.store(nullptr, std::memory_order_relaxed);
  reader_.reset();
  file_.reset();
  if (!obsolete_.load(std::memory_order_acquire)) return;
  if (context_->kept_bytes != nullptr) context_->kept_bytes->fetch_sub(meta_.size, std::memory_order_relaxed);
  if (context_->on_obsolete) context_->on_obsolete(meta_);
}

absl::Status TableFile::OpenFileLocked() const {
  if (file_ != nullptr || reader_ != nullptr) return absl::OkStatus();
  TAMIS_ASSIGN_OR_RETURN(file_, context_->descriptors->Open(TableName(meta_.number), meta_.size, context_->keep_open));
  return absl::OkStatus();
}

absl::Status TableFile::OpenFile() const {
  MutexLock lock(mutex_);
  return OpenFileLocked();
}

absl::StatusOr<const TableReader*> TableFile::Reader() const {
  if (const TableReader* loaded = LoadedReader()) return loaded;
  const TableReader* reader;
  {
    MutexLock lock(mutex_);
    if (reader_ != nullptr) return reader_.get();
    TAMIS_RETURN_IF_ERROR(OpenFileLocked());
    // A filter file of its own (meta_.filter_file) is not read: the table's own filter block always answers for every key of the table,
    // so using it is right for any table, at the bits per key that the table was built with.
    TableOpenOptions options;
    options.table_id = meta_.id;
    options.file_size = meta_.size;
    options.cache = context_->block_cache;
    TAMIS_ASSIGN_OR_RETURN(reader_, TableReader::Open(file_, options));
    file_.reset();  // the reader holds it now
    reader = reader_.get();
    loaded_.store(reader, std::memory_order_release);
  }
  if (context_->on_loaded) context_->on_loaded(*reader);
  return reader;
}

}  // namespace tamis::internal
