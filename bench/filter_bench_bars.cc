// Speed as ratios of steps of the same run, each against its bar.
//
// In cache: the hash of the key alone, or the best scalar loop. In memory: a dependent random read of 64 bytes, in a buffer as large as the
// filter and on the same kind of pages (a cycle through all lines: each line names the next).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>

#include "bench/filter_bench.h"
#include "bench/workload.h"
#include "filter/blocked_bloom_kernels.h"
#include "filter/hash.h"

namespace tamis::bench {
namespace {

namespace in = tamis::internal;

constexpr uint64_t kSmall = 100000;
constexpr uint64_t kMiddle = 1000000;
constexpr size_t kQueries = 1 << 16;
constexpr size_t kBatch = 32;
constexpr double kBits = 10;

class Bars {
 public:
  void AtMost(const char* what, double ns, const char* reference, double reference_ns, double bar) {
    Print(what, ns, reference, reference_ns, ns / reference_ns, "at most", bar, ns / reference_ns <= bar);
  }
  void AtLeast(const char* what, double ns, const char* reference, double reference_ns, double bar) {
    Print(what, ns, reference, reference_ns, reference_ns / ns, "at least", bar, reference_ns / ns >= bar);
  }
  bool all() const { return all_; }

 private:
  void Print(const char* what, double ns, const char* reference, double reference_ns, double ratio, const char* side, double bar,
             bool holds) {
    std::printf("%-44s %8.2f ns, %-38s %8.2f ns: %6.3f, %-8s %5.2f: %s\n", what, ns, reference, reference_ns, ratio, side, bar,
                holds ? "holds" : "FAILS");
    std::fflush(stdout);
    all_ = all_ && holds;
  }

  bool all_ = true;
};

uint64_t HashAll(const KeyArray& keys) {
  uint64_t sum = 0;
  for (size_t i = 0; i < keys.size(); ++i) sum += in::KeyHash(keys[i], 0);
  return sum;
}

FilterBytes BuildFrom(const KeyArray& keys) {
  std::unique_ptr<FilterBuilder> builder = FilterBuilder::Create({.bits_per_key = kBits}).value();
  for (size_t i = 0; i < keys.size(); ++i) builder->AddHash(in::KeyHash(keys[i], 0));
  return builder->Finish().value();
}

bool WithoutExit(const unsigned char* line, uint32_t probes, uint64_t hash) {
  uint32_t all = 1;
  for (uint32_t i = 0; i < probes; ++i) all &= in::FilterProbe(line, static_cast<uint32_t>(hash), i);
  return (all & 1) != 0;
}

template <typename Probe>
Step FromHashes(const FilterView& view, const std::vector<uint64_t>& hashes, bool* may, Probe probe) {
  return {"", static_cast<double>(hashes.size()), [view, &hashes, may, probe] {
            for (size_t i = 0; i < hashes.size(); ++i) {
              may[i] = probe(in::FilterLine(view.base(), view.lines(), hashes[i]), view.probes(), hashes[i]);
            }
            Keep(may);
          }};
}

Step BatchFromHashes(const FilterView& view, const std::vector<uint64_t>& hashes, bool* may, const in::BlockedBloomKernels& kernels) {
  return {"", static_cast<double>(hashes.size()), [view, &hashes, may, &kernels] {
            kernels.may_contain(view.base(), view.lines(), view.probes(), hashes.data(), hashes.size(), may);
            Keep(may);
          }};
}

void RunProbes(const FilterBenchFlags& flags, Bars* bars) {
  const FilterBytes bytes = BuildFrom(AddedKeys(kSmall, flags.key_bytes));
  const FilterView view = FilterView::Open(bytes.view(), {}).value();
  const KeyArray keys = QueryKeys(kSmall, 50, kQueries, flags.key_bytes);
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i < keys.size(); ++i) hashes.push_back(in::KeyHash(keys[i], 0));
  const auto may = std::make_unique<bool[]>(kQueries);
  const auto count = static_cast<double>(kQueries);
  std::vector<Step> steps = {
      {"", count, [&keys] { Keep(HashAll(keys)); }},
      {"", count,
       [&keys, view] {
         uint64_t maybe = 0;
         for (size_t i = 0; i < keys.size(); ++i) maybe += view.MayContain(in::KeyHash(keys[i], 0)) ? 1 : 0;
         Keep(maybe);
       }},
      FromHashes(view, hashes, may.get(), WithoutExit),
      FromHashes(view, hashes, may.get(),
                 [](const unsigned char* line, uint32_t k, uint64_t hash) { return in::FilterLineMayContainScalar(line, k, hash); }),
      BatchFromHashes(view, hashes, may.get(), in::kScalarBlockedBloomKernels),
  };
  const in::BlockedBloomKernels* avx2 = in::BlockedBloomKernelsFor(in::SimdLevel::kAvx2);
  if (avx2 != nullptr) {
    steps.push_back(BatchFromHashes(view, hashes, may.get(), *avx2));
    steps.push_back(FromHashes(view, hashes, may.get(), avx2->line_may_contain));
  }
  const std::vector<double> ns = MedianNanoseconds(steps, flags.rounds);
  bars->AtMost("hash + probe, 100,000 keys, half present", ns[1], "hash alone", ns[0], 3.5);
  if (avx2 == nullptr) {
    std::printf("no AVX2 on this processor: its bar is left out\n");
    return;
  }
  const double best_scalar = *std::min_element(ns.begin() + 2, ns.begin() + 5);
  bars->AtLeast("AVX2, batch of hashes, half present", ns[5], "best of three scalar loops", best_scalar, 1.5);
  std::printf("without a bar: AVX2, single probes by call, %.2f ns, the best scalar loop in %.3f times that\n", ns[6], best_scalar / ns[6]);
}

void RunBuilds(const FilterBenchFlags& flags, Bars* bars) {
  const KeyArray small = AddedKeys(kSmall, flags.key_bytes);
  const KeyArray middle = AddedKeys(kMiddle, flags.key_bytes);
  const std::vector<double> ns = MedianNanoseconds(
      {
          {"", static_cast<double>(kSmall), [&small] { Keep(HashAll(small)); }},
          {"", static_cast<double>(kSmall), [&small] { Keep(BuildFrom(small).data()); }},
          {"", static_cast<double>(kMiddle), [&middle] { Keep(HashAll(middle)); }},
          {"", static_cast<double>(kMiddle), [&middle] { Keep(BuildFrom(middle).data()); }},
      },
      flags.rounds);
  bars->AtMost("building from 100,000 keys", ns[1], "hash alone", ns[0], 5);
  bars->AtMost("building from 1,000,000 keys", ns[3], "hash alone", ns[2], 8);
}

// Lines of 64 bytes that name the next one, all in one cycle (Sattolo's shuffle).
FilterBytes LineCycle(size_t size) {
  const size_t lines = size / in::kFilterLineBytes;
  std::vector<uint64_t> next(lines);
  std::iota(next.begin(), next.end(), 0);
  Random random(1);
  for (size_t i = lines - 1; i > 0; --i) std::swap(next[i], next[random.Uniform(i)]);
  FilterBytes bytes(lines * in::kFilterLineBytes);
  for (size_t i = 0; i < lines; ++i) std::memcpy(bytes.data() + i * in::kFilterLineBytes, &next[i], sizeof(uint64_t));
  return bytes;
}

// 16 bytes that differ with every call; `answer` is data for the next key, so that nothing of the next lookup can begin before it.
struct ChainedKey {
  uint64_t counter = kAbsentKeys;
  char bytes[kHashedKeyBytes] = {};
  void Next(uint64_t answer) {
    const uint64_t first = ++counter + (answer << 60);
    std::memcpy(bytes, &first, sizeof(first));
    std::memcpy(bytes + 8, &counter, sizeof(counter));
  }
};

void RunLarge(const FilterBenchFlags& flags, Bars* bars) {
  FilterBytes bytes;
  double build_ns = 0;
  if (!BuildTimed({.bits_per_key = kBits}, flags.num_large, flags.key_bytes, &bytes, &build_ns)) {
    std::printf("no memory for %llu keys\n", static_cast<unsigned long long>(flags.num_large));
    return;
  }
  std::printf("%llu keys, %zu MiB, built in %.1f ns a key\n", static_cast<unsigned long long>(flags.num_large), bytes.size() >> 20,
              build_ns);
  const FilterView view = FilterView::Open(bytes.view(), {}).value();
  const FilterBytes cycle = LineCycle(bytes.size());
  constexpr size_t kReads = 1 << 17;
  uint64_t at = 0;
  ChainedKey key;
  uint64_t answer = 0;
  const auto read = [&] {
    for (size_t i = 0; i < kReads; ++i) std::memcpy(&at, cycle.data() + at * in::kFilterLineBytes, sizeof(at));
    Keep(at);
  };
  const auto probe = [&] {
    for (size_t i = 0; i < kReads; ++i) {
      key.Next(answer);
      answer = view.MayContain(in::KeyHash({key.bytes, flags.key_bytes}, 0)) ? 1 : 0;
      asm volatile("" : "+r"(answer));  // a number now, not a branch that could be guessed
    }
  };
  const auto batch = [&] {
    uint64_t hashes[kBatch];
    bool may[kBatch];
    for (size_t begin = 0; begin < kReads; begin += kBatch) {
      for (uint64_t& hash : hashes) {
        key.Next(answer);
        hash = in::KeyHash({key.bytes, flags.key_bytes}, 0);
      }
      view.MayContainBatch(hashes, may);
      answer = may[kBatch - 1] ? 1 : 0;
      asm volatile("" : "+r"(answer));
    }
  };
  const auto count = static_cast<double>(kReads);
  const std::vector<double> ns = MedianNanoseconds({{"", count, read}, {"", count, probe}, {"", count, batch}}, flags.rounds);
  bars->AtMost("hash + probe, key depends on the last answer", ns[1], "dependent random read of 64 bytes", ns[0], 1.3);
  bars->AtMost("hash + probe in batches of 32, a key", ns[2], "dependent random read of 64 bytes", ns[0], .25);
}

}  // namespace

bool RunBars(const FilterBenchFlags& flags) {
  std::printf("medians of %u interleaved rounds, keys of %zu bytes, %.0f bits a key, in use: %s\n", flags.rounds, flags.key_bytes, kBits,
              std::string(in::SimdLevelName(in::ActiveBlockedBloomKernels().level)).c_str());
  Bars bars;
  RunProbes(flags, &bars);
  RunBuilds(flags, &bars);
  if (flags.num_large != 0) RunLarge(flags, &bars);
  return bars.all();
}

}  // namespace tamis::bench
