// Search and walk of one data block (16-byte keys, 100-byte values), warm and over a set of blocks that no cache holds.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/random.h"
#include "table/block.h"
#include "table/block_builder.h"

namespace tamis::internal {
namespace {

struct BlockSet {
  std::vector<std::string> bytes;
  std::vector<Block> blocks;
  std::vector<std::vector<std::string>> keys;
};

std::string KeyOf(uint64_t number) {
  char key[32];
  std::snprintf(key, sizeof key, "user%012llu", static_cast<unsigned long long>(number));
  return key;
}

// Even numbers are in the blocks, odd ones are not.
BlockSet MakeBlocks(size_t block_bytes, size_t total_bytes) {
  BlockSet set;
  uint64_t number = 0;
  Random random(1);
  const std::string value(100, 'v');
  for (size_t made = 0; made < total_bytes; made += set.bytes.back().size()) {
    BlockBuilder builder;
    set.keys.emplace_back();
    while (builder.empty() || builder.EstimatedBytes() < block_bytes) {
      number += 2 * (1 + random.Uniform(50));
      set.keys.back().push_back(KeyOf(number));
      builder.Add(set.keys.back().back(), 1 + random.Uniform(1u << 24), EntryKind::kPut, value);
    }
    set.bytes.emplace_back(builder.Finish());
  }
  for (const std::string& bytes : set.bytes) set.blocks.push_back(Block::Parse(bytes).value());
  return set;
}

struct Probe {
  uint32_t block;
  std::string key;
};

std::vector<Probe> MakeProbes(const BlockSet& set, bool hit) {
  Random random(2);
  std::vector<Probe> probes(1 << 16);
  for (Probe& probe : probes) {
    probe.block = static_cast<uint32_t>(random.Uniform(set.blocks.size()));
    const auto& keys = set.keys[probe.block];
    probe.key = keys[random.Uniform(keys.size())];
    if (!hit) ++probe.key.back();  // even digit -> odd number
  }
  return probes;
}

void Search(benchmark::State& state, bool hit) {
  const BlockSet set = MakeBlocks(static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1)));
  const std::vector<Probe> probes = MakeProbes(set, hit);
  size_t next = 0;
  size_t found = 0;
  for (auto _ : state) {
    const Probe& probe = probes[next++ & (probes.size() - 1)];
    const Block& block = set.blocks[probe.block];
    const uint32_t i = block.LowerBound(probe.key, kMaxSequence);
    Block::Entry entry;
    if (i < block.count() && block.KeyEquals(i, probe.key, &entry)) found += static_cast<size_t>(entry.value[0] == 'v');
  }
  benchmark::DoNotOptimize(found);
  if (found != (hit ? static_cast<size_t>(state.iterations()) : 0)) state.SkipWithError("wrong answer");
}

void BM_BlockSearchHit(benchmark::State& state) { Search(state, true); }
void BM_BlockSearchMiss(benchmark::State& state) { Search(state, false); }
BENCHMARK(BM_BlockSearchHit)->ArgNames({"block", "set"})->ArgsProduct({{4096, 16384}, {512 << 10, 64 << 20}});
BENCHMARK(BM_BlockSearchMiss)->ArgNames({"block", "set"})->ArgsProduct({{4096, 16384}, {512 << 10, 64 << 20}});

void BM_BlockScanEntry(benchmark::State& state) {
  const BlockSet set = MakeBlocks(static_cast<size_t>(state.range(0)), 512 << 10);
  BlockCursor cursor;
  size_t at = 0;
  uint64_t sum = 0;
  for (auto _ : state) {
    if (!cursor.Valid()) {
      cursor.Reset(set.blocks[at++ % set.blocks.size()]);
      cursor.SeekToFirst();
    }
    sum += static_cast<unsigned char>(cursor.key().back()) + cursor.value().size();
    cursor.Next();
  }
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(BM_BlockScanEntry)->ArgName("block")->Arg(4096)->Arg(16384);

void BM_BlockParse(benchmark::State& state) {
  const BlockSet set = MakeBlocks(static_cast<size_t>(state.range(0)), 512 << 10);
  size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(Block::Parse(set.bytes[at++ % set.bytes.size()]).ok());
  state.counters["entries"] = static_cast<double>(set.blocks[0].count());
}
BENCHMARK(BM_BlockParse)->ArgName("block")->Arg(4096)->Arg(16384);

void BM_BlockBuildEntry(benchmark::State& state) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < 35; ++i) keys.push_back(KeyOf(i * 7));
  const std::string value(100, 'v');
  BlockBuilder builder;
  for (auto _ : state) {
    for (const std::string& key : keys) builder.Add(key, 1000000, EntryKind::kPut, value);
    benchmark::DoNotOptimize(builder.Finish().data());
    builder.Reset();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(BM_BlockBuildEntry);

}  // namespace
}  // namespace tamis::internal

BENCHMARK_MAIN();
