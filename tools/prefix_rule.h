// The rule of prefix filters as text: "fixed:8", "delimiter:/".
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include "absl/status/statusor.h"
#include "tamis/filter.h"

namespace tamis::tools {

// Nothing for an empty text; InvalidArgument for one that is no rule. The delimiter is one byte in the text form of bytes (bytes_text.h).
absl::StatusOr<std::optional<FilterPrefixRule>> ParsePrefixRule(const std::string& text);
std::string PrefixRuleText(FilterPrefixRule rule);

// Adds --prefix-rule.
void AddPrefixRule(CLI::App* command, std::string* rule);

}  // namespace tamis::tools
