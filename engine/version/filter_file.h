// A filter in a file of its own, NNNNNN.filter, made when a table's filter is rebuilt without rewriting the table.
//
// FORMAT: the same bytes as a table's filter block (filter/filter_format.h), with the table's id as the owner, and nothing else. The
// table's record in the manifest names the file with its size and the XXH3-64 (seed 0) of all its bytes (version_edit.h, table field 8).
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/version/version_edit.h"
#include "table/table_reader.h"
#include "tamis/file_system.h"

namespace tamis::internal {

// Writes a new filter file and makes it durable: file synced, then the directory. On an error nothing of it remains (or an orphan, which
// the next open removes).
absl::StatusOr<FilterFileMeta> WriteFilterFile(Directory* directory, uint64_t number, std::string_view bytes);

// Reads it back and checks size, checksum, header and owner. ResourceExhausted says nothing of the file; any other error is why the
// filter must not be used.
absl::StatusOr<LoadedFilter> ReadFilterFile(const RandomAccessFile& file, const FilterFileMeta& meta, const Id128& table_id);

}  // namespace tamis::internal
