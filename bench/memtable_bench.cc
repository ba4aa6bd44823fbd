// The memtable alone: put, get of present and absent keys, seek, scan, at 100,000 and 500,000 keys of 16 bytes with values of 100.
//
// Keys are random ("random") or random after 8 common bytes ("prefixed"). In the chained gets each key depends on what the last get
// returned, so that cache misses of one cannot hide behind the next; the others measure throughput.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "benchmark/benchmark.h"
#include "engine/memtable/memtable.h"

namespace tamis::internal {
namespace {

constexpr size_t kKeyBytes = 16;
constexpr size_t kValueBytes = 100;

enum KeySet : int64_t { kRandom, kPrefixed };

// Back to back, so that reading a key costs no miss of its own in a sequential pass.
class Keys {
 public:
  Keys(size_t count, KeySet set, uint64_t seed) : bytes_(count * kKeyBytes, '\0') {
    Random random(seed);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t words[2] = {set == kPrefixed ? 0x2f7369746174732f : random.Next(), random.Next()};
      std::memcpy(bytes_.data() + i * kKeyBytes, words, kKeyBytes);
    }
  }
  std::string_view operator[](size_t i) const { return {bytes_.data() + i * kKeyBytes, kKeyBytes}; }
  size_t size() const { return bytes_.size() / kKeyBytes; }

 private:
  std::string bytes_;
};

std::unique_ptr<Memtable> Fill(const Keys& keys) {
  auto memtable = std::make_unique<Memtable>();
  const std::string value(kValueBytes, 'v');
  for (size_t i = 0; i < keys.size(); ++i) memtable->Add(i + 1, EntryKind::kPut, keys[i], value);
  return memtable;
}

Keys KeysFor(const benchmark::State& state, uint64_t seed) {
  return Keys(static_cast<size_t>(state.range(0)), static_cast<KeySet>(state.range(1)), seed);
}

// Time for a whole memtable, from empty; items are puts.
void BM_Put(benchmark::State& state) {
  const Keys keys = KeysFor(state, 1);
  const std::string value(kValueBytes, 'v');
  double used = 0;
  for (auto _ : state) {
    auto memtable = std::make_unique<Memtable>();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (state.range(2) != 0 && !memtable->Reserve(1, kKeyBytes + kValueBytes)) state.SkipWithError("out of memory");
      memtable->Add(i + 1, EntryKind::kPut, keys[i], value);
    }
    used = static_cast<double>(memtable->used_bytes());
    state.PauseTiming();
    memtable.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(keys.size()));
  state.counters["B/entry"] = used / static_cast<double>(keys.size());
  state.counters["ns/entry"] = benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(keys.size()) * 1e-9,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

enum Asked : int64_t { kHit, kMiss };

void Get(benchmark::State& state, bool chained) {
  const Keys keys = KeysFor(state, 1);
  const Keys asked = KeysFor(state, state.range(2) == kHit ? 1 : 2);
  const std::unique_ptr<Memtable> memtable = Fill(keys);
  Random random(3);
  std::vector<uint32_t> order(1 << 16);
  for (uint32_t& i : order) i = static_cast<uint32_t>(random.Uniform(asked.size()));
  size_t at = 0;
  char copied[kValueBytes] = {};
  for (auto _ : state) {
    const Memtable::Lookup got = memtable->Get(asked[order[at & 0xffff]], kMaxSequence);
    // A reader copies the value out; its bytes are all 'v', so that the chain goes on one by one.
    if (got.state == LookupState::kFound) std::memcpy(copied, got.value.data(), kValueBytes);
    benchmark::DoNotOptimize(copied);
    at += 1;
    if (chained) at += got.state == LookupState::kFound ? static_cast<size_t>(copied[7] ^ 'v') : static_cast<size_t>(got.sequence);
  }
  state.SetItemsProcessed(state.iterations());
}
void BM_Get(benchmark::State& state) { Get(state, false); }
void BM_GetChained(benchmark::State& state) { Get(state, true); }

void BM_SeekAndNext(benchmark::State& state) {
  const Keys keys = KeysFor(state, 1);
  const std::unique_ptr<Memtable> memtable = Fill(keys);
  const std::unique_ptr<Cursor> cursor = memtable->NewCursor(nullptr);
  Random random(4);
  uint64_t sum = 0;
  for (auto _ : state) {
    cursor->Seek(keys[random.Uniform(keys.size())], kMaxSequence);
    for (int64_t n = state.range(2); n > 0 && cursor->Valid(); --n) {
      sum += static_cast<unsigned char>(cursor->key()[3]);
      cursor->Next();
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

// Time for a whole scan; items are entries. Each key and the head of each value are read.
void BM_Scan(benchmark::State& state) {
  const Keys keys = KeysFor(state, 1);
  const std::unique_ptr<Memtable> memtable = Fill(keys);
  const std::unique_ptr<Cursor> cursor = memtable->NewCursor(nullptr);
  const bool forward = state.range(2) == 0;
  for (auto _ : state) {
    uint64_t sum = 0;
    for (forward ? cursor->SeekToFirst() : cursor->SeekToLast(); cursor->Valid(); forward ? cursor->Next() : cursor->Prev()) {
      sum += LoadBigPrefix(cursor->key()) + static_cast<unsigned char>(cursor->value()[0]);
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(keys.size()));
  state.counters["ns/entry"] = benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(keys.size()) * 1e-9,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

const std::vector<int64_t> kSizes = {100'000, 500'000};
BENCHMARK(BM_Put)
    ->ArgNames({"keys", "prefixed", "reserve"})
    ->ArgsProduct({kSizes, {kRandom, kPrefixed}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Get)->ArgNames({"keys", "prefixed", "miss"})->ArgsProduct({kSizes, {kRandom, kPrefixed}, {kHit, kMiss}});
BENCHMARK(BM_GetChained)->ArgNames({"keys", "prefixed", "miss"})->ArgsProduct({kSizes, {kRandom, kPrefixed}, {kHit, kMiss}});
BENCHMARK(BM_SeekAndNext)->ArgNames({"keys", "prefixed", "next"})->ArgsProduct({kSizes, {kRandom}, {0, 10}});
BENCHMARK(BM_Scan)
    ->ArgNames({"keys", "prefixed", "backward"})
    ->ArgsProduct({kSizes, {kRandom, kPrefixed}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tamis::internal

BENCHMARK_MAIN();
