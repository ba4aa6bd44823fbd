#include "engine/compact/entry_retention.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tamis::internal {
namespace {
constexpr SequenceNumber kNewestState = std::numeric_limits<SequenceNumber>::max();
}

EntryRetention::EntryRetention(std::vector<SequenceNumber> snapshots, std::function<bool(std::string_view)> may_exist_below)
    : snapshots_(std::move(snapshots)), may_exist_below_(std::move(may_exist_below)) {}

bool EntryRetention::Keep(std::string_view user_key, SequenceNumber sequence, EntryKind kind) {
  SequenceNumber stripe = kNewestState;
  if (!snapshots_.empty()) {
    const auto seen_by = std::lower_bound(snapshots_.begin(), snapshots_.end(), sequence);
    if (seen_by != snapshots_.end()) stripe = *seen_by;
  }
  if (has_key_ && user_key == key_) {
    if (stripe == last_stripe_) {
      ++dropped_hidden_;
      return false;
    }
  } else {
    key_.assign(user_key);
    has_key_ = true;
  }
  last_stripe_ = stripe;

  if (kind == EntryKind::kDelete) {
    // Older entries of the key in the inputs fall into the same stripe, as it is the oldest.
    const bool oldest_stripe = snapshots_.empty() || stripe == snapshots_.front();
    if (oldest_stripe && !may_exist_below_(user_key)) {
      ++dropped_deletes_;
      return false;
    }
  }
  return true;
}

}  // namespace tamis::internal
