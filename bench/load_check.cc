// load_check: loads many random keys, checks every one, overwrites as many at random, and holds what that took against bars.
//
//   load       16-byte random keys, 100-byte values, into Tamis with its default settings and into RocksDB (if compiled in) with the same
//              memory, filters and threads; each in a process of its own, so that the kernel counts its written bytes alone
//   check      every key has its value, half as many absent ones are not found
//   overwrite  as many writes to keys drawn at random; seconds until no compaction is due; size of the directory, logs included, against
//              its size after a full compaction; then every key is checked again
//   memory     anonymous memory of the process (RssAnon) against what the stats account for, sampled all the time
//
// One table of figures, bars and verdicts; the exit code is 1 if one is missed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "bench/peers_engine.h"
#include "bench/report.h"
#include "bench/workload.h"
#include "tamis/db.h"

namespace tamis::bench {
namespace {

constexpr size_t kValueBytes = 100;
constexpr double kMiB = 1 << 20;
constexpr double kSettleBarSeconds = 600;
constexpr double kDirectoryBar = 1.25;
constexpr double kMemoryAllowanceBytes = 64 * kMiB;
constexpr uint64_t kSamples = 50;  // of the memory, in each phase

struct Settings {
  uint64_t num = 20000000;
  std::string directory;
};

[[noreturn]] void Die(const char* what, const std::string& why) {
  std::fprintf(stderr, "load_check: %s: %s\n", what, why.c_str());
  std::exit(1);
}

void Check(const absl::Status& status, const char* what) {
  if (!status.ok()) Die(what, status.ToString());
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The value of a key before (generation 0) and after (1) its overwriting; half of it compresses away.
std::string_view ValueOf(uint64_t index, uint64_t generation, char* buffer) {
  uint64_t state = Mix(2 * index + generation);
  for (size_t at = 0; at < kValueBytes / 2; at += sizeof state, state = Mix(state)) std::memcpy(buffer + at, &state, sizeof state);
  std::memset(buffer + kValueBytes / 2, 'v', kValueBytes - kValueBytes / 2);
  return {buffer, kValueBytes};
}
constexpr size_t kValueBuffer = kValueBytes + sizeof(uint64_t);

// The number behind `name` in a file of /proc.
uint64_t ProcNumber(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) == 0) return std::strtoull(line.c_str() + name.size(), nullptr, 10);
  }
  return 0;
}
// Pages dirtied, also those of files that were deleted before they reached the disk: which of them do is up to the kernel's timer.
uint64_t WriteBytes() { return ProcNumber("/proc/self/io", "write_bytes:"); }
uint64_t AnonymousBytes() { return ProcNumber("/proc/self/status", "RssAnon:") << 10; }

// ---- What a child finds; handed back in shared memory --------------------------------------------------------------------------------

struct Findings {
  double load_seconds = 0;  // with settling
  uint64_t load_bytes = 0;
  uint64_t found = 0;  // with their values
  uint64_t absent_found = 0;
  double overwrite_seconds = 0;
  double settle_seconds = 0;
  uint64_t settled_bytes = 0;
  uint64_t compacted_bytes = 0;
  uint64_t found_after = 0;
  // Where RssAnon was farthest above (or least below) what is accounted for.
  double anonymous_excess = -1e18;
  uint64_t anonymous = 0;
  uint64_t accounted = 0;
};

void RunInChild(const char* name, Findings* findings, const std::function<void(Findings*)>& run) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) Die("fork", std::strerror(errno));
  if (child == 0) {
    run(findings);
    std::fflush(nullptr);
    _exit(0);  // the scratch folder is the parent's
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) Die(name, "its process failed");
}

// ---- Tamis --------------------------------------------------------------------------------------------------------------------------

class TamisRun {
 public:
  TamisRun(const Settings& settings, Findings* findings) : num_(settings.num), path_(settings.directory + "/tamis"), findings_(findings) {}

  void Run() {
    auto db = DB::Open(Options(), path_);
    Check(db.status(), "Open");
    db_ = *std::move(db);
    Load();
    findings_->found = CountRight();
    CountAbsent();
    Overwrite();
    findings_->found_after = CountRight();
    Check(db_->Close(), "Close");
  }

 private:
  void Say(const char* what) {
    std::printf("tamis: %s\n", what);
    std::fflush(stdout);
  }
  void Put(uint64_t index, uint64_t generation) {
    char key[kHashedKeyBytes], value[kValueBuffer];
    HashedKey(index, key);
    Check(db_->Put({key, sizeof key}, ValueOf(index, generation, value)), "Put");
  }
  // Called with each step of a phase of num_ steps.
  void Sample(uint64_t step) {
    if (step % std::max<uint64_t>(1, num_ / kSamples) != 0) return;
    const uint64_t anonymous = AnonymousBytes();
    const auto stats = db_->GetStats();
    Check(stats.status(), "GetStats");
    const uint64_t accounted = stats->memtable_bytes + stats->block_cache_bytes + stats->filter_bytes + stats->index_bytes;
    const double excess = static_cast<double>(anonymous) - static_cast<double>(accounted);
    if (excess <= findings_->anonymous_excess) return;
    findings_->anonymous_excess = excess;
    findings_->anonymous = anonymous;
    findings_->accounted = accounted;
  }

  void Load() {
    Say("loading");
    const uint64_t before = WriteBytes();
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < num_; ++i) {
      Put(i, 0);
      Sample(i);
    }
    Check(db_->Flush(), "Flush");
    Check(db_->WaitForBackgroundWork(), "WaitForBackgroundWork");
    findings_->load_seconds = SecondsSince(begin);
    findings_->load_bytes = WriteBytes() - before;
    Sample(0);
  }

  // Keys that are found with the newest value.
  uint64_t CountRight() {
    Say("reading every key");
    uint64_t right = 0;
    PinnedValue value;
    for (uint64_t i = 0; i < num_; ++i) {
      char key[kHashedKeyBytes], expected[kValueBuffer];
      HashedKey(i, key);
      const absl::Status status = db_->Get({}, {key, sizeof key}, &value);
      if (!absl::IsNotFound(status)) Check(status, "Get");
      const uint64_t generation = !overwritten_.empty() && overwritten_[i] ? 1 : 0;
      right += status.ok() && value.view() == ValueOf(i, generation, expected) ? 1 : 0;
      Sample(i);
    }
    return right;
  }

  void CountAbsent() {
    Say("reading absent keys");
    std::string value;
    for (uint64_t i = num_; i < num_ + num_ / 2; ++i) {
      char key[kHashedKeyBytes];
      HashedKey(i, key);
      const absl::Status status = db_->Get(std::string_view(key, sizeof key), &value);
      if (!absl::IsNotFound(status)) Check(status, "Get");
      findings_->absent_found += status.ok() ? 1 : 0;
    }
  }

  void Overwrite() {
    Say("overwriting");
    overwritten_.resize(num_);
    Random random(1);
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < num_; ++i) {
      const uint64_t index = random.Uniform(num_);
      Put(index, 1);
      overwritten_[index] = true;
      Sample(i);
    }
    findings_->overwrite_seconds = SecondsSince(begin);
    Check(db_->WaitForBackgroundWork(), "WaitForBackgroundWork");
    findings_->settle_seconds = SecondsSince(begin);
    Sample(0);
    findings_->settled_bytes = DirectoryBytes(path_);
    Say("compacting everything");
    Check(db_->CompactRange(std::nullopt, std::nullopt), "CompactRange");
    Check(db_->WaitForBackgroundWork(), "WaitForBackgroundWork");
    findings_->compacted_bytes = DirectoryBytes(path_);
  }

  const uint64_t num_;
  const std::string path_;
  Findings* const findings_;
  std::unique_ptr<DB> db_;
  std::vector<bool> overwritten_;
};

// ---- RocksDB ------------------------------------------------------------------------------------------------------------------------

#ifdef TAMIS_HAVE_ROCKSDB
void RunRocksDb(const Settings& settings, Findings* findings) {
  std::printf("rocksdb: loading\n");
  std::fflush(stdout);
  PeerSettings peer;
  peer.path = settings.directory + "/rocksdb";
  peer.keys = settings.num;
  peer.memtable_bytes = Options().memtable_bytes;
  peer.cache_bytes = Options().block_cache_bytes;
  peer.bits_per_key = Options().filter.bits_per_key;
  peer.background_jobs = static_cast<int>(Options().background_threads);
  const std::unique_ptr<PeerEngine> engine = MakeRocksDb();
  engine->Open(peer);
  const uint64_t before = WriteBytes();
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < settings.num; ++i) {
    char key[kHashedKeyBytes], value[kValueBuffer];
    HashedKey(i, key);
    engine->Put({key, sizeof key}, ValueOf(i, 0, value));
  }
  engine->Settle();
  findings->load_seconds = SecondsSince(begin);
  findings->load_bytes = WriteBytes() - before;
  engine->Close();
}
#endif

// ---- The table ----------------------------------------------------------------------------------------------------------------------

class Table {
 public:
  Table() { std::printf("\n%-44s %16s %16s  %s\n", "", "figure", "bar", "verdict"); }
  void Row(const char* what, const std::string& figure, const std::string& bar, bool met) {
    std::printf("%-44s %16s %16s  %s\n", what, figure.c_str(), bar.c_str(), met ? "ok" : "MISSED");
    all_met_ = all_met_ && met;
  }
  void Row(const char* what, const std::string& figure) { std::printf("%-44s %16s\n", what, figure.c_str()); }
  bool all_met() const { return all_met_; }

 private:
  bool all_met_ = true;
};

std::string InMiB(double bytes) { return absl::StrFormat("%.1f MiB", bytes / kMiB); }

bool PrintFindings(const Settings& settings, const Findings& tamis, const Findings* rocksdb) {
  const std::string all = absl::StrFormat("= %d", settings.num);
  Table table;
  table.Row("keys found with their value", absl::StrFormat("%d", tamis.found), all, tamis.found == settings.num);
  table.Row("of half as many absent keys found", absl::StrFormat("%d", tamis.absent_found), "= 0", tamis.absent_found == 0);
  const double written = static_cast<double>(tamis.load_bytes);
  if (rocksdb != nullptr) {
    const double bar = static_cast<double>(rocksdb->load_bytes);
    table.Row("written to load and settle; bar: RocksDB", InMiB(written), "<= " + InMiB(bar), written <= bar);
    table.Row("  ratio to RocksDB", absl::StrFormat("%.2f", written / std::max(1.0, bar)));
    table.Row("  seconds, Tamis / RocksDB", absl::StrFormat("%.1f / %.1f", tamis.load_seconds, rocksdb->load_seconds));
  } else {
    table.Row("written to load and settle (no RocksDB here)", InMiB(written));
    table.Row("  seconds", absl::StrFormat("%.1f", tamis.load_seconds));
  }
  table.Row("as many overwrites and settling", absl::StrFormat("%.1f s", tamis.settle_seconds),
            absl::StrFormat("<= %.0f s", kSettleBarSeconds), tamis.settle_seconds <= kSettleBarSeconds);
  table.Row("  of it settling", absl::StrFormat("%.1f s", tamis.settle_seconds - tamis.overwrite_seconds));
  const double ratio = static_cast<double>(tamis.settled_bytes) / std::max(1.0, static_cast<double>(tamis.compacted_bytes));
  table.Row("directory settled / fully compacted", absl::StrFormat("%.3f", ratio), absl::StrFormat("<= %.2f", kDirectoryBar),
            ratio <= kDirectoryBar);
  table.Row("  settled", InMiB(static_cast<double>(tamis.settled_bytes)));
  table.Row("  fully compacted", InMiB(static_cast<double>(tamis.compacted_bytes)));
  table.Row("keys found with their value after it", absl::StrFormat("%d", tamis.found_after), all, tamis.found_after == settings.num);
  table.Row("RssAnon; bar: accounted + 64 MiB", InMiB(static_cast<double>(tamis.anonymous)),
            "<= " + InMiB(static_cast<double>(tamis.accounted) + kMemoryAllowanceBytes), tamis.anonymous_excess <= kMemoryAllowanceBytes);
  return table.all_met();
}

constexpr char kUsage[] =
    "load_check: loads, checks, overwrites, and holds bytes, seconds and memory against bars\n\n"
    "  --num=N     keys (20000000)\n"
    "  --dir=PATH  where the databases go, made and removed (a folder in /tmp)\n";

bool ParseFlag(std::string_view argument, Settings* settings) {
  const auto value_of = [&](std::string_view name) {
    return argument.substr(0, name.size()) == name ? argument.substr(name.size()) : std::string_view();
  };
  if (const std::string_view num = value_of("--num="); !num.empty()) {
    return absl::SimpleAtoi(absl::string_view(num.data(), num.size()), &settings->num) && settings->num > 0;
  }
  settings->directory = std::string(value_of("--dir="));
  return !settings->directory.empty();
}

int Main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const bool help = std::string_view(argv[i]) == "--help";
    if (!help && ParseFlag(argv[i], &settings)) continue;
    std::fputs(kUsage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  settings.directory = MakeScratchFolder(settings.directory, "load-check");
  std::printf("%s\n%d keys of %d bytes, values of %d bytes\n", MachineLine(ReadMachineInfo()).c_str(), static_cast<int>(settings.num),
              static_cast<int>(kHashedKeyBytes), static_cast<int>(kValueBytes));
  void* const memory = mmap(nullptr, 2 * sizeof(Findings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("mmap", std::strerror(errno));
  auto* const findings = static_cast<Findings*>(memory);
  std::uninitialized_default_construct_n(findings, 2);
  RunInChild("tamis", &findings[0], [&](Findings* mine) { TamisRun(settings, mine).Run(); });
  const Findings* rocksdb = nullptr;
#ifdef TAMIS_HAVE_ROCKSDB
  RunInChild("rocksdb", &findings[1], [&](Findings* mine) { RunRocksDb(settings, mine); });
  rocksdb = &findings[1];
#endif
  return PrintFindings(settings, findings[0], rocksdb) ? 0 : 1;
}

}  // namespace
}  // namespace tamis::bench

int main(int argc, char** argv) { return tamis::bench::Main(argc, argv); }
