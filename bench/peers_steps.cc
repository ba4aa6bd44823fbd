#include "bench/peers_steps.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "bench/report.h"
#include "bench/workload.h"

namespace tamis::bench {
namespace {

constexpr size_t kValueBytes = 100;
constexpr double kCompressionRatio = 0.5;
constexpr size_t kMultiGetKeys = 32;
constexpr uint64_t kNexts = 10;

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// A random present key, or one that was never written.
void MakeKey(Random* random, const StepSizes& sizes, bool present, char* key) {
  const uint64_t index = random->Uniform(sizes.keys);
  HashedKey(present ? index : sizes.keys + index, key);
}

double RunGets(PeerEngine* engine, const StepSizes& sizes, Random* random, bool present, uint64_t* found) {
  char key[kHashedKeyBytes];
  const Stopwatch watch;
  for (uint64_t i = 0; i < sizes.reads; ++i) {
    MakeKey(random, sizes, present, key);
    *found += engine->Get(std::string_view(key, sizeof key)) ? 1 : 0;
  }
  return static_cast<double>(sizes.reads) / watch.Seconds();
}

uint64_t MultiGets(const StepSizes& sizes) { return std::max<uint64_t>(1, sizes.reads / kMultiGetKeys); }

double RunMultiGets(PeerEngine* engine, const StepSizes& sizes, Random* random, bool present, uint64_t* found) {
  std::string bytes(kMultiGetKeys * kHashedKeyBytes, '\0');
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < kMultiGetKeys; ++i) keys.emplace_back(bytes.data() + i * kHashedKeyBytes, kHashedKeyBytes);
  const uint64_t groups = MultiGets(sizes);
  const Stopwatch watch;
  for (uint64_t group = 0; group < groups; ++group) {
    for (size_t i = 0; i < kMultiGetKeys; ++i) MakeKey(random, sizes, present, bytes.data() + i * kHashedKeyBytes);
    *found += engine->MultiGet(keys);
  }
  return static_cast<double>(groups * kMultiGetKeys) / watch.Seconds();
}

double RunSeeks(PeerEngine* engine, const StepSizes& sizes, Random* random, uint64_t* short_seeks) {
  char key[kHashedKeyBytes];
  const Stopwatch watch;
  for (uint64_t i = 0; i < sizes.seeks; ++i) {
    MakeKey(random, sizes, true, key);
    if (engine->SeekAndNext(std::string_view(key, sizeof key), kNexts) < kNexts) ++*short_seeks;
  }
  return static_cast<double>(sizes.seeks) / watch.Seconds();
}

}  // namespace

FillResult Fill(PeerEngine* engine, const std::string& path, const StepSizes& sizes) {
  ValueSource values(kCompressionRatio, kValueBytes, sizes.seed);
  FillResult result;
  const uint64_t written_before = ProcessBytesWritten();
  char key[kHashedKeyBytes];
  {
    const Stopwatch watch;
    for (uint64_t i = 0; i < sizes.keys; ++i) {
      HashedKey(i, key);
      engine->Put(std::string_view(key, sizeof key), values.Next(kValueBytes));
    }
    result.ops_per_second = static_cast<double>(sizes.keys) / watch.Seconds();
  }
  const Stopwatch watch;
  engine->Settle();
  result.settle_seconds = watch.Seconds();
  result.bytes_written = ProcessBytesWritten() - written_before;
  result.directory_bytes = DirectoryBytes(path);
  return result;
}

const std::vector<std::string>& ReadSteps() {
  static const auto* steps =
      new std::vector<std::string>{"readrandom", "readmissing", "multiget32_present", "multiget32_missing", "seek_10_next", "scan"};
  return *steps;
}

double RunStep(PeerEngine* engine, const char* engine_name, const std::string& step, const StepSizes& sizes, uint64_t round) {
  // All stores see the same keys in a round.
  Random random(sizes.seed * 1000003 + round);
  uint64_t answer = 0;
  uint64_t right = 0;
  double rate = 0;
  if (step == "readrandom" || step == "readmissing") {
    right = step == "readrandom" ? sizes.reads : 0;
    rate = RunGets(engine, sizes, &random, step == "readrandom", &answer);
  } else if (step == "multiget32_present" || step == "multiget32_missing") {
    right = step == "multiget32_present" ? MultiGets(sizes) * kMultiGetKeys : 0;
    rate = RunMultiGets(engine, sizes, &random, step == "multiget32_present", &answer);
  } else if (step == "seek_10_next") {
    // Only a seek to one of the last nine keys may end early: at most a few in a run.
    rate = RunSeeks(engine, sizes, &random, &answer);
    if (answer <= 1 + sizes.seeks * 100 / sizes.keys) answer = 0;
  } else {
    right = sizes.keys;
    const Stopwatch watch;
    answer = engine->ScanAll();
    rate = static_cast<double>(answer) / watch.Seconds();
  }
  if (answer != right) PeerFail(engine_name, step.c_str(), absl::StrCat("a wrong number of answers: ", answer, " and not ", right));
  return rate;
}

}  // namespace tamis::bench
