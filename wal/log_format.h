// FORMAT: log files (write-ahead log and manifest). On disk, never renumber. Little-endian.
//
// A log is a header followed by fragments, in blocks of 32 KiB counted from the start of the file.
//
//   header, 64 bytes at offset 0:
//     0  magic "TAMISLOG" (8)      8  format version u32 = 1     12  kind u32: 1 write-ahead log, 2 manifest
//    16  log number u64           24  log id u64 (random)        32  database id (16)     48  reserved, zero (8)
//    56  XXH3-64 over bytes [0, 56), seed 0
//   These 64 bytes keep their shape in every version, so that a damaged version field is told from a newer one by the checksum.
//
//   fragment, anywhere after the header, never across a block edge:
//     0  checksum u32: low half of XXH3-64 over [4, 8 + length), seeded with (log id, offset of the fragment)
//     4  length u16: payload bytes (0 is legal)
//     6  type u8: 1 whole record, 2 first, 3 middle, 4 last fragment of a record, 5 end mark, 6 proof
//     7  reserved u8, zero
//     8  payload
//   If fewer than 43 bytes remain in a block (a fragment header and the longest record head, so that a head is never split) they are zero
//   and the next fragment starts at the next block. A first and a middle fragment fill their block to its end; a middle and a last one
//   start a block.
//   A fragment whose type is 1, 2, 5 or 6 begins its payload with the record head, varints:
//       proven log: this log's number minus the number of the log that the proof is about
//       proven offset: everything of that log before this offset, and all of every earlier log, was known to be durable when this was
//       written first sequence      count u32 (number of sequences; 0 for end mark and proof)
//   A proof about the log it stands in never goes beyond the place where its own fragment starts.
//   and then comes the record's own payload (types 5 and 6 have none).
//
// Bytes not covered by a checksum: the padding at block ends (checked to be zero) and zeros after the end (checked).
//
// End of a log. An end mark is the last fragment of a log that was closed; the file is truncated to it (until then, zeros of preallocated
// space follow). A log that was in use when its process ended has no end mark: its last record is followed by zeros of preallocated space,
// a torn record, or the end of the file.
// A proof (type 6) carries nothing but its head: it is stored after a sync so that the group just synced is covered even if no later
// record follows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tamis::internal {

inline constexpr char kLogMagic[8] = {'T', 'A', 'M', 'I', 'S', 'L', 'O', 'G'};
inline constexpr uint32_t kLogFormatVersion = 1;
inline constexpr size_t kLogHeaderBytes = 64;
inline constexpr size_t kLogBlockBytes = 32 * 1024;
inline constexpr size_t kFragmentHeaderBytes = 8;
inline constexpr size_t kMaxRecordHeadBytes = 10 + 10 + 10 + 5;  // three varint64 and a varint32
inline constexpr size_t kMinFragmentRoom = kFragmentHeaderBytes + kMaxRecordHeadBytes;
inline constexpr size_t kMaxFragmentPayload = kLogBlockBytes - kFragmentHeaderBytes;

enum class LogKind : uint32_t { kWriteAheadLog = 1, kManifest = 2 };
enum class FragmentType : uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4, kEndMark = 5, kProof = 6 };

// A point up to which the history is known to be durable: all of every log with a smaller number, and [0, offset) of log `log_number`.
struct ProvenPoint {
  uint64_t log_number = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const ProvenPoint&, const ProvenPoint&) = default;
};

// Where a fragment goes that follows `offset`: there, or behind the padding.
inline constexpr uint64_t FragmentStart(uint64_t offset) {
  const uint64_t room = kLogBlockBytes - offset % kLogBlockBytes;
  return room < kMinFragmentRoom ? offset + room : offset;
}

}  // namespace tamis::internal
