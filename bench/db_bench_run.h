// One run of db_bench: opens, runs the named benchmarks in order, each on its threads, prints.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/db_bench_flags.h"
#include "bench/db_bench_stats.h"
#include "bench/workload.h"
#include "tamis/db.h"

namespace tamis::bench {

// Of one thread in one benchmark.
struct ThreadState {
  ThreadState(uint64_t thread_id, uint64_t seed, const Flags& flags)
      : id(thread_id), random(seed), values(flags.compression_ratio, static_cast<size_t>(flags.value_size), seed), stats(flags.histogram) {}
  const uint64_t id;
  Random random;
  ValueSource values;
  ThreadStats stats;
};

class Benchmark {
 public:
  Benchmark(const Flags& flags, const Options& options) : flags_(flags), options_(options) {}
  // Exits with a message on the first error of the database: a benchmark that goes on after one measures nothing.
  void Run();

 private:
  // How a benchmark runs. Numbers are those of the flags unless said.
  struct Plan {
    void (Benchmark::*method)(ThreadState*) = nullptr;
    bool fresh = false;              // on an empty database
    bool background_writer = false;  // one more thread, the first, that writes until the others are done; it does not count
    uint64_t num = 0;
    uint64_t batch = 1;
    uint64_t key_bytes = 0;
    bool sync = false;
  };
  // Decides when a thread is done: after `flags.duration` seconds, or after a number of operations.
  class Until {
   public:
    Until(int64_t seconds, uint64_t operations) : seconds_(seconds), left_(operations), begin_(NowMicros()) {}
    bool Done(uint64_t operations);

   private:
    const int64_t seconds_;
    uint64_t left_;
    uint64_t since_look_ = 0;
    const uint64_t begin_;
  };

  std::optional<Plan> PlanOf(const std::string& name) const;
  void RunOne(const std::string& name, const Plan& plan, uint64_t repeats, uint64_t warmups);
  ThreadStats RunThreads(const Plan& plan);
  bool RunInformation(const std::string& name);  // stats, levelstats; false if it is no such name
  void OpenDatabase();
  void OpenFresh();
  void PrintHeader() const;
  void PrintStatistics() const;

  // The benchmarks (db_bench_methods.cc). Each runs in its own thread.
  void WriteSequential(ThreadState* thread);
  void WriteRandom(ThreadState* thread);
  void WriteUniqueRandom(ThreadState* thread);
  void DeleteSequential(ThreadState* thread);
  void DeleteRandom(ThreadState* thread);
  void ReadRandom(ThreadState* thread);
  void MultiReadRandom(ThreadState* thread);
  void ReadSequential(ThreadState* thread);
  void ReadReverse(ThreadState* thread);
  void SeekRandom(ThreadState* thread);
  void ReadWhileWriting(ThreadState* thread);
  void Compact(ThreadState* thread);
  void FlushMemtable(ThreadState* thread);
  void WaitForCompaction(ThreadState* thread);
  void Verify(ThreadState* thread);
  void WriteUntilOthersAreDone(ThreadState* thread);
  void Write(ThreadState* thread, const std::function<uint64_t(uint64_t)>& index_of);
  void DeleteKeys(ThreadState* thread, const std::function<uint64_t(uint64_t)>& index_of);
  void Scan(ThreadState* thread, bool forward);

  uint64_t Reads() const { return flags_.reads < 0 ? plan_.num : static_cast<uint64_t>(flags_.reads); }
  uint64_t Writes() const { return flags_.writes < 0 ? plan_.num : static_cast<uint64_t>(flags_.writes); }
  uint64_t Deletes() const { return flags_.deletes < 0 ? plan_.num : static_cast<uint64_t>(flags_.deletes); }
  ReadOptions ReadSettings() const;
  WriteOptions WriteSettings() const;

  const Flags flags_;
  const Options options_;
  std::unique_ptr<DB> db_;
  Plan plan_;  // of the benchmark that runs; not changed while threads do
  std::atomic<uint64_t> done_threads_{0};
  uint64_t seed_ = 0;  // of the next thread: the same benchmarks in the same order see the same keys
};

// Ends the program.
[[noreturn]] void Die(const std::string& what, const absl::Status& status);

}  // namespace tamis::bench
