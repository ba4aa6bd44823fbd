// The default logger: lines of text in LOG, for people. Nothing ever reads it back.
//
// At most 2 x 1 MiB: LOG is renamed to LOG.old when the next line would take it past 1 MiB, and at every open. A line:
//   2026-01-31T12:34:56.123456Z I text        (UTC; I, W or E)
// A failure to log never fails the database: the line is lost, and after kRetrySeconds a fresh LOG is tried.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/mutex.h"
#include "tamis/file_system.h"
#include "tamis/options.h"

namespace tamis::internal {

// Thread-safe.
class InfoLog {
 public:
  static constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;
  static constexpr uint64_t kMaxLineBytes = 64 * 1024;  // a longer text is cut
  static constexpr int64_t kRetrySeconds = 60;

  // REQUIRES: the caller holds the writer's lock of the directory.
  explicit InfoLog(std::shared_ptr<Directory> directory);
  ~InfoLog();
  InfoLog(const InfoLog&) = delete;
  InfoLog& operator=(const InfoLog&) = delete;

  void Write(LogLevel level, std::string_view text) noexcept;

 private:
  void Append(std::string_view line, int64_t now_seconds) TAMIS_REQUIRES(mutex_);
  // Moves LOG out of the way and starts a new one; file_ stays null if that fails.
  void StartFile(int64_t now_seconds) TAMIS_REQUIRES(mutex_);

  const std::shared_ptr<Directory> directory_;
  Mutex mutex_;
  std::unique_ptr<AppendFile> file_ TAMIS_GUARDED_BY(mutex_);
  int64_t failed_at_seconds_ TAMIS_GUARDED_BY(mutex_) = 0;  // of the last failure; used while file_ is null
  bool made_empty_ TAMIS_GUARDED_BY(mutex_) = false;        // the last LOG made here took no line: not worth LOG.old
};

// A Logger that writes to a LOG in `directory` and keeps it open as long as a copy of the logger lives.
Logger NewInfoLogger(std::shared_ptr<Directory> directory);

}  // namespace tamis::internal
