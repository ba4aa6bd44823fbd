#include "engine/read/run_cursor.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace tamis::internal {
namespace {

using FileList = std::vector<std::shared_ptr<TableFile>>;

class RunCursor final : public Cursor {
 public:
  RunCursor(std::shared_ptr<const FileList> files, const TableReadOptions& options, bool read_ahead)
      : files_(std::move(files)), options_(options), read_ahead_(read_ahead) {}

  void SeekToFirst() override {
    if (Open(0)) cursor_->SeekToFirst();
    SettleForward();
  }
  void SeekToLast() override {
    if (Open(files_->size() - 1)) cursor_->SeekToLast();  // no files: the index is out of range, too
    SettleBackward();
  }
  void Seek(std::string_view user_key, SequenceNumber sequence) override {
    if (Open(LowerBound(user_key))) cursor_->Seek(user_key, sequence);
    SettleForward();
  }
  void SeekForPrev(std::string_view user_key, SequenceNumber sequence) override {
    const auto after = std::partition_point(files_->begin(), files_->end(),
                                            [&](const std::shared_ptr<TableFile>& file) { return file->meta().smallest <= user_key; });
    if (Open(static_cast<size_t>(after - files_->begin()) - 1)) cursor_->SeekForPrev(user_key, sequence);
    SettleBackward();
  }
  void PrepareSeek(std::string_view user_key, SequenceNumber sequence) override {
    if (Open(LowerBound(user_key))) cursor_->PrepareSeek(user_key, sequence);
  }
  void Next() override {
    if (!valid_) return;
    cursor_->Next();
    if (cursor_->Valid()) {
      entry_ = cursor_->entry();
      return;
    }
    SettleForward();
  }
  void Prev() override {
    if (!valid_) return;
    cursor_->Prev();
    if (cursor_->Valid()) {
      entry_ = cursor_->entry();
      return;
    }
    SettleBackward();
  }
  absl::Status status() const override { return status_; }

 private:
  static constexpr size_t kNoFile = ~size_t{0};

  // The first file whose largest key is at or after `user_key`.
  size_t LowerBound(std::string_view user_key) const {
    const auto found = std::partition_point(files_->begin(), files_->end(),
                                            [&](const std::shared_ptr<TableFile>& file) { return file->meta().largest < user_key; });
    return static_cast<size_t>(found - files_->begin());
  }

  // Makes cursor_ that of the file `index`. False if there is no such file (status_ OK) or it cannot be opened; then there is no cursor_.
  bool Open(size_t index) {
    status_ = absl::OkStatus();
    if (index < files_->size() && index == opened_) return true;
    cursor_.reset();
    opened_ = kNoFile;
    if (index >= files_->size()) return false;
    absl::StatusOr<const TableReader*> reader = (*files_)[index]->Reader();
    if (!reader.ok()) {
      status_ = std::move(reader).status();
      return false;
    }
    cursor_ = (*reader)->NewCursor(options_, read_ahead_);
    opened_ = index;
    return true;
  }

  // Shows the entry that cursor_ is at. False if it is past its end: then the neighbour is next.
  bool Show() {
    valid_ = cursor_ != nullptr && cursor_->Valid();
    if (valid_) {
      entry_ = cursor_->entry();
      return true;
    }
    if (cursor_ == nullptr) return true;  // no such file, or an error
    status_ = cursor_->status();
    return !status_.ok();
  }
  void SettleForward() {
    while (!Show()) {
      if (Open(opened_ + 1)) cursor_->SeekToFirst();
    }
  }
  void SettleBackward() {
    while (!Show()) {
      if (Open(opened_ - 1)) cursor_->SeekToLast();
    }
  }

  const std::shared_ptr<const FileList> files_;
  const TableReadOptions options_;
  const bool read_ahead_;
  size_t opened_ = kNoFile;  // the file that cursor_ belongs to
  std::unique_ptr<Cursor> cursor_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<Cursor> NewRunCursor(std::shared_ptr<const FileList> files, const TableReadOptions& options, bool read_ahead) {
  return std::make_unique<RunCursor>(std::move(files), options, read_ahead);
}

std::unique_ptr<Cursor> NewRunCursor(FileList files, const TableReadOptions& options, bool read_ahead) {
  return NewRunCursor(std::make_shared<const FileList>(std::move(files)), options, read_ahead);
}

std::unique_ptr<Cursor> NewTableFileCursor(std::shared_ptr<TableFile> file, const TableReadOptions& options, bool read_ahead) {
  return NewRunCursor(FileList{std::move(file)}, options, read_ahead);
}

}  // namespace tamis::internal
