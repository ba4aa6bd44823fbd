// Which entries a flush or compaction must keep: a pure decision, entry by entry in internal-key order.
//
// Invariants.
//   R1  For every snapshot (and the newest state) the newest entry at or below it of each user key is kept, unless R3 drops it.
//   R2  An entry that no snapshot sees, because a newer entry of the same key is at or below every snapshot that could see it, is
//       dropped.
//   R3  A delete is dropped if the oldest snapshot (or, without one, the newest state) is at or above it and no older entry of its key
//       can exist below the output level; what it hides in the same inputs is dropped by R2.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "table/internal_key.h"

namespace tamis::internal {

class EntryRetention {
 public:
  // `snapshots`: ascending; the newest visible state need not be in it. `may_exist_below(key)`: whether a level deeper than the output
  // may hold an entry of the user key; asked only for deletes, with keys ascending.
  EntryRetention(std::vector<SequenceNumber> snapshots, std::function<bool(std::string_view)> may_exist_below);

  // The next entry in internal-key order. True: keep it.
  bool Keep(std::string_view user_key, SequenceNumber sequence, EntryKind kind);

  uint64_t dropped_hidden() const { return dropped_hidden_; }    // by R2
  uint64_t dropped_deletes() const { return dropped_deletes_; }  // by R3

 private:
  std::vector<SequenceNumber> snapshots_;
  std::function<bool(std::string_view)> may_exist_below_;
  std::string key_;
  bool has_key_ = false;
  SequenceNumber last_stripe_ = 0;  // of the last entry of key_: the smallest snapshot that sees it
  uint64_t dropped_hidden_ = 0;
  uint64_t dropped_deletes_ = 0;
};

}  // namespace tamis::internal
