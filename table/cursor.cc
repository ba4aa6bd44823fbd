#include "table/cursor.h"

#include <utility>

namespace tamis::internal {
namespace {

class EmptyCursor final : public Cursor {
 public:
  explicit EmptyCursor(absl::Status status) : status_(std::move(status)) {}
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(std::string_view, SequenceNumber) override {}
  void SeekForPrev(std::string_view, SequenceNumber) override {}
  void Next() override {}
  void Prev() override {}
  absl::Status status() const override { return status_; }

 private:
  const absl::Status status_;
};

}  // namespace

void Cursor::PrepareSeek(std::string_view, SequenceNumber) {}

std::unique_ptr<Cursor> NewEmptyCursor(absl::Status status) { return std::make_unique<EmptyCursor>(std::move(status)); }

}  // namespace tamis::internal
