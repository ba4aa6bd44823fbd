// Filters alone.
//
//   filter_bench                        all kinds, 100,000 keys (in cache): build, lookups by share of present keys, rate, space
//   filter_bench --num=100000000        the same, in memory
//   filter_bench --forms                the blocked Bloom's inner loops: scalar and each level of vector instructions that runs here
//   filter_bench --bars                 speed as ratios in one run: hash alone, scalar loop, dependent random read; exit code 1 if one
//   fails filter_bench --other                opening, and the model of rates
//
// Every time includes the hash of the key (XXH3-64 of 16 bytes, length read at run time), apart from --forms, where hashes are given.
#include "bench/filter_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "bench/report.h"
#include "bench/workload.h"
#include "filter/hash.h"

namespace tamis::bench {
namespace {

constexpr FilterKind kKinds[] = {FilterKind::kBlockedBloom, FilterKind::kSplitBlockBloom, FilterKind::kClassicBloom, FilterKind::kRibbon,
                                 FilterKind::kBinaryFuse};
constexpr uint64_t kShares[] = {0, 25, 50, 75, 100};
constexpr size_t kBatch = 32;

// Of a filter that fits into the cache: so many that they fit with it. Of a large one: so many that their lines do not (64 MiB).
size_t QueryCount(const FilterBytes& bytes) { return bytes.size() <= (size_t{1} << 20) ? size_t{1} << 16 : size_t{1} << 20; }

double ObservedRate(const FilterView& view, const FilterBenchFlags& flags) {
  constexpr uint64_t kQueries = 1 << 22;
  KeyArray key(1, flags.key_bytes);
  uint64_t maybe = 0;
  for (uint64_t i = 0; i < kQueries; ++i) {
    key.Set(0, 2 * kAbsentKeys + i);
    maybe += view.MayContain(internal::KeyHash(key[0], 0)) ? 1 : 0;
  }
  return static_cast<double>(maybe) / static_cast<double>(kQueries);
}

uint64_t LookUp(const FilterView& view, const KeyArray& keys) {
  uint64_t maybe = 0;
  for (size_t i = 0; i < keys.size(); ++i) maybe += view.MayContain(internal::KeyHash(keys[i], 0)) ? 1 : 0;
  return maybe;
}

uint64_t LookUpBatches(const FilterView& view, const KeyArray& keys) {
  uint64_t hashes[kBatch];
  bool may[kBatch];
  uint64_t maybe = 0;
  for (size_t begin = 0; begin + kBatch <= keys.size(); begin += kBatch) {
    for (size_t i = 0; i < kBatch; ++i) hashes[i] = internal::KeyHash(keys[begin + i], 0);
    view.MayContainBatch(hashes, may);
    for (bool m : may) maybe += m ? 1 : 0;
  }
  return maybe;
}

void PrintKind(FilterKind kind, double bits, const FilterBenchFlags& flags) {
  FilterBuildOptions options;
  options.kind = kind;
  options.bits_per_key = bits;
  FilterBytes bytes;
  std::vector<double> builds;
  // A large filter takes seconds to build: once.
  for (uint32_t round = 0; round < (flags.num > 4000000 ? 1 : flags.rounds); ++round) {
    double ns = 0;
    if (!BuildTimed(options, flags.num, flags.key_bytes, &bytes, &ns)) return;
    builds.push_back(ns);
  }
  std::sort(builds.begin(), builds.end());
  const FilterView view = FilterView::Open(bytes.view(), {}).value();

  std::vector<KeyArray> queries;
  for (uint64_t share : kShares) queries.push_back(QueryKeys(flags.num, share, QueryCount(bytes), flags.key_bytes));
  std::vector<Step> steps;
  for (const KeyArray& keys : queries) {
    const auto count = static_cast<double>(keys.size());
    steps.push_back({"one", count, [&view, &keys] { Keep(LookUp(view, keys)); }});
    steps.push_back({"batch", count, [&view, &keys] { Keep(LookUpBatches(view, keys)); }});
  }
  const std::vector<double> ns = MedianNanoseconds(steps, flags.rounds);

  const FilterInfo info = view.Info();
  const double rate = ObservedRate(view, flags);
  const double stored = 8.0 * static_cast<double>(bytes.size()) / static_cast<double>(flags.num);
  const double bound = rate > 0 ? -std::log2(rate) : 0;
  const std::string_view name = FilterKindName(kind);
  std::printf("%-18.*s %5.2f %3u %7.2f |", static_cast<int>(name.size()), name.data(), bits, info.probes, builds[builds.size() / 2]);
  for (size_t i = 0; i < ns.size(); i += 2) std::printf("%7.2f", ns[i]);
  std::printf(" |");
  for (size_t i = 1; i < ns.size(); i += 2) std::printf("%7.2f", ns[i]);
  std::printf(" | %9.5f %9.5f %6.2f %6.2f %6.1f\n", 100 * rate, 100 * info.predicted_fpr, stored, bound,
              bound > 0 ? 100 * (stored / bound - 1) : 0);
  std::fflush(stdout);
}

void PrintTable(const FilterBenchFlags& flags) {
  const KeyArray keys = QueryKeys(flags.num, 50, 1 << 16, flags.key_bytes);
  const double hash = MedianNanoseconds({{"hash", static_cast<double>(keys.size()),
                                          [&keys] {
                                            uint64_t sum = 0;
                                            for (size_t i = 0; i < keys.size(); ++i) sum += internal::KeyHash(keys[i], 0);
                                            Keep(sum);
                                          }}},
                                        flags.rounds)[0];
  std::printf("%llu keys of %zu bytes; hash alone %.2f ns; ns a key, hash included; lookups by percent of present keys\n\n",
              static_cast<unsigned long long>(flags.num), flags.key_bytes, hash);
  std::printf("%-18s %5s %3s %7s | one:%3s%7s%7s%7s%7s | of %zu:%1s%7s%7s%7s%7s | %9s %9s %6s %6s %6s\n", "kind", "bits", "k", "add", "0",
              "25", "50", "75", "100", kBatch, "0", "25", "50", "75", "100", "FPR %", "model %", "b/key", "bound", "waste%");
  for (FilterKind kind : kKinds) {
    for (double bits : flags.bits) PrintKind(kind, bits, flags);
  }
}

void PrintOther(const FilterBenchFlags& flags) {
  FilterBytes bytes;
  double build_ns = 0;
  if (!BuildTimed({}, flags.num, flags.key_bytes, &bytes, &build_ns)) return;
  double bits = kMinBitsPerKey;
  const std::vector<double> ns = MedianNanoseconds({{"open", 1, [&bytes] { Keep(FilterView::Open(bytes.view(), {}).value().base()); }},
                                                    {"rate of the model", 1,
                                                     [&bits] {
                                                       Keep(fpr_model::FalsePositiveRate(FilterKind::kBlockedBloom, bits));
                                                       bits = bits >= kMaxBitsPerKey ? kMinBitsPerKey : bits + kBitsPerKeyStep;
                                                     }}},
                                                   flags.rounds);
  std::printf("open %zu bytes: %.0f ns, %.1f bytes a ns\nrate of the model: %.0f ns\n", bytes.size(), ns[0],
              static_cast<double>(bytes.size()) / ns[0], ns[1]);
}

[[noreturn]] void Usage(const char* wrong) {
  if (wrong != nullptr) std::fprintf(stderr, "filter_bench: not understood: %s\n", wrong);
  std::fprintf(stderr,
               "filter_bench [--forms | --bars | --other] [--num=N] [--num_large=N] [--bits=B,B,...] [--rounds=N] [--key_bytes=8..16]\n");
  std::exit(wrong != nullptr ? 2 : 0);
}

bool ParseFlag(absl::string_view arg, FilterBenchFlags* flags) {
  const std::vector<absl::string_view> parts = absl::StrSplit(arg, absl::MaxSplits('=', 1));
  if (parts.size() != 2) return false;
  if (parts[0] == "--num") return absl::SimpleAtoi(parts[1], &flags->num) && flags->num > 0;
  if (parts[0] == "--num_large") return absl::SimpleAtoi(parts[1], &flags->num_large);
  if (parts[0] == "--rounds") return absl::SimpleAtoi(parts[1], &flags->rounds) && flags->rounds > 0;
  if (parts[0] == "--key_bytes") {
    return absl::SimpleAtoi(parts[1], &flags->key_bytes) && flags->key_bytes >= 8 && flags->key_bytes <= kHashedKeyBytes;
  }
  if (parts[0] != "--bits") return false;
  flags->bits.clear();
  for (absl::string_view number : absl::StrSplit(parts[1], ',')) {
    double bits = 0;
    if (!absl::SimpleAtod(number, &bits) || !(bits >= kMinBitsPerKey && bits <= kMaxBitsPerKey)) return false;
    flags->bits.push_back(bits);
  }
  return true;
}

int Main(int argc, char** argv) {
  FilterBenchFlags flags;
  std::string mode;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help") Usage(nullptr);
    if (arg == "--forms" || arg == "--bars" || arg == "--other") {
      mode = arg;
    } else if (!ParseFlag(arg, &flags)) {
      Usage(argv[i]);
    }
  }
  std::printf("%s\n", MachineLine(ReadMachineInfo()).c_str());
  if (mode == "--bars") return RunBars(flags) ? 0 : 1;
  if (mode == "--forms") {
    RunForms(flags);
  } else if (mode == "--other") {
    PrintOther(flags);
  } else {
    PrintTable(flags);
  }
  return 0;
}

}  // namespace
}  // namespace tamis::bench

int main(int argc, char** argv) { return tamis::bench::Main(argc, argv); }
