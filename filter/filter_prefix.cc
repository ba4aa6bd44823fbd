#include "tamis/filter_prefix.h"

namespace tamis {
namespace {

// `prefix` without the 0xff bytes at its end: what PrefixSuccessor raises.
std::string_view WithoutTrailingMax(std::string_view prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.remove_suffix(1);
  return prefix;
}

bool IsSuccessor(std::string_view upper, std::string_view prefix) {
  const std::string_view raised = WithoutTrailingMax(prefix);
  if (raised.empty() || upper.size() != raised.size()) return false;
  const size_t last = raised.size() - 1;
  return upper.substr(0, last) == raised.substr(0, last) &&
         static_cast<unsigned char>(upper[last]) == static_cast<unsigned char>(raised[last]) + 1;
}

}  // namespace

bool IsValidPrefixRule(FilterPrefixRule rule) {
  switch (rule.kind) {
    case FilterPrefixKind::kNone:
      return rule.argument == 0;
    case FilterPrefixKind::kFixedLength:
      return rule.argument != 0;
    case FilterPrefixKind::kDelimiter:
      return rule.argument <= 0xff;
  }
  return false;
}

std::optional<std::string_view> PrefixOf(FilterPrefixRule rule, std::string_view key) {
  if (!IsValidPrefixRule(rule)) return std::nullopt;
  switch (rule.kind) {
    case FilterPrefixKind::kNone:
      return std::nullopt;
    case FilterPrefixKind::kFixedLength:
      if (key.size() < rule.argument) return std::nullopt;
      return key.substr(0, rule.argument);
    case FilterPrefixKind::kDelimiter: {
      const size_t at = key.find(static_cast<char>(rule.argument));
      if (at == std::string_view::npos) return std::nullopt;
      return key.substr(0, at + 1);
    }
  }
  return std::nullopt;
}

bool SamePrefix(FilterPrefixRule rule, std::string_view lower, std::string_view upper, std::string_view* prefix) {
  // `lower` is in the range, so its prefix p is the one. Under each rule the keys of prefix p are all that begin with p, and those are the
  // keys from p to its successor s (without end if p is 0xff only). s itself has another prefix or none. So what is asked is upper <= s;
  // and as upper > lower >= p, that means that upper begins with p or is s.
  if (!(lower < upper)) return false;
  const std::optional<std::string_view> p = PrefixOf(rule, lower);
  if (!p) return false;
  if (upper.substr(0, p->size()) != *p && !IsSuccessor(upper, *p)) return false;
  *prefix = *p;
  return true;
}

std::optional<std::string> PrefixSuccessor(std::string_view prefix) {
  const std::string_view raised = WithoutTrailingMax(prefix);
  if (raised.empty()) return std::nullopt;
  std::string successor(raised);
  successor.back() = static_cast<char>(static_cast<unsigned char>(successor.back()) + 1);
  return successor;
}

}  // namespace tamis
