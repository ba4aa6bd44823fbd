#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

constexpr std::string_view kManifestPrefix = "MANIFEST-";
constexpr std::string_view kTemporaryPrefix = "CURRENT.";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::string_view kLogSuffix = ".log";
constexpr std::string_view kTableSuffix = ".table";
constexpr std::string_view kFilterSuffix = ".filter";
constexpr size_t kMinDigits = 6;

std::string Numbered(std::string_view prefix, uint64_t number, std::string_view suffix) {
  const std::string digits = std::to_string(number);
  std::string name(prefix);
  if (digits.size() < kMinDigits) name.append(kMinDigits - digits.size(), '0');
  name += digits;
  name += suffix;
  return name;
}

// The number that `digits` spells, or 0 if it is not the one spelling that Numbered gives.
uint64_t ParseNumber(std::string_view digits) {
  if (digits.size() < kMinDigits || (digits.size() > kMinDigits && digits[0] == '0')) return 0;
  uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return 0;
    const uint64_t digit = static_cast<uint64_t>(c - '0');
    if (number > (kMaxFileNumber - digit) / 10) return 0;
    number = number * 10 + digit;
  }
  return number;
}

std::optional<FileName> ParseNumbered(FileKind kind, std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (name.size() < prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const uint64_t number = ParseNumber(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
  if (number == 0) return std::nullopt;
  return FileName{kind, number};
}

}  // namespace

std::string ManifestName(uint64_t number) { return Numbered(kManifestPrefix, number, ""); }
std::string LogName(uint64_t number) { return Numbered("", number, kLogSuffix); }
std::string TableName(uint64_t number) { return Numbered("", number, kTableSuffix); }
std::string FilterName(uint64_t number) { return Numbered("", number, kFilterSuffix); }
std::string TemporaryName(uint64_t number) { return Numbered(kTemporaryPrefix, number, kTemporarySuffix); }

std::optional<FileName> ParseFileName(std::string_view name) {
  if (name == kCurrentName) return FileName{FileKind::kCurrent};
  if (name == kLockName) return FileName{FileKind::kLock};
  if (name == kInfoLogName || name == kOldInfoLogName) return FileName{FileKind::kInfoLog};
  if (auto parsed = ParseNumbered(FileKind::kManifest, name, kManifestPrefix, "")) return parsed;
  if (auto parsed = ParseNumbered(FileKind::kTemporary, name, kTemporaryPrefix, kTemporarySuffix)) return parsed;
  if (auto parsed = ParseNumbered(FileKind::kLog, name, "", kLogSuffix)) return parsed;
  if (auto parsed = ParseNumbered(FileKind::kTable, name, "", kTableSuffix)) return parsed;
  return ParseNumbered(FileKind::kFilter, name, "", kFilterSuffix);
}

}  // namespace tamis::internal
