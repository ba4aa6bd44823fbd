// The user's iterator: from internal entries of all versions to the newest visible value of each key, within bounds, both directions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/handle_state.h"
#include "table/cursor.h"
#include "tamis/iterator.h"

namespace tamis::internal {

struct DbIteratorOptions {
  SequenceNumber sequence = 0;             // entries above it are not seen
  std::optional<std::string> lower_bound;  // inclusive
  std::optional<std::string> upper_bound;  // exclusive
  // Asked at every move: once the handle is not usable (closed, forked child), the iterator is not Valid and its status is the handle's.
  std::shared_ptr<const HandleState> handle;
  // Keeps the memtables and tables under the cursor alive.
  std::shared_ptr<const void> keep_alive;
};

std::unique_ptr<Iterator> NewDbIterator(std::unique_ptr<Cursor> cursor, DbIteratorOptions options);

}  // namespace tamis::internal
