// A cursor over the tables of one level below L0 (disjoint, by key): opens a table's cursor only when it is reached.
#pragma once

#include <memory>
#include <vector>

#include "engine/version/table_file.h"
#include "table/cursor.h"

namespace tamis::internal {

// `files` are in key order; the cursor holds them. A table that cannot be opened or read makes the cursor not Valid with that status.
std::unique_ptr<Cursor> NewRunCursor(std::vector<std::shared_ptr<TableFile>> files, const TableReadOptions& options, bool read_ahead);
// The same without a copy of the list: for an iterator over a version's levels, whose `files` share ownership with the version.
std::unique_ptr<Cursor> NewRunCursor(std::shared_ptr<const std::vector<std::shared_ptr<TableFile>>> files, const TableReadOptions& options,
                                     bool read_ahead);

// One table, held by the cursor.
std::unique_ptr<Cursor> NewTableFileCursor(std::shared_ptr<TableFile> file, const TableReadOptions& options, bool read_ahead);

}  // namespace tamis::internal
