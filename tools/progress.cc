#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tamis::tools {
namespace {

constexpr std::chrono::milliseconds kBarInterval(100);
constexpr std::chrono::seconds kLineInterval(10);
constexpr int kBarWidth = 40;

// "1 min 20 s left", once there is something to judge by; otherwise nothing.
std::string Remaining(std::chrono::steady_clock::duration spent, uint64_t done, uint64_t total) {
  if (done == 0 || done > total || spent < std::chrono::seconds(2)) return "";
  const double seconds = std::chrono::duration<double>(spent).count() * static_cast<double>(total - done) / static_cast<double>(done);
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  return whole < 60 ? absl::StrCat(", ", whole, " s left") : absl::StrCat(", ", whole / 60, " min ", whole % 60, " s left");
}

double Share(uint64_t done, uint64_t total) { return std::min(1.0, static_cast<double>(done) / static_cast<double>(total)); }

}  // namespace

ProgressReport::ProgressReport(std::string label, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

ProgressReport::~ProgressReport() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressReport::Update(uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? std::chrono::nanoseconds(kBarInterval) : std::chrono::nanoseconds(kLineInterval))) return;
  last_ = now;
  if (terminal_) {
    DrawBar(done, total);
  } else {
    PrintLine(done, total);
  }
}

std::string ProgressReport::Amount(uint64_t count) const {
  if (unit_ == "bytes") return absl::StrFormat("%.1f MiB", static_cast<double>(count) / (1 << 20));
  return absl::StrCat(count, " ", unit_);
}

void ProgressReport::DrawBar(uint64_t done, uint64_t total) {
  drawn_ = true;
  if (total == 0) {
    absl::FPrintF(stderr, "\r\033[K%s %s", label_, Amount(done));
  } else {
    const int filled = static_cast<int>(Share(done, total) * kBarWidth);
    absl::FPrintF(stderr, "\r\033[K%s [%s%s] %3.0f %%%s", label_, std::string(static_cast<size_t>(filled), '='),
                  std::string(static_cast<size_t>(kBarWidth - filled), ' '), 100 * Share(done, total),
                  Remaining(last_ - begin_, done, total));
  }
  std::fflush(stderr);
}

void ProgressReport::PrintLine(uint64_t done, uint64_t total) const {
  if (total == 0) {
    absl::FPrintF(stderr, "%s: %s\n", label_, Amount(done));
  } else {
    absl::FPrintF(stderr, "%s: %s of %s (%.0f %%)%s\n", label_, Amount(done), Amount(total), 100 * Share(done, total),
                  Remaining(last_ - begin_, done, total));
  }
}

}  // namespace tamis::tools
