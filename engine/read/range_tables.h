// Which tables an iterator over a range of keys has to look at: those whose own range reaches into it, less those whose prefix filter
// denies it.
//
// A table with its smallest or largest key inside the range holds a key of it, and its filter need not be asked. What is left are tables
// that stretch over the whole range; of the tables of a level below L0 (disjoint, V1) that is at most one, and then no other of that level
// reaches into the range. So a level costs one probe at most, and is left out as a whole or not at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "engine/read/lookup_counters.h"
#include "engine/version/version.h"

namespace tamis::internal {

// For one iterator. Not thread-safe; the bounds' bytes and `stripe` outlive it.
class RangeTables {
 public:
  // Keys >= lower and < upper; without one of them prefix filters are not asked, as with `use_filters` false.
  RangeTables(std::optional<std::string_view> lower, std::optional<std::string_view> upper, bool use_filters,
              LookupCounters::Stripe* stripe)
      : lower_(lower), upper_(upper), use_filters_(use_filters), stripe_(stripe) {}

  // Any level: false if table `i` holds no key of the range. Opens a table to ask its filter; one that cannot be opened is true: the error
  // is for the cursor that reads it.
  bool MayHold(const LevelFiles& files, size_t i) const;
  // A V1 level: false if no table of it holds a key of the range.
  bool RunMayHold(const LevelFiles& files) const;

 private:
  const std::optional<std::string_view> lower_;
  const std::optional<std::string_view> upper_;
  const bool use_filters_;
  LookupCounters::Stripe* const stripe_;
};

}  // namespace tamis::internal
