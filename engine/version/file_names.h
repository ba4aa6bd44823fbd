// Names of the files of a database. A name is decided here and nowhere else; a name read from disk passes only if it is exactly one of
// these forms (so that no path leaves the directory).
//
//   CURRENT                 names the manifest in use           NNNNNN.log       write-ahead log
//   LOCK                    held by the writer                  NNNNNN.table     sorted table
//   LOG, LOG.old            text of the default logger          NNNNNN.filter    rebuilt filter of a table
//   MANIFEST-NNNNNN         log of version edits                CURRENT.NNNNNN.tmp   the next CURRENT before its rename
//
// NNNNNN: decimal, at least six digits, no superfluous leading zero, from 1 to kMaxFileNumber. Numbers are never reused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tamis::internal {

enum class FileKind { kCurrent, kLock, kInfoLog, kManifest, kLog, kTable, kFilter, kTemporary };

// A quarter of 64 bits, so that no name or manifest from a stranger makes "the next number" wrap around.
inline constexpr uint64_t kMaxFileNumber = (uint64_t{1} << 62) - 1;

struct FileName {
  FileKind kind;
  uint64_t number = 0;  // 0 for CURRENT, LOCK, LOG, LOG.old
};

inline constexpr std::string_view kCurrentName = "CURRENT";
inline constexpr std::string_view kLockName = "LOCK";
inline constexpr std::string_view kInfoLogName = "LOG";
inline constexpr std::string_view kOldInfoLogName = "LOG.old";
std::string ManifestName(uint64_t number);
std::string LogName(uint64_t number);
std::string TableName(uint64_t number);
std::string FilterName(uint64_t number);
std::string TemporaryName(uint64_t number);  // CURRENT.NNNNNN.tmp
std::optional<FileName> ParseFileName(std::string_view name);

}  // namespace tamis::internal
