#include "tools/prefix_rule.h"

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tamis/filter_prefix.h"
#include "tools/bytes_text.h"

namespace tamis::tools {
namespace {

constexpr std::string_view kFixed = "fixed:";
constexpr std::string_view kDelimiter = "delimiter:";

}  // namespace

absl::StatusOr<std::optional<FilterPrefixRule>> ParsePrefixRule(const std::string& text) {
  if (text.empty()) return std::optional<FilterPrefixRule>();
  FilterPrefixRule rule;
  if (uint32_t length = 0; text.starts_with(kFixed) && absl::SimpleAtoi(text.substr(kFixed.size()), &length) && length <= UINT16_MAX) {
    rule = {FilterPrefixKind::kFixedLength, static_cast<uint16_t>(length)};
  } else if (text.starts_with(kDelimiter)) {
    const absl::StatusOr<std::string> byte = UnescapeBytes(std::string_view(text).substr(kDelimiter.size()));
    if (byte.ok() && byte->size() == 1) rule = {FilterPrefixKind::kDelimiter, static_cast<unsigned char>((*byte)[0])};
  }
  if (rule.kind == FilterPrefixKind::kNone || !IsValidPrefixRule(rule)) {
    return absl::InvalidArgumentError(absl::StrCat("--prefix-rule: '", text, "' is neither fixed:LENGTH, 1 to 65535, nor delimiter:BYTE"));
  }
  return std::optional<FilterPrefixRule>(rule);
}

std::string PrefixRuleText(FilterPrefixRule rule) {
  switch (rule.kind) {
    case FilterPrefixKind::kNone:
      break;
    case FilterPrefixKind::kFixedLength:
      return absl::StrCat("fixed:", rule.argument);
    case FilterPrefixKind::kDelimiter:
      return absl::StrCat("delimiter:", EscapeBytes(std::string(1, static_cast<char>(rule.argument))));
  }
  return "none";
}

void AddPrefixRule(CLI::App* command, std::string* rule) {
  command->add_option("--prefix-rule", *rule,
                      "Tables written now get a prefix filter, which scan --prefix asks: fixed:LENGTH or delimiter:BYTE");
}

}  // namespace tamis::tools
