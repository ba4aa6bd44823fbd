// What Options::block_cache points to.
#pragma once

#include <memory>

#include "table/block_cache.h"
#include "tamis/options.h"

namespace tamis {

class SharedBlockCache {
 public:
  explicit SharedBlockCache(uint64_t capacity_bytes) : cache(std::make_shared<internal::BlockCache>(capacity_bytes)) {}
  const std::shared_ptr<internal::BlockCache> cache;
};

}  // namespace tamis
