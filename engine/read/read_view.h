// All that a read looks at: the memtables and the tree, as of one moment. Immutable; replaced as a whole.
//
// A point read uses it under an epoch guard; what lives longer (iterators, pinned values) holds a shared_ptr from shared_from_this(),
// taken under the guard.
#pragma once

#include <memory>
#include <vector>

#include "engine/memtable/memtable.h"
#include "engine/version/version.h"

namespace tamis::internal {

struct ReadView : std::enable_shared_from_this<ReadView> {
  std::shared_ptr<Memtable> memtable;                       // takes writes
  std::vector<std::shared_ptr<Memtable>> immutable;         // waiting for their flush, newest first
  std::shared_ptr<const Version> version;
};

}  // namespace tamis::internal
