#include "base/mem_file_system.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/posix_errno.h"
#include "base/status_util.h"

namespace tamis::internal {
namespace {

absl::Status Closed(const std::string& path) { return absl::FailedPreconditionError(Concat(path, ": the file was closed")); }

// The bytes of a file. They live as long as a name or an open file refers to them.
class Content {
 public:
  uint64_t size() const {
    MutexLock lock(mutex_);
    return bytes_.size();
  }

  bool Read(uint64_t offset, absl::Span<char> buffer) const {
    MutexLock lock(mutex_);
    if (offset > bytes_.size() || buffer.size() > bytes_.size() - offset) return false;
    bytes_.copy(buffer.data(), buffer.size(), offset);
    return true;
  }

  void Append(std::string_view bytes) {
    MutexLock lock(mutex_);
    bytes_.append(bytes);
  }

  // The range lies within size().
  void Write(uint64_t offset, std::string_view bytes) {
    MutexLock lock(mutex_);
    bytes_.replace(offset, bytes.size(), bytes);
  }

  void Resize(uint64_t size) {
    MutexLock lock(mutex_);
    bytes_.resize(size, '\0');
  }

 private:
  mutable Mutex mutex_;
  std::string bytes_ TAMIS_GUARDED_BY(mutex_);
};

// A directory (content == nullptr) or a file. Guarded by Tree::mutex.
struct Node {
  uint64_t inode = 0;
  std::shared_ptr<Content> content;
  std::map<std::string, std::shared_ptr<Node>, std::less<>> children;
  bool removed = false;  // a directory without a name: nothing can be made in it
  bool locked = false;   // a file on which a FileLock is held
};

// Everything that files, directories and the file system itself share; outlives each of them.
struct Tree {
  Tree() {
    static std::atomic<uint64_t> devices{0};
    device = (uint64_t{1} << 63) | devices.fetch_add(1);  // no device of the system has this bit
  }

  std::shared_ptr<Node> NewNode() TAMIS_REQUIRES(mutex) {
    auto node = std::make_shared<Node>();
    node->inode = ++last_inode;
    return node;
  }

  std::shared_ptr<Node> NewFile() TAMIS_REQUIRES(mutex) {
    auto node = NewNode();
    node->content = std::make_shared<Content>();
    return node;
  }

  uint64_t device;
  Mutex mutex;
  uint64_t last_inode TAMIS_GUARDED_BY(mutex) = 1;
  const std::shared_ptr<Node> root = std::make_shared<Node>();
};

class MemRandomAccessFile final : public RandomAccessFile {
 public:
  MemRandomAccessFile(std::string path, std::shared_ptr<Content> content)
      : path_(std::move(path)), content_(std::move(content)), size_(content_->size()) {}

  absl::Status Read(uint64_t offset, absl::Span<char> buffer) const override {
    if (content_->Read(offset, buffer)) return absl::OkStatus();
    return absl::DataLossError(
        Concat("read ", path_, " at offset ", offset, ": the file ends at ", content_->size(), ", ", buffer.size(), " bytes wanted"));
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }
  void ReadAhead(uint64_t, uint64_t) const override {}

 private:
  const std::string path_;
  const std::shared_ptr<Content> content_;
  const uint64_t size_;
};

class MemAppendFile final : public AppendFile {
 public:
  MemAppendFile(std::string path, std::shared_ptr<Content> content) : path_(std::move(path)), content_(std::move(content)) {}

  absl::Status Append(std::string_view bytes) override {
    if (closed_) return Closed(path_);
    content_->Append(bytes);
    size_ += bytes.size();
    return absl::OkStatus();
  }
  void StartWriteback() override {}
  absl::Status Sync() override { return closed_ ? Closed(path_) : absl::OkStatus(); }
  absl::Status Close() override {
    if (closed_) return Closed(path_);
    closed_ = true;
    return absl::OkStatus();
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const std::shared_ptr<Content> content_;
  uint64_t size_ = 0;
  bool closed_ = false;
};

class MemLogFile final : public LogFile {
 public:
  MemLogFile(std::string path, std::shared_ptr<Content> content) : path_(std::move(path)), content_(std::move(content)) {}

  absl::Status Reserve(uint64_t end) override {
    if (closed_) return Closed(path_);
    if (end <= reserved_) return absl::OkStatus();
    content_->Resize(end);
    reserved_ = end;
    return absl::OkStatus();
  }
  uint64_t reserved() const override { return reserved_; }

  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    if (closed_) return Closed(path_);
    if (offset > reserved_ || bytes.size() > reserved_ - offset) {
      return absl::InvalidArgumentError(Concat("write ", path_, " at offset ", offset, ": beyond the reserved ", reserved_, " bytes"));
    }
    content_->Write(offset, bytes);
    return absl::OkStatus();
  }
  absl::Status WriteThrough(uint64_t offset, std::string_view bytes) override { return Write(offset, bytes); }
  absl::Status Sync() override { return closed_ ? Closed(path_) : absl::OkStatus(); }

  absl::Status Truncate(uint64_t size) override {
    if (closed_) return Closed(path_);
    if (size > reserved_) {
      return absl::InvalidArgumentError(Concat("truncate ", path_, " to ", size, ": beyond the reserved ", reserved_, " bytes"));
    }
    content_->Resize(size);
    reserved_ = size;
    return absl::OkStatus();
  }
  absl::Status Close() override {
    if (closed_) return Closed(path_);
    closed_ = true;
    return absl::OkStatus();
  }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const std::shared_ptr<Content> content_;
  uint64_t reserved_ = 0;
  bool closed_ = false;
};

class MemFileLock final : public FileLock {
 public:
  MemFileLock(std::shared_ptr<Tree> tree, std::shared_ptr<Node> node) : tree_(std::move(tree)), node_(std::move(node)) {}
  ~MemFileLock() override {
    MutexLock lock(tree_->mutex);
    node_->locked = false;
  }

 private:
  const std::shared_ptr<Tree> tree_;
  const std::shared_ptr<Node> node_;
};

class MemDirectory final : public Directory {
 public:
  MemDirectory(std::string path, std::shared_ptr<Tree> tree, std::shared_ptr<Node> node)
      : path_(std::move(path)), tree_(std::move(tree)), node_(std::move(node)) {}

  const std::string& path() const override { return path_; }
  DirectoryId id() const override { return {tree_->device, node_->inode}; }

  absl::StatusOr<std::vector<DirectoryEntry>> List() const override {
    MutexLock lock(tree_->mutex);
    std::vector<DirectoryEntry> entries;
    entries.reserve(node_->children.size());
    for (const auto& [name, child] : node_->children) {
      const bool regular = child->content != nullptr;
      entries.push_back({name, regular ? child->content->size() : 0, regular});
    }
    return entries;
  }

  absl::StatusOr<std::optional<uint64_t>> FileSize(std::string_view name) const override {
    TAMIS_RETURN_IF_ERROR(CheckName(name));
    MutexLock lock(tree_->mutex);
    const auto found = node_->children.find(name);
    if (found == node_->children.end()) return std::optional<uint64_t>();
    if (found->second->content == nullptr) return Irregular(name);
    return std::optional<uint64_t>(found->second->content->size());
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(std::string_view name) const override {
    TAMIS_RETURN_IF_ERROR(CheckName(name));
    MutexLock lock(tree_->mutex);
    const auto found = node_->children.find(name);
    if (found == node_->children.end()) return Missing("open ", name);
    if (found->second->content == nullptr) return Irregular(name);
    return std::make_unique<MemRandomAccessFile>(PathOf(name), found->second->content);
  }

  absl::StatusOr<std::unique_ptr<AppendFile>> CreateAppend(std::string_view name) override {
    TAMIS_ASSIGN_OR_RETURN(auto content, Create(name));
    return std::make_unique<MemAppendFile>(PathOf(name), std::move(content));
  }

  absl::StatusOr<std::unique_ptr<LogFile>> CreateLog(std::string_view name) override {
    TAMIS_ASSIGN_OR_RETURN(auto content, Create(name));
    return std::make_unique<MemLogFile>(PathOf(name), std::move(content));
  }

  absl::Status Rename(std::string_view from, std::string_view to) override {
    TAMIS_RETURN_IF_ERROR(CheckName(from));
    TAMIS_RETURN_IF_ERROR(CheckName(to));
    MutexLock lock(tree_->mutex);
    const auto found = node_->children.find(from);
    if (found == node_->children.end()) return Missing("rename ", from);
    if (found->second->content == nullptr) return Irregular(from);
    if (from == to) return absl::OkStatus();
    const auto target = node_->children.find(to);
    if (target != node_->children.end() && target->second->content == nullptr) return Irregular(to);
    node_->children.insert_or_assign(std::string(to), found->second);
    node_->children.erase(found);
    return absl::OkStatus();
  }

  absl::Status Remove(std::string_view name) override {
    TAMIS_RETURN_IF_ERROR(CheckName(name));
    MutexLock lock(tree_->mutex);
    const auto found = node_->children.find(name);
    if (found == node_->children.end()) return absl::OkStatus();
    if (found->second->content == nullptr) return Irregular(name);
    node_->children.erase(found);
    return absl::OkStatus();
  }

  absl::Status Sync() override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(std::string_view name) override {
    TAMIS_RETURN_IF_ERROR(CheckName(name));
    MutexLock lock(tree_->mutex);
    auto found = node_->children.find(name);
    if (found == node_->children.end()) {
      if (node_->removed) return Missing("lock ", name);
      found = node_->children.emplace(std::string(name), tree_->NewFile()).first;
    }
    const std::shared_ptr<Node>& node = found->second;
    if (node->content == nullptr) return Irregular(name);
    const std::string pid = Concat(static_cast<int64_t>(::getpid()));
    if (node->locked) return absl::UnavailableError(Concat(PathOf(name), " is locked by process ", pid, ", this one"));
    node->content->Resize(0);
    node->content->Append(Concat(pid, "\n"));
    node->locked = true;
    return std::make_unique<MemFileLock>(tree_, node);
  }

 private:
  std::string PathOf(std::string_view name) const { return Concat(path_, "/", name); }
  absl::Status Irregular(std::string_view name) const {
    return absl::FailedPreconditionError(Concat(PathOf(name), " is not a regular file"));
  }
  absl::Status Missing(std::string_view operation, std::string_view name) const {
    return absl::DataLossError(Concat(operation, PathOf(name), ": no such file"));
  }

  absl::StatusOr<std::shared_ptr<Content>> Create(std::string_view name) {
    TAMIS_RETURN_IF_ERROR(CheckName(name));
    MutexLock lock(tree_->mutex);
    if (node_->removed) return Missing("create ", name);
    if (node_->children.contains(name)) return absl::FailedPreconditionError(Concat("create ", PathOf(name), ": the file exists"));
    return node_->children.emplace(std::string(name), tree_->NewFile()).first->second->content;
  }

  const std::string path_;
  const std::shared_ptr<Tree> tree_;
  const std::shared_ptr<Node> node_;
};

class MemFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path, OpenMode mode, uint32_t) override {
    const std::vector<std::string> names = Split(path);
    MutexLock lock(tree_->mutex);
    std::shared_ptr<Node> node = tree_->root;
    for (size_t i = 0; i < names.size(); ++i) {
      auto found = node->children.find(names[i]);
      if (found == node->children.end()) {
        const bool last = i + 1 == names.size();
        if (!last && mode == OpenMode::kCreate) {
          return absl::FailedPreconditionError(
              Concat("create ", path, ": the parent directory is missing: ", Join(names, names.size() - 1)));
        }
        if (mode != OpenMode::kCreate) return absl::FailedPreconditionError(Concat("open ", path, ": no such directory"));
        found = node->children.emplace(names[i], tree_->NewNode()).first;
      }
      node = found->second;
      if (node->content != nullptr) return absl::FailedPreconditionError(Concat("open ", path, ": not a directory"));
    }
    return std::make_unique<MemDirectory>(path, tree_, node);
  }

  absl::StatusOr<bool> PathExists(const std::string& path) override {
    MutexLock lock(tree_->mutex);
    const Node* node = tree_->root.get();
    for (const std::string& name : Split(path)) {
      const auto found = node->children.find(name);
      if (found == node->children.end()) return false;
      node = found->second.get();
    }
    return true;
  }

  absl::Status RemoveDirectory(const std::string& path) override {
    const std::vector<std::string> names = Split(path);
    if (names.empty()) return absl::FailedPreconditionError(Concat("remove ", path, ": the root"));
    MutexLock lock(tree_->mutex);
    Node* parent = tree_->root.get();
    for (size_t i = 0; i + 1 < names.size(); ++i) {
      const auto found = parent->children.find(names[i]);
      if (found == parent->children.end()) return absl::OkStatus();
      parent = found->second.get();
    }
    const auto found = parent->children.find(names.back());
    if (found == parent->children.end()) return absl::OkStatus();
    Node& node = *found->second;
    if (node.content != nullptr) return absl::FailedPreconditionError(Concat("remove ", path, ": not a directory"));
    if (!node.children.empty()) return absl::FailedPreconditionError(Concat("remove ", path, ": the directory is not empty"));
    node.removed = true;
    parent->children.erase(found);
    return absl::OkStatus();
  }

 private:
  // The components of a path; empty ones and "." do not count.
  static std::vector<std::string> Split(const std::string& path) {
    std::vector<std::string> names;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      std::string name = path.substr(begin, end - begin);
      if (!name.empty() && name != ".") names.push_back(std::move(name));
      begin = end + 1;
    }
    return names;
  }

  static std::string Join(const std::vector<std::string>& names, size_t count) {
    std::string path;
    for (size_t i = 0; i < count; ++i) path += Concat("/", names[i]);
    return path;
  }

  const std::shared_ptr<Tree> tree_ = std::make_shared<Tree>();
};

}  // namespace

std::unique_ptr<FileSystem> NewMemFileSystem() { return std::make_unique<MemFileSystem>(); }

}  // namespace tamis::internal
