#include "engine/read/range_tables.h"

namespace tamis::internal {

bool RangeTables::MayHold(const LevelFiles& files, size_t i) const {
  const std::string_view smallest = files.file(i)->meta().smallest;
  const std::string_view largest = files.file(i)->meta().largest;
  if ((lower_ && largest < *lower_) || (upper_ && smallest >= *upper_)) return false;
  if (!lower_ || !upper_ || !use_filters_) return true;
  if (smallest >= *lower_ || largest < *upper_) return true;  // a key inside
  const absl::StatusOr<const TableReader*> reader = files.Reader(i);
  if (!reader.ok()) return true;
  const PrefixAnswer answer = (*reader)->AskPrefixFilter(*lower_, *upper_);
  if (answer == PrefixAnswer::kNotAsked) return true;
  stripe_->Add(LookupCounters::kPrefixProbes);
  if (answer == PrefixAnswer::kMaybe) return true;
  stripe_->Add(LookupCounters::kPrefixSkips);
  return false;
}

bool RangeTables::RunMayHold(const LevelFiles& files) const {
  const size_t first = lower_ ? files.LowerBound(*lower_) : 0;
  return first < files.size() && MayHold(files, first);
}

}  // namespace tamis::internal
