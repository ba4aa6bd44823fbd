#include "table/table_cursor.h"

#include <algorithm>
#include <utility>

#include "base/status_util.h"

namespace tamis::internal {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{256} << 10;

}  // namespace

absl::StatusOr<Block> TableCursor::ReadPiece(uint32_t ordinal, Direction direction) {
  const std::vector<uint64_t>& offsets = table_->data_offsets_;
  const BlockSource source = table_->source();
  if (ordinal < piece_begin_ || ordinal >= piece_end_) {
    const uint32_t count = table_->index_.count();
    uint32_t begin = ordinal;
    uint32_t end = ordinal + 1;
    if (direction == Direction::kForward) {
      while (end < count && offsets[end + 1] - offsets[begin] <= kPieceBytes) ++end;
    } else {
      while (begin > 0 && offsets[end] - offsets[begin - 1] <= kPieceBytes) --begin;
    }
    const size_t bytes = static_cast<size_t>(offsets[end] - offsets[begin]);
    piece_begin_ = piece_end_ = 0;  // nothing, should the read fail
    if (piece_.size() < bytes) piece_ = AlignedBuffer(std::max(bytes, static_cast<size_t>(std::min(kPieceBytes, offsets[count]))));
    TAMIS_RETURN_IF_ERROR(source.file->Read(offsets[begin], absl::Span<char>(piece_.data(), bytes)));
    piece_begin_ = begin;
    piece_end_ = end;
    if (direction == Direction::kForward && end < count) {
      source.file->ReadAhead(offsets[end], std::min(kPieceBytes, offsets[count] - offsets[end]));
    }
  }
  const std::string_view stored = piece_.view().substr(offsets[ordinal] - offsets[piece_begin_], offsets[ordinal + 1] - offsets[ordinal]);
  TAMIS_ASSIGN_OR_RETURN(const std::string_view bytes,
                         DecodeStoredBlock(source, offsets[ordinal], stored, options_.verify_checksums, &raw_));
  absl::StatusOr<Block> block = Block::Parse(bytes);
  if (!block.ok()) return AtBlock(source, offsets[ordinal], block.status());
  return block;
}

bool TableCursor::Enter(uint32_t ordinal, Direction direction) {
  if (entered_ && ordinal == ordinal_) return true;
  entered_ = false;
  block_.Clear();
  if (read_ahead_) {
    absl::StatusOr<Block> block = ReadPiece(ordinal, direction);
    if (block.ok()) {
      block_.Reset(*block);
    } else {
      status_ = block.status();
    }
  } else {
    absl::StatusOr<BlockRef> block = table_->LoadBlock(ordinal, options_);
    if (block.ok()) {
      pinned_ = *std::move(block);
      block_.Reset(pinned_.get()->block());
    } else {
      pinned_.Reset();
      status_ = block.status();
    }
  }
  ordinal_ = ordinal;
  entered_ = status_.ok();
  valid_ = false;
  return entered_;
}

void TableCursor::Take() {
  valid_ = block_.Valid();
  if (valid_) entry_ = block_.entry();
}

void TableCursor::NextBlock() {
  valid_ = false;
  if (ordinal_ + 1 >= table_->index_.count() || !Enter(ordinal_ + 1, Direction::kForward)) return;
  block_.SeekToFirst();
  Take();
}

void TableCursor::PrevBlock() {
  valid_ = false;
  if (ordinal_ == 0 || !Enter(ordinal_ - 1, Direction::kBackward)) return;
  block_.SeekToLast();
  Take();
}

void TableCursor::SeekToFirst() {
  status_ = absl::OkStatus();
  valid_ = false;
  if (!Enter(0, Direction::kForward)) return;
  block_.SeekToFirst();
  Take();
}

void TableCursor::SeekToLast() {
  status_ = absl::OkStatus();
  valid_ = false;
  if (!Enter(table_->index_.count() - 1, Direction::kBackward)) return;
  block_.SeekToLast();
  Take();
}

void TableCursor::Seek(std::string_view user_key, SequenceNumber sequence) {
  status_ = absl::OkStatus();
  valid_ = false;
  const uint32_t ordinal = table_->FindDataBlock(user_key, sequence);
  if (ordinal == table_->index_.count() || !Enter(ordinal, Direction::kForward)) return;
  block_.Seek(user_key, sequence);
  if (block_.Valid()) {
    Take();
  } else {
    NextBlock();  // the target lies between the block's last entry and its index key
  }
}

void TableCursor::SeekForPrev(std::string_view user_key, SequenceNumber sequence) {
  status_ = absl::OkStatus();
  valid_ = false;
  const uint32_t ordinal = std::min(table_->FindDataBlock(user_key, sequence), table_->index_.count() - 1);
  if (!Enter(ordinal, Direction::kBackward)) return;
  block_.SeekForPrev(user_key, sequence);
  if (block_.Valid()) {
    Take();
  } else {
    PrevBlock();
  }
}

void TableCursor::PrepareSeek(std::string_view user_key, SequenceNumber sequence) {
  const uint32_t ordinal = table_->FindDataBlock(user_key, sequence);
  if (ordinal != table_->index_.count()) table_->slots_->Prefetch(ordinal);
}

void TableCursor::Next() {
  block_.Next();
  if (block_.Valid()) {
    Take();
  } else {
    NextBlock();
  }
}

void TableCursor::Prev() {
  block_.Prev();
  if (block_.Valid()) {
    Take();
  } else {
    PrevBlock();
  }
}

}  // namespace tamis::internal
