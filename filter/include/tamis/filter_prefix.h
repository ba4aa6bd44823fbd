// Filters over prefixes: which part of a key is hashed, and when one prefix answers for a whole range.
//
// A filter with a prefix rule holds the hash of the prefix of every key that has one; a key without a prefix is not in it. So a range may
// be skipped on the filter's word only if every key that could be in it has the same prefix: SamePrefix.
//
// Keys are byte strings in bytewise order, of any length. All functions are pure and thread-safe, and allocate nothing unless said.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tamis/filter.h"

namespace tamis {

// Whether the argument is possible for the kind, and the kind known.
bool IsValidPrefixRule(FilterPrefixRule rule);

// The prefix of `key` under the rule, a part of `key`; nothing if it has none: shorter than the fixed length, without the delimiter, or
// under kNone or an invalid rule.
std::optional<std::string_view> PrefixOf(FilterPrefixRule rule, std::string_view key);

// True if each key of [lower, upper), of all that there can be, has the same prefix; `prefix` is then that prefix, a part of `lower`.
// False, `prefix` untouched, if some key has another or none, or if the range is empty (lower >= upper). Exact, not conservative.
bool SamePrefix(FilterPrefixRule rule, std::string_view lower, std::string_view upper, std::string_view* prefix);

// The least string above all that begin with `prefix`: 0xff bytes dropped from the end, the last byte then raised by one. Nothing if there
// is none (empty, or 0xff only): then the range has no upper bound. Allocates the result.
std::optional<std::string> PrefixSuccessor(std::string_view prefix);

}  // namespace tamis
