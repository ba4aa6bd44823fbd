#include "engine/version/descriptor_cache.h"

#include <atomic>
#include <utility>
#include <vector>

#include "base/status_util.h"

namespace tamis::internal {
namespace {

absl::StatusOr<std::shared_ptr<const RandomAccessFile>> OpenChecked(const Directory& directory, const std::string& name,
                                                                    uint64_t expected_size) {
  TAMIS_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file, directory.OpenRandomAccess(name));
  if (file->size() != expected_size) {
    return absl::DataLossError(Concat(file->path(), ": has ", file->size(), " bytes where the manifest records ", expected_size));
  }
  return file;
}

}  // namespace

// Counts one file as being opened.
class DescriptorCache::Opening {
 public:
  explicit Opening(std::atomic<uint32_t>* count) : count_(count) { count_->fetch_add(1, std::memory_order_relaxed); }
  ~Opening() { count_->fetch_sub(1, std::memory_order_relaxed); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  std::atomic<uint32_t>* const count_;
};

// Lock order: the cache's mutex, then a file's. A file's is held for moments only, and never while another is taken or a file opened, so
// that a read of an open file meets no other reader than those of the same file.
class DescriptorCache::CachedFile : public RandomAccessFile {
 public:
  CachedFile(std::shared_ptr<DescriptorCache> cache, std::string name, uint64_t size, std::string path)
      : cache_(std::move(cache)), name_(std::move(name)), size_(size), path_(std::move(path)) {}
  ~CachedFile() override { cache_->Forget(this); }

  absl::Status Read(uint64_t offset, absl::Span<char> buffer) const override {
    absl::Status status;
    const std::shared_ptr<const RandomAccessFile> file = cache_->Acquire(this, &status);
    return file != nullptr ? file->Read(offset, buffer) : status;
  }
  void ReadAhead(uint64_t offset, uint64_t length) const override {
    absl::Status status;
    const std::shared_ptr<const RandomAccessFile> file = cache_->Acquire(this, &status);
    if (file != nullptr) file->ReadAhead(offset, length);
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }
  const std::string& name() const { return name_; }

  // The open file, or null; counts as a use.
  std::shared_ptr<const RandomAccessFile> Use() const TAMIS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    used_ = true;
    return file_;
  }
  // Takes `file` unless it has one; returns the one it has now.
  std::shared_ptr<const RandomAccessFile> Adopt(std::shared_ptr<const RandomAccessFile> file, bool* adopted) const TAMIS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    *adopted = file_ == nullptr;
    if (*adopted) {
      file_ = std::move(file);
      used_ = false;  // the read that opened it does not count: it is the youngest anyway
    }
    return file_;
  }
  // Gives the file up, unless it was used since the last call and `force` is not set: then null.
  std::shared_ptr<const RandomAccessFile> GiveUp(bool force) const TAMIS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (std::exchange(used_, false) && !force) return nullptr;
    return std::exchange(file_, nullptr);
  }

 private:
  friend class DescriptorCache;
  const std::shared_ptr<DescriptorCache> cache_;
  const std::string name_;
  const uint64_t size_;
  const std::string path_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const RandomAccessFile> file_ TAMIS_GUARDED_BY(mutex_);
  mutable bool used_ TAMIS_GUARDED_BY(mutex_) = false;
  // Under the cache's mutex: whether, and where, it stands in order_.
  mutable bool listed_ = false;
  mutable std::list<const CachedFile*>::iterator place_;
};

DescriptorCache::DescriptorCache(std::shared_ptr<Directory> directory, uint32_t capacity)
    : directory_(std::move(directory)), capacity_(capacity) {}
DescriptorCache::~DescriptorCache() = default;

absl::StatusOr<std::shared_ptr<const RandomAccessFile>> DescriptorCache::Open(const std::string& name, uint64_t expected_size,
                                                                              bool keep_open) {
  if (keep_open) return OpenChecked(*directory_, name, expected_size);
  auto file = std::make_shared<CachedFile>(shared_from_this(), name, expected_size, Concat(directory_->path(), "/", name));
  absl::Status status;
  if (Acquire(file.get(), &status) == nullptr) return status;
  return std::shared_ptr<const RandomAccessFile>(std::move(file));
}

std::shared_ptr<const RandomAccessFile> DescriptorCache::Acquire(const CachedFile* file, absl::Status* status) {
  if (std::shared_ptr<const RandomAccessFile> open = file->Use()) return open;
  std::list<const CachedFile*> entry{file};  // made now, so that nothing can fail once the file is open
  Victims victims;
  const Opening opening(&opening_);
  {
    MutexLock lock(mutex_);
    MakeRoom(&victims);
  }
  victims.clear();  // closes them, outside the mutex and before the next is opened
  absl::StatusOr<std::shared_ptr<const RandomAccessFile>> opened = OpenChecked(*directory_, file->name(), file->size());
  if (absl::IsResourceExhausted(opened.status())) {
    // The process may have fewer descriptors than Options::max_open_files says: give one back and try once more.
    {
      MutexLock lock(mutex_);
      EvictOne(&victims);
    }
    victims.clear();
    opened = OpenChecked(*directory_, file->name(), file->size());
  }
  if (!opened.ok()) {
    *status = opened.status();
    return nullptr;
  }
  MutexLock lock(mutex_);
  bool adopted;
  std::shared_ptr<const RandomAccessFile> current = file->Adopt(*std::move(opened), &adopted);
  if (adopted) {
    file->place_ = entry.begin();
    file->listed_ = true;
    order_.splice(order_.end(), entry);
  }
  return current;
}

void DescriptorCache::MakeRoom(Victims* victims) {
  while (!order_.empty() && order_.size() + opening_.load(std::memory_order_relaxed) > capacity_) EvictOne(victims);
}

void DescriptorCache::EvictOne(Victims* victims) {
  victims->reserve(victims->size() + 1);  // before a file is given up: from there on nothing may fail
  // Second chance: one pass over the files clears all marks, the second takes the first it meets.
  for (size_t skipped = 0; !order_.empty(); ++skipped) {
    const CachedFile* const file = order_.front();
    if (std::shared_ptr<const RandomAccessFile> open = file->GiveUp(skipped >= order_.size())) {
      victims->push_back(std::move(open));
      file->listed_ = false;
      order_.pop_front();
      return;
    }
    order_.splice(order_.end(), order_, order_.begin());
  }
}

void DescriptorCache::Forget(const CachedFile* file) {
  MutexLock lock(mutex_);
  if (!file->listed_) return;
  order_.erase(file->place_);
  file->listed_ = false;
}

uint32_t DescriptorCache::open_descriptors() const {
  MutexLock lock(mutex_);
  return static_cast<uint32_t>(order_.size());
}

}  // namespace tamis::internal
