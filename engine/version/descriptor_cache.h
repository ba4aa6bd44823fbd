// Keeps at most a number of table files open (Options::max_open_files); the others are opened again when they are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "tamis/file_system.h"

namespace tamis::internal {

// Thread-safe.
class DescriptorCache : public std::enable_shared_from_this<DescriptorCache> {
 public:
  DescriptorCache(std::shared_ptr<Directory> directory, uint32_t capacity);
  ~DescriptorCache();

  // REQUIRES: this cache is held by a shared_ptr (files made here keep it alive).
  // A file that opens `name` when read and lets its descriptor be closed when others need it. Opens it once now, and checks that its
  // size is `expected_size` (DataLoss otherwise). With `keep_open` the descriptor is never given up and does not count (read-only
  // databases, whose files may be deleted by the writer).
  absl::StatusOr<std::shared_ptr<const RandomAccessFile>> Open(const std::string& name, uint64_t expected_size, bool keep_open);

  uint32_t open_descriptors() const;

 private:
  class CachedFile;
  class Opening;
  using Victims = std::vector<std::shared_ptr<const RandomAccessFile>>;  // to be closed outside the mutex
  std::shared_ptr<const RandomAccessFile> Acquire(const CachedFile* file, absl::Status* status);
  void Forget(const CachedFile* file);
  void MakeRoom(Victims* victims) TAMIS_REQUIRES(mutex_);
  void EvictOne(Victims* victims) TAMIS_REQUIRES(mutex_);

  const std::shared_ptr<Directory> directory_;
  const uint32_t capacity_;
  mutable Mutex mutex_;
  // The files that have a descriptor; least recently opened first, except that one used since it was looked at goes to the end once.
  std::list<const CachedFile*> order_ TAMIS_GUARDED_BY(mutex_);
  std::atomic<uint32_t> opening_{0};  // files being opened now; they have their room already
};

}  // namespace tamis::internal
