// The forms of the blocked Bloom's inner loops, side by side, from given hashes.
#include <cstdio>
#include <memory>

#include "bench/filter_bench.h"
#include "bench/workload.h"
#include "filter/blocked_bloom_kernels.h"
#include "filter/hash.h"

namespace tamis::bench {
namespace {

namespace in = tamis::internal;

// Leaves at the first unset bit. Not used: half of the bits are set, so each exit is a coin toss.
bool ExitAfterEach(const unsigned char* line, uint32_t probes, uint64_t hash) {
  for (uint32_t i = 0; i < probes; ++i) {
    if ((in::FilterProbe(line, static_cast<uint32_t>(hash), i) & 1) == 0) return false;
  }
  return true;
}

struct Lookups {
  const unsigned char* base;
  uint64_t lines;
  uint32_t probes;
  std::vector<uint64_t> hashes;
  std::unique_ptr<bool[]> may;
};

template <typename Probe>
Step Single(std::string name, const Lookups& l, Probe probe) {
  return {std::move(name), static_cast<double>(l.hashes.size()), [&l, probe] {
            uint64_t maybe = 0;
            for (uint64_t hash : l.hashes) maybe += probe(in::FilterLine(l.base, l.lines, hash), l.probes, hash) ? 1 : 0;
            Keep(maybe);
          }};
}

std::string Named(const char* what, in::SimdLevel level) { return std::string(what) + " " + std::string(in::SimdLevelName(level)); }

std::vector<Step> LookupSteps(const Lookups& l) {
  std::vector<Step> steps;
  steps.push_back(Single("one, exit after each probe", l, ExitAfterEach));
  steps.push_back(Single("one, as shipped", l, [](const unsigned char* line, uint32_t probes, uint64_t hash) {
    return in::FilterLineMayContain(line, probes, hash);
  }));
  for (in::SimdLevel level : in::kSimdLevels) {
    const in::BlockedBloomKernels* kernels = in::BlockedBloomKernelsFor(level);
    if (kernels == nullptr) continue;
    // Scalar inline, as callers have it where nothing better runs; the others by a call, which is all that they can have.
    if (level == in::SimdLevel::kScalar) {
      steps.push_back(Single("one scalar", l, [](const unsigned char* line, uint32_t probes, uint64_t hash) {
        return in::FilterLineMayContainScalar(line, probes, hash);
      }));
    } else {
      steps.push_back(Single(Named("one", level), l, kernels->line_may_contain));
    }
    steps.push_back({Named("batch", level), static_cast<double>(l.hashes.size()), [&l, kernels] {
                       kernels->may_contain(l.base, l.lines, l.probes, l.hashes.data(), l.hashes.size(), l.may.get());
                       Keep(l.may.get());
                     }});
  }
  return steps;
}

void PrintForms(double bits, const FilterBenchFlags& flags) {
  constexpr size_t kQueries = 1 << 16;
  FilterBytes bytes;
  double build_ns = 0;
  if (!BuildTimed({.bits_per_key = bits}, flags.num, flags.key_bytes, &bytes, &build_ns)) return;
  const FilterView view = FilterView::Open(bytes.view(), {}).value();
  std::printf("\n%llu keys, %.3g bits, k = %u; ns a key: 0 / 50 / 100 %% present\n", static_cast<unsigned long long>(flags.num), bits,
              view.probes());
  std::vector<Lookups> shares;
  for (uint64_t share : {0, 50, 100}) {
    const KeyArray keys = QueryKeys(flags.num, share, kQueries, flags.key_bytes);
    Lookups l{view.base(), view.lines(), view.probes(), {}, std::make_unique<bool[]>(kQueries)};
    for (size_t i = 0; i < keys.size(); ++i) l.hashes.push_back(in::KeyHash(keys[i], 0));
    shares.push_back(std::move(l));
  }
  std::vector<Step> steps;
  for (const Lookups& l : shares) {
    for (Step& step : LookupSteps(l)) steps.push_back(std::move(step));
  }
  const std::vector<double> ns = MedianNanoseconds(steps, flags.rounds);
  const size_t forms = steps.size() / shares.size();
  for (size_t i = 0; i < forms; ++i) {
    std::printf("  %-28s %7.2f / %7.2f / %7.2f\n", steps[i].name.c_str(), ns[i], ns[forms + i], ns[2 * forms + i]);
  }

  std::vector<uint64_t> added;
  const KeyArray keys = AddedKeys(flags.num, flags.key_bytes);
  for (size_t i = 0; i < keys.size(); ++i) added.push_back(in::KeyHash(keys[i], 0));
  std::vector<Step> inserts;
  FilterBytes target(bytes.size());
  auto* base = reinterpret_cast<unsigned char*>(target.data());
  for (in::SimdLevel level : in::kSimdLevels) {
    const in::BlockedBloomKernels* kernels = in::BlockedBloomKernelsFor(level);
    if (kernels == nullptr) continue;
    inserts.push_back({Named("set bits", level), static_cast<double>(added.size()),
                       [&, kernels] { kernels->insert(base, view.lines(), view.probes(), added.data(), added.size()); }});
  }
  const std::vector<double> insert_ns = MedianNanoseconds(inserts, flags.rounds);
  for (size_t i = 0; i < inserts.size(); ++i) std::printf("  %-28s %7.2f\n", inserts[i].name.c_str(), insert_ns[i]);
}

}  // namespace

void RunForms(const FilterBenchFlags& flags) {
  std::printf("in use: %s\n", std::string(in::SimdLevelName(in::ActiveBlockedBloomKernels().level)).c_str());
  for (double bits : flags.bits) PrintForms(bits, flags);
}

}  // namespace tamis::bench
