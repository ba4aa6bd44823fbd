// db_bench: load tests Tamis with the benchmarks, flags and output of the tool of that name that users of such stores know.
//
// Output, as that tool's scripts expect it: environment on standard error; a header on standard output, closed by 48 dashes; then for each
// benchmark a line "DB path: [...]" and a result line (fields split at blanks: 1 name, 3 microseconds an operation in a thread,
// 5 operations a second, 7 seconds, 9 operations, 11 MB/s where bytes were counted, then "(x of y found)").
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/db_bench_run.h"
#include "bench/report.h"

namespace tamis::bench {
namespace {

// "fillrandom[W1-X5]" -> name, 5 runs that count after 1 that does not.
struct Named {
  std::string name;
  uint64_t repeats = 1;
  uint64_t warmups = 0;
};

Named ParseName(const std::string& text) {
  Named named;
  named.name = text;
  const size_t bracket = text.find('[');
  if (bracket == std::string::npos || text.back() != ']') return named;
  named.name = text.substr(0, bracket);
  for (const auto& part : absl::StrSplit(text.substr(bracket + 1, text.size() - bracket - 2), '-')) {
    const std::string argument(part);
    uint64_t number = 0;
    if (argument.size() < 2 || !absl::SimpleAtoi(argument.substr(1), &number)) continue;
    if (argument[0] == 'X') named.repeats = std::max<uint64_t>(1, number);
    if (argument[0] == 'W') named.warmups = number;
  }
  return named;
}

std::string DefaultPath() {
  const char* scratch = std::getenv("TEST_TMPDIR");
  const std::string parent = scratch != nullptr ? scratch : absl::StrCat("/tmp/tamistest-", geteuid());
  mkdir(parent.c_str(), 0700);
  return parent + "/dbbench";
}

void PrintEnvironment() {
  const MachineInfo machine = ReadMachineInfo();
  const time_t now = time(nullptr);
  std::fprintf(stderr, "Tamis:      version %s commit %s\n", TAMIS_VERSION, machine.commit.empty() ? "unknown" : machine.commit.c_str());
  char date[32];
  std::fprintf(stderr, "Date:       %s", ctime_r(&now, date));
  std::fprintf(stderr, "CPU:        %d * %s\n", machine.cores, machine.cpu.c_str());
  std::fprintf(stderr, "CPUCache:   %s\n", machine.cache.c_str());
}

void PrintSummary(const std::string& name, std::vector<double> rates, std::vector<double> megabytes) {
  if (rates.size() < 2) return;
  const double n = static_cast<double>(rates.size());
  double average = 0;
  for (const double rate : rates) average += rate / n;
  double variance = 0;
  for (const double rate : rates) variance += (rate - average) * (rate - average) / (n - 1);
  double average_megabytes = 0;
  for (const double rate : megabytes) average_megabytes += rate / n;
  std::sort(rates.begin(), rates.end());
  std::sort(megabytes.begin(), megabytes.end());
  // Half the 95 % interval of the mean, as the familiar tool gives it.
  std::printf("%s [AVG    %zu runs] : %ld (\xC2\xB1 %ld) ops/sec; %6.1f MB/sec\n", name.c_str(), rates.size(), std::lround(average),
              std::lround(1.96 * std::sqrt(variance / n)), average_megabytes);
  std::printf("%s [MEDIAN %zu runs] : %ld ops/sec; %6.1f MB/sec\n", name.c_str(), rates.size(), std::lround(rates[rates.size() / 2]),
              megabytes[megabytes.size() / 2]);
}

}  // namespace

void Benchmark::PrintHeader() const {
  PrintEnvironment();
  const double num = static_cast<double>(flags_.num);
  const double raw = static_cast<double>(flags_.key_size + flags_.value_size) * num;
  const double stored = (static_cast<double>(flags_.key_size) + static_cast<double>(flags_.value_size) * flags_.compression_ratio) * num;
  std::printf("Keys:       %d bytes each (+ 0 bytes user-defined timestamp)\n", static_cast<int>(flags_.key_size));
  std::printf("Values:     %d bytes each (%d bytes after compression)\n", static_cast<int>(flags_.value_size),
              static_cast<int>(static_cast<double>(flags_.value_size) * flags_.compression_ratio + 0.5));
  std::printf("Entries:    %lld\n", static_cast<long long>(flags_.num));
  std::printf("Prefix:    0 bytes\n");
  std::printf("Keys per prefix:    0\n");
  std::printf("RawSize:    %.1f MB (estimated)\n", raw / 1048576.0);
  std::printf("FileSize:   %.1f MB (estimated)\n", stored / 1048576.0);
  std::printf("Write rate: %lld bytes/second\n", static_cast<long long>(flags_.benchmark_write_rate_limit));
  std::printf("Read rate: 0 ops/second\n");
  std::printf("Compression: %s\n", options_.table.compression == Compression::kNone ? "NoCompression" : "LZ4");
  std::printf("Compression sampling rate: 0\n");
  std::printf("Memtablerep: ArtRepFactory\n");
  std::printf("Perf Level: 1\n");
#if !defined(__OPTIMIZE__)
  std::printf("WARNING: Optimization is disabled: benchmarks unnecessarily slow\n");
#endif
#ifndef NDEBUG
  std::printf("WARNING: Assertions are enabled; benchmarks unnecessarily slow\n");
#endif
  std::printf("------------------------------------------------\n");
  std::fflush(stdout);
}

std::optional<Benchmark::Plan> Benchmark::PlanOf(const std::string& name) const {
  Plan plan;
  plan.num = static_cast<uint64_t>(flags_.num);
  plan.batch = static_cast<uint64_t>(flags_.batch_size);
  plan.key_bytes = static_cast<uint64_t>(flags_.key_size);
  plan.sync = flags_.sync;
  const auto as = [&plan](void (Benchmark::*method)(ThreadState*), bool fresh = false) {
    plan.method = method;
    plan.fresh = fresh;
    return plan;
  };
  if (name == "fillseq") return as(&Benchmark::WriteSequential, true);
  if (name == "fillrandom") return as(&Benchmark::WriteRandom, true);
  if (name == "filluniquerandom") return as(&Benchmark::WriteUniqueRandom, true);
  if (name == "fillbatch") {
    plan.batch = 1000;
    return as(&Benchmark::WriteSequential, true);
  }
  if (name == "fillsync") {
    plan.sync = true;
    plan.num = std::max<uint64_t>(1, plan.num / 1000);
    return as(&Benchmark::WriteRandom, true);
  }
  if (name == "overwrite") return as(&Benchmark::WriteRandom);
  if (name == "readrandom") return as(&Benchmark::ReadRandom);
  if (name == "readmissing") {
    ++plan.key_bytes;
    return as(&Benchmark::ReadRandom);
  }
  if (name == "multireadrandom") return as(&Benchmark::MultiReadRandom);
  if (name == "readseq") return as(&Benchmark::ReadSequential);
  if (name == "readreverse") return as(&Benchmark::ReadReverse);
  if (name == "seekrandom") return as(&Benchmark::SeekRandom);
  if (name == "readwhilewriting") {
    plan.background_writer = true;
    return as(&Benchmark::ReadWhileWriting);
  }
  if (name == "deleteseq") return as(&Benchmark::DeleteSequential);
  if (name == "deleterandom") return as(&Benchmark::DeleteRandom);
  if (name == "compact") return as(&Benchmark::Compact);
  if (name == "flush") return as(&Benchmark::FlushMemtable);
  if (name == "waitforcompaction") return as(&Benchmark::WaitForCompaction);
  if (name == "verify" || name == "verifychecksum") return as(&Benchmark::Verify);
  return std::nullopt;
}

bool Benchmark::RunInformation(const std::string& name) {
  const char* property = name == "stats"         ? "tamis.stats"
                         : name == "levelstats"  ? "tamis.levels"
                         : name == "filterstats" ? "tamis.filters"
                                                 : nullptr;
  if (property == nullptr) return false;
  std::printf("\n%s\n", db_->GetProperty(property).value_or("(none)").c_str());
  return true;
}

void Benchmark::OpenDatabase() {
  auto db = DB::Open(options_, flags_.db);
  if (!db.ok()) Die("open", db.status());
  db_ = *std::move(db);
}

void Benchmark::OpenFresh() {
  if (db_ != nullptr) {
    if (absl::Status s = db_->Close(); !s.ok()) Die("close", s);
    db_.reset();
  }
  if (absl::Status s = DestroyDB(options_, flags_.db); !s.ok()) Die("destroy", s);
  OpenDatabase();
}

ThreadStats Benchmark::RunThreads(const Plan& plan) {
  plan_ = plan;
  done_threads_ = 0;
  const size_t count = static_cast<size_t>(flags_.threads) + (plan.background_writer ? 1 : 0);
  std::vector<std::unique_ptr<ThreadState>> states;
  for (size_t i = 0; i < count; ++i) states.push_back(std::make_unique<ThreadState>(i, ++seed_, flags_));
  std::vector<std::thread> threads;
  for (auto& state : states) {
    threads.emplace_back([this, thread = state.get(), &plan] {
      thread->stats.Start();
      (this->*plan.method)(thread);
      thread->stats.Stop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const size_t first = plan.background_writer ? 1 : 0;
  ThreadStats sum = states[first]->stats;
  for (size_t i = first + 1; i < states.size(); ++i) sum.Merge(states[i]->stats);
  return sum;
}

void Benchmark::RunOne(const std::string& name, const Plan& plan, uint64_t repeats, uint64_t warmups) {
  std::vector<double> rates;
  std::vector<double> megabytes;
  for (uint64_t run = 0; run < warmups + repeats; ++run) {
    if (plan.fresh) OpenFresh();
    std::printf("DB path: [%s]\n", flags_.db.c_str());
    std::fflush(stdout);
    const ThreadStats stats = RunThreads(plan);
    if (run < warmups) continue;
    stats.Print(name);
    rates.push_back(stats.OpsPerSecond());
    megabytes.push_back(stats.MegabytesPerSecond());
  }
  PrintSummary(name, std::move(rates), std::move(megabytes));
}

void Benchmark::PrintStatistics() const {
  auto stats = db_->GetStats();
  if (!stats.ok()) Die("statistics", stats.status());
  std::printf("STATISTICS:\n");
  const auto line = [](const char* name, uint64_t value) {
    std::printf("tamis.%s COUNT : %llu\n", name, static_cast<unsigned long long>(value));
  };
  line("puts", stats->puts);
  line("deletes", stats->deletes);
  line("gets", stats->gets);
  line("gets.found", stats->gets_found);
  line("files.considered", stats->files_considered);
  line("files.skipped.by.filter", stats->files_skipped);
  line("blocks.read", stats->blocks_read);
  line("user.bytes.written", stats->user_bytes_written);
  line("log.bytes.written", stats->log_bytes_written);
  line("flush.bytes.written", stats->flush_bytes_written);
  line("compaction.bytes.read", stats->compaction_bytes_read);
  line("compaction.bytes.written", stats->compaction_bytes_written);
  line("flushes", stats->flushes);
  line("compactions", stats->compactions);
  line("trivial.moves", stats->trivial_moves);
  line("stall.slowdowns", stats->stalls.slowdowns);
  line("stall.stops", stats->stalls.stops);
  line("stall.micros", stats->stalls.micros);
  line("block.cache.bytes", stats->block_cache_bytes);
  line("filter.bytes", stats->filter_bytes);
  line("index.bytes", stats->index_bytes);
  for (const LevelStats& level : stats->levels) {
    if (level.probes == 0) continue;
    std::printf("tamis.level%u.filter probes : %llu skipped : %llu true : %llu false : %llu predicted : %.6f observed : %.6f\n",
                level.level, static_cast<unsigned long long>(level.probes), static_cast<unsigned long long>(level.skipped),
                static_cast<unsigned long long>(level.true_positives), static_cast<unsigned long long>(level.false_positives),
                level.predicted_fpr, level.observed_fpr);
  }
}

void Benchmark::Run() {
  std::vector<Named> names;
  for (const auto& part : absl::StrSplit(flags_.benchmarks, ',', absl::SkipEmpty())) names.push_back(ParseName(std::string(part)));
  for (const Named& named : names) {
    const bool information = named.name == "stats" || named.name == "levelstats" || named.name == "filterstats";
    if (!information && !PlanOf(named.name)) {
      std::fprintf(stderr, "unknown benchmark '%s'\n", named.name.c_str());
      std::exit(1);
    }
  }
  seed_ = flags_.seed == 0 ? NowMicros() : static_cast<uint64_t>(flags_.seed);
  if (flags_.seed == 0) std::fprintf(stderr, "Set seed to %llu because --seed was 0\n", static_cast<unsigned long long>(seed_));
  // Seeds of threads count up from here; far apart for neighbouring --seed.
  seed_ = Mix(seed_);
  if (flags_.use_existing_db || flags_.readonly) {
    OpenDatabase();
  } else {
    OpenFresh();
  }
  PrintHeader();
  for (const Named& named : names) {
    if (RunInformation(named.name)) continue;
    const Plan plan = *PlanOf(named.name);
    if (plan.fresh && flags_.use_existing_db) {
      std::printf("%-12s : skipped (--use_existing_db is true)\n", named.name.c_str());
      continue;
    }
    RunOne(named.name, plan, named.repeats, named.warmups);
  }
  if (flags_.statistics) PrintStatistics();
  if (absl::Status s = db_->Close(); !s.ok()) Die("close", s);
}

}  // namespace tamis::bench

int main(int argc, char** argv) {
  using namespace tamis::bench;  // NOLINT(google-build-using-namespace)
  std::vector<std::string> warnings;
  auto flags = ParseFlags(argc, argv, &warnings);
  if (!flags.ok()) {
    std::fprintf(stderr, "db_bench: %s\n", std::string(flags.status().message()).c_str());
    return 1;
  }
  if (flags->help) {
    std::printf("db_bench: load tests Tamis\n\n%s", FlagsHelp().c_str());
    return 0;
  }
  if (flags->version) {
    std::printf("db_bench version %s\n", TAMIS_VERSION);
    return 0;
  }
  if (flags->db.empty()) flags->db = DefaultPath();
  const tamis::Options options = EngineOptions(*flags, &warnings);
  for (const std::string& warning : warnings) std::fprintf(stderr, "db_bench: warning: %s\n", warning.c_str());
  Benchmark(*flags, options).Run();
  return 0;
}
