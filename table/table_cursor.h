// The cursor of a table: a place in the index, and a cursor over that data block.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/aligned_buffer.h"
#include "table/block.h"
#include "table/block_cache.h"
#include "table/cursor.h"
#include "table/table_reader.h"

namespace tamis::internal {

// See TableReader::NewCursor. `table` is not owned.
class TableCursor final : public Cursor {
 public:
  TableCursor(const TableReader* table, const TableReadOptions& options, bool read_ahead)
      : table_(table), options_(options), read_ahead_(read_ahead) {}
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view user_key, SequenceNumber sequence) override;
  void SeekForPrev(std::string_view user_key, SequenceNumber sequence) override;
  void PrepareSeek(std::string_view user_key, SequenceNumber sequence) override;
  void Next() override;
  void Prev() override;
  absl::Status status() const override { return status_; }

 private:
  enum class Direction { kForward, kBackward };

  // Puts block_ on that data block, at no entry. False, with status_ set, if it cannot be read.
  bool Enter(uint32_t ordinal, Direction direction);
  absl::StatusOr<Block> ReadPiece(uint32_t ordinal, Direction direction);
  // This cursor := block_.
  void Take();
  // The first entry of the block behind ordinal_, the last one of the block before it; not Valid at the end.
  void NextBlock();
  void PrevBlock();

  const TableReader* const table_;
  const TableReadOptions options_;
  const bool read_ahead_;
  BlockCursor block_;
  bool entered_ = false;  // block_ is on data block ordinal_
  uint32_t ordinal_ = 0;
  BlockRef pinned_;  // the block, unless read_ahead_
  absl::Status status_;

  // With read_ahead_: stored data blocks [piece_begin_, piece_end_), and the current one decompressed.
  uint32_t piece_begin_ = 0;
  uint32_t piece_end_ = 0;
  AlignedBuffer piece_;
  AlignedBuffer raw_;
};

}  // namespace tamis::internal
