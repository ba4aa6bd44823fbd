// The two forms of records outside a database: what `load` reads and `scan` writes.
//
//   tsv      one line a record: key, tab, value, each with the escapes of tools/bytes_text.h (or hexadecimal digits)
//   records  binary, without a header: key length u32, value length u32 (little-endian), key, value
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/bytes_text.h"

namespace tamis::tools {

enum class RecordForm { kTsv, kRecords };

// Reads one record after the other off a stream that it does not own.
class RecordReader {
 public:
  RecordReader(std::FILE* in, RecordForm form, BytesText text) : in_(in), form_(form), text_(text) {}
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // True and a record; false at a clean end. InvalidArgument, naming line or offset, for input that is no record; Unknown for a failed
  // read.
  absl::StatusOr<bool> Next(std::string* key, std::string* value);
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  absl::StatusOr<bool> NextLine(std::string* key, std::string* value);
  absl::StatusOr<bool> NextBinary(std::string* key, std::string* value);
  absl::Status ReadExactly(uint64_t length, std::string* bytes);

  std::FILE* const in_;
  const RecordForm form_;
  const BytesText text_;
  char* line_ = nullptr;  // of getline
  size_t line_capacity_ = 0;
  uint64_t line_number_ = 0;
  uint64_t bytes_read_ = 0;
};

// Writes one record to standard output.
void WriteRecord(RecordForm form, BytesText text, std::string_view key, std::string_view value);

}  // namespace tamis::tools
