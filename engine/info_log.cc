#include "engine/info_log.h"

#include <ctime>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

char LevelLetter(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return 'I';
    case LogLevel::kWarning:
      return 'W';
    case LogLevel::kError:
      return 'E';
  }
  return '?';
}

// Control characters are replaced, so that a key in a text can neither forge a line nor drive a terminal.
std::string FormatLine(LogLevel level, std::string_view text, const timespec& now) {
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char head[96];  // the six numbers of a tm are ints: at most 11 characters each
  const int head_bytes =
      std::snprintf(head, sizeof head, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ %c ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                    utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(now.tv_nsec / 1000), LevelLetter(level));
  std::string line(head, static_cast<size_t>(head_bytes));
  line += text.substr(0, InfoLog::kMaxLineBytes);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  line += '\n';
  return line;
}

timespec WallClock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

}  // namespace

InfoLog::InfoLog(std::shared_ptr<Directory> directory) : directory_(std::move(directory)) {
  MutexLock lock(mutex_);
  StartFile(WallClock().tv_sec);
}

InfoLog::~InfoLog() {
  if (file_ != nullptr) file_->Close().IgnoreError();
}

void InfoLog::Write(LogLevel level, std::string_view text) noexcept {
  try {
    const timespec now = WallClock();
    const std::string line = FormatLine(level, text, now);
    MutexLock lock(mutex_);
    Append(line, now.tv_sec);
  } catch (const std::exception&) {
    // No memory for a line: it is lost like one that could not be written.
  }
}

void InfoLog::Append(std::string_view line, int64_t now_seconds) {
  if (file_ == nullptr) {
    // Also when the clock was set back.
    const int64_t since = now_seconds - failed_at_seconds_;
    if (since >= 0 && since < kRetrySeconds) return;
    StartFile(now_seconds);
  } else if (file_->size() + line.size() > kMaxFileBytes) {
    file_->Close().IgnoreError();
    file_.reset();
    StartFile(now_seconds);
  }
  if (file_ == nullptr) return;
  if (file_->Append(line).ok()) {
    made_empty_ = false;
    return;
  }
  failed_at_seconds_ = now_seconds;
  file_.reset();
}

void InfoLog::StartFile(int64_t now_seconds) {
  if (made_empty_) {
    directory_->Remove(kInfoLogName).IgnoreError();
  } else {
    directory_->Rename(kInfoLogName, kOldInfoLogName).IgnoreError();  // there may be none
  }
  auto created = directory_->CreateAppend(kInfoLogName);
  if (!created.ok()) {
    failed_at_seconds_ = now_seconds;
    return;
  }
  file_ = *std::move(created);
  made_empty_ = true;
}

Logger NewInfoLogger(std::shared_ptr<Directory> directory) {
  auto log = std::make_shared<InfoLog>(std::move(directory));
  return [log](LogLevel level, std::string_view text) { log->Write(level, text); };
}

}  // namespace tamis::internal
