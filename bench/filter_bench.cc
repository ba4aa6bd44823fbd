// Filters alone: ns per added key and ns per lookup.
//
//   filter_bench                                   everything
//   filter_bench --benchmark_filter=Lookup/        the shipped probe; /keys/bits/percent present
//
// Sizes: 16 Ki keys at 10 bits are 20 KiB (L1), 1 Mi keys 1.25 MiB (L2), 64 Mi keys 80 MiB (last level or memory). Lookups are
// independent of each other (a core overlaps them) except in LookupDependent. Counters: time a key, observed and exact rate of false
// positives.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tamis/filter.h"

namespace {

using tamis::FilterView;

uint64_t Mix(uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

tamis::FilterBytes Build(uint64_t keys, double bits) {
  auto builder = tamis::FilterBuilder::Create({.bits_per_key = bits}).value();
  for (uint64_t i = 0; i < keys; ++i) builder->AddHash(Mix(i));
  return builder->Finish().value();
}

FilterView Shared(uint64_t keys, double bits) {
  static std::map<std::pair<uint64_t, double>, tamis::FilterBytes> filters;
  tamis::FilterBytes& bytes = filters[{keys, bits}];
  if (bytes.size() == 0) bytes = Build(keys, bits);
  return FilterView::Open(bytes.view(), {}).value();
}

// Hashes of which `percent` were added; the order is random, so that a branch on the answer cannot be learned.
std::vector<uint64_t> Queries(uint64_t keys, uint64_t percent, size_t count) {
  std::vector<uint64_t> out;
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t r = Mix(i + (uint64_t{1} << 50));
    out.push_back(r % 100 < percent ? Mix((r >> 20) % keys) : Mix(i + (uint64_t{1} << 60)));
  }
  return out;
}

// Their lines are 64 MiB if they do not meet: a large filter does not become a cached one by being asked the same again.
constexpr size_t kQueries = size_t{1} << 20;

// The form that was measured against the shipped one: leaves at the first unset bit.
bool EarlyExit(const unsigned char* line, uint32_t probes, uint64_t hash) {
  const uint32_t x = static_cast<uint32_t>(hash);
  for (uint32_t i = 0; i < probes; ++i) {
    const uint32_t bit = (x * tamis::internal::kProbeMultipliers[i]) >> 23;
    if (((line[bit >> 3] >> (bit & 7)) & 1) == 0) return false;
  }
  return true;
}

template <typename Probe>
void RunLookups(benchmark::State& state, Probe probe) {
  const uint64_t keys = static_cast<uint64_t>(state.range(0));
  const FilterView view = Shared(keys, static_cast<double>(state.range(1)));
  const std::vector<uint64_t> queries = Queries(keys, static_cast<uint64_t>(state.range(2)), kQueries);
  uint64_t maybe = 0;
  for (auto _ : state) {
    uint64_t round = 0;
    for (uint64_t hash : queries) round += probe(view, hash) ? 1 : 0;
    benchmark::DoNotOptimize(round);
    maybe = round;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kQueries));
  if (state.range(2) == 0) {
    state.counters["fpr"] = static_cast<double>(maybe) / kQueries;
    state.counters["fpr_model"] = view.Info().predicted_fpr;
  }
  state.counters["per_key"] =
      benchmark::Counter(static_cast<double>(kQueries), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Lookup(benchmark::State& state) {
  RunLookups(state, [](const FilterView& v, uint64_t h) { return v.MayContain(h); });
}
void LookupEarlyExit(benchmark::State& state) {
  RunLookups(state,
             [](const FilterView& v, uint64_t h) { return EarlyExit(tamis::internal::FilterLine(v.base(), v.lines(), h), v.probes(), h); });
}
// A branch on each answer, as the read path has it.
void LookupBranch(benchmark::State& state) {
  uint64_t work = 0;
  RunLookups(state, [&work](const FilterView& v, uint64_t h) {
    if (!v.MayContain(h)) return false;
    benchmark::DoNotOptimize(work += h);
    return true;
  });
}
// The address of the next line depends on a byte of the last: the latency of one lookup. (The answer alone would not do: the processor
// guesses it and goes on.)
void LookupDependent(benchmark::State& state) {
  uint64_t zero = 0;
  benchmark::DoNotOptimize(zero);
  uint64_t carry = 0;
  RunLookups(state, [&carry, zero](const FilterView& v, uint64_t h) {
    const uint64_t hash = h ^ carry;
    const unsigned char* line = tamis::internal::FilterLine(v.base(), v.lines(), hash);
    carry = line[0] & zero;
    return tamis::internal::FilterLineMayContain(line, v.probes(), hash);
  });
}
void LookupBatch(benchmark::State& state) {
  const uint64_t keys = static_cast<uint64_t>(state.range(0));
  const FilterView view = Shared(keys, static_cast<double>(state.range(1)));
  const std::vector<uint64_t> queries = Queries(keys, static_cast<uint64_t>(state.range(2)), kQueries);
  const auto may = std::make_unique<bool[]>(kQueries);
  for (auto _ : state) {
    view.MayContainBatch(queries, absl::MakeSpan(may.get(), kQueries));
    benchmark::DoNotOptimize(may.get());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kQueries));
  state.counters["per_key"] =
      benchmark::Counter(static_cast<double>(kQueries), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Adding and finishing, all of it: collecting, memory, bits, checksum.
void BuildFilter(benchmark::State& state) {
  const uint64_t keys = static_cast<uint64_t>(state.range(0));
  std::vector<uint64_t> hashes(keys);
  for (uint64_t i = 0; i < keys; ++i) hashes[i] = Mix(i);
  for (auto _ : state) {
    auto builder = tamis::FilterBuilder::Create({.bits_per_key = static_cast<double>(state.range(1))}).value();
    for (uint64_t hash : hashes) builder->AddHash(hash);
    benchmark::DoNotOptimize(builder->Finish().value().data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["per_key"] =
      benchmark::Counter(static_cast<double>(keys), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void OpenFilter(benchmark::State& state) {
  const tamis::FilterBytes bytes = Build(static_cast<uint64_t>(state.range(0)), 10);
  for (auto _ : state) benchmark::DoNotOptimize(FilterView::Open(bytes.view(), {}).value().base());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}

void ModelRate(benchmark::State& state) {
  double bits = 2;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tamis::fpr_model::FalsePositiveRate(tamis::FilterKind::kBlockedBloom, bits));
    bits = bits >= 24 ? 2 : bits + 0.125;
  }
}

constexpr int64_t kL1 = 16 << 10;
constexpr int64_t kL2 = 1 << 20;
constexpr int64_t kLarge = 64 << 20;

void Sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"keys", "bits", "present"});
  for (int64_t keys : {kL1, kL2, kLarge}) {
    for (int64_t present : {0, 50, 100}) b->Args({keys, 10, present});
  }
  for (int64_t bits : {4, 16, 24}) b->Args({kL1, bits, 0});
}

BENCHMARK(Lookup)->Apply(Sizes);
BENCHMARK(LookupEarlyExit)->Apply(Sizes);
BENCHMARK(LookupBranch)->Apply(Sizes);
BENCHMARK(LookupDependent)->Apply(Sizes);
BENCHMARK(LookupBatch)->Apply(Sizes);
BENCHMARK(BuildFilter)->ArgNames({"keys", "bits"})->ArgsProduct({{kL1, kL2, 16 << 20}, {10}})->Args({kL1, 4})->Args({kL1, 24});
BENCHMARK(OpenFilter)->Arg(kL1)->Arg(kL2);
BENCHMARK(ModelRate);

}  // namespace

BENCHMARK_MAIN();
