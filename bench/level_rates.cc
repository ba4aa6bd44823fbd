// level_rates: reads for nothing on real trees, held against what the allocator of filter bits says for them; and against RocksDB.
//
// For trees of four and of five populated levels, ten times the size of the one above, and lookups of which all, a tenth or none are for
// distinct absent keys, a line for each of
//   uniform            10 bits per key in each table
//   optimal, as grown  the same memory, whole budget spent (wasted_reads_goal 0): the database learns from 2^20 lookups of the mix, then
//   each
//                      key is written once more, so that compactions have made all tables under what it learned
//   optimal, rebuilt   the same after DB::RebuildFilters
//   optimal, goal      where no lookup is for an absent key: the default goal of .001, rebuilt
// with R, the reads for nothing in a lookup, as observed, as the model says for the filters that there are, and as the allocator would
// have it for this tree and budget; at least 1,000 of them where R is not nearly 0. Beside it the same keys, values and lookups on RocksDB
// (if compiled in), at 10 bits and with optimize_filters_for_hits, from its statistics.
//
// --fillseq: instead, 20 M keys in ascending order, settled: memory against the budget, R before and after RebuildFilters.
//
// The bars are printed with each line; the exit code is 1 if one is missed.
#include "bench/level_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "bench/report.h"
#include "bench/workload.h"
#include "tamis/db.h"
#include "tamis/filter_allocation.h"
#include "tools/study/measure.h"
#include "tools/study/tree.h"
#include "tools/study/workload.h"

namespace tamis::bench {
namespace {

constexpr double kBitsPerKey = 10;
constexpr uint64_t kTrainingLookups = uint64_t{1} << 20;
constexpr double kBitsBar = .05;  // of the average bits per key, headers and whole lines included
constexpr uint64_t kFewestWasted = 1000;
constexpr uint64_t kMostLookups = 4000000;
// Filters are rounded up to whole lines, of 51 keys at 10 bits: the uppermost of five levels of these gets 350 keys, 6.8 lines. (Of 5 M
// keys it gets 372, whose 8 lines halve its rate; 1 M leave it 76.)
constexpr uint64_t kKeysOfFourLevels = 1000000;
constexpr uint64_t kKeysOfFiveLevels = 4700000;
constexpr uint64_t kCacheBytes = uint64_t{256} << 20;  // reads are counted, not timed

struct Settings {
  uint64_t num = 0;
  uint32_t levels = 0;
  uint64_t fillseq = 0;
  std::string directory;
};

[[noreturn]] void Die(const char* what, const std::string& why) {
  std::fprintf(stderr, "level_rates: %s: %s\n", what, why.c_str());
  std::exit(1);
}

void Check(const absl::Status& status, const char* what) {
  if (!status.ok()) Die(what, status.ToString());
}

template <typename T>
T Take(absl::StatusOr<T> value, const char* what) {
  Check(value.status(), what);
  return *std::move(value);
}

int g_missed = 0;

const char* Verdict(bool met) {
  if (!met) ++g_missed;
  return met ? "ok" : "MISSED";
}

// R of a measured tree: observed, by the model, and the allocator's for the same levels, lookups and budget.
struct Rates {
  double observed = 0;
  uint64_t wasted = 0;
  double model = 0;
  double allocator = 0;
  double allocator_uniform = 0;
  double bits_per_key = 0;
};

// What the lookups of the run asked each level for nothing is its f.
Rates RatesOf(const tools::StudyRun& run, bool optimal, double goal) {
  const FilterCurve curve = Take(CurveOf(FilterKind::kBlockedBloom), "CurveOf");
  const auto lookups = static_cast<double>(run.lookups);
  uint64_t filtered_waste = 0;
  for (const tools::StudyLevel& level : run.levels) filtered_waste += level.false_positives;
  std::vector<FilterRun> runs;
  for (const tools::StudyLevel& level : run.levels) {
    FilterRun its{.keys = level.keys, .curve = curve};
    const uint64_t misses = level.skipped + level.false_positives;
    // A level without filter counts no misses: they are the reads for nothing that no filter counts.
    its.absent_probability = static_cast<double>(level.filter_bytes == 0 ? run.wasted - filtered_waste : misses) / lookups;
    runs.push_back(its);
  }
  Rates rates;
  rates.wasted = run.wasted;
  rates.observed = static_cast<double>(run.wasted) / lookups;
  rates.model = run.predicted_wasted / lookups;
  rates.bits_per_key = 8.0 * static_cast<double>(run.filter_bytes) / static_cast<double>(run.tree_keys);
  rates.allocator_uniform = Take(UniformAllocation(runs, kBitsPerKey), "UniformAllocation").wasted_reads;
  const FilterBudget budget{.bits = BudgetBits(runs, kBitsPerKey), .wasted_reads_goal = goal};
  rates.allocator = optimal ? Take(OptimalAllocation(runs, budget), "OptimalAllocation").wasted_reads : rates.allocator_uniform;
  return rates;
}

struct Tree {
  tools::TreeShape shape;
  std::string path;
};

FilterOptions Filter(bool optimal, double goal) {
  FilterOptions filter;
  filter.allocation = optimal ? FilterAllocation::kOptimal : FilterAllocation::kUniform;
  filter.bits_per_key = kBitsPerKey;
  filter.wasted_reads_goal = goal;
  filter.hash_seed = 7;
  return filter;
}

// Enough lookups for kFewestWasted of them to read for nothing, where `guess` is not nearly 0.
uint64_t LookupsFor(double guess) {
  return std::clamp(static_cast<uint64_t>(1.3 * static_cast<double>(kFewestWasted) / std::max(guess, 1e-9)), uint64_t{200000},
                    kMostLookups);
}

tools::StudyRun Measure(const Tree& tree, double absent_percent, double guess) {
  tools::StudyCell cell;
  cell.levels = tree.shape.levels;
  cell.absent_percent = absent_percent;
  cell.cache_bytes = kCacheBytes;
  const tools::MeasureSettings settings{.lookups = LookupsFor(guess), .repeats = 1, .seed = tree.shape.seed};
  return Take(tools::MeasureCell(cell, tree.shape, tree.path, settings, {}), "measuring")[0];
}

std::unique_ptr<DB> OpenTree(const Tree& tree, const FilterOptions& filter) {
  return Take(DB::Open(tools::TreeOptions(tree.shape, filter), tree.path), "Open");
}

void PrintHead() {
  std::printf("\n%-8s %-10s %-20s %9s %9s %10s %10s %10s   %s\n", "levels", "absent", "filters", "bits/key", "wasted", "R observed",
              "R model", "R alloc.", "observed / allocator's");
}

void PrintLine(const Tree& tree, double absent, const char* name, const Rates& rates, double bar) {
  char against[96] = "";
  if (bar > 0) {
    const double off = rates.observed / rates.allocator;
    std::snprintf(
        against, sizeof against, "%.3f (bar 1 +- %.2f): %s", off, bar,
        Verdict(std::abs(off - 1) <= bar && std::abs(rates.bits_per_key / kBitsPerKey - 1) <= kBitsBar && rates.wasted >= kFewestWasted));
  }
  std::printf("%-8u %-10g %-20s %9.3f %9llu %10.6f %10.6f %10.6f   %s\n", tree.shape.levels, absent, name, rates.bits_per_key,
              static_cast<unsigned long long>(rates.wasted), rates.observed, rates.model, rates.allocator, against);
  std::fflush(stdout);
}

void PrintSaving(const Rates& uniform, const Rates& optimal, const Rates& of_tree) {
  const double measured = uniform.observed / optimal.observed;
  const double allocators = of_tree.allocator_uniform / of_tree.allocator;
  std::printf("%-8s %-10s saving of optimal: %.2f, the allocator's on this tree %.2f, at %.3f of the memory: %s\n", "", "", measured,
              allocators, optimal.bits_per_key / uniform.bits_per_key, Verdict(measured >= .9 * allocators));
}

// None absent, default goal: at most a fifth of uniform's memory at R of at most .0011.
void PrintGoal(const Rates& uniform, const Rates& goal) {
  const double memory = goal.bits_per_key / uniform.bits_per_key;
  std::printf("%-8s %-10s memory %.3f of uniform's (bar .2): %s; R %.6f (bar .0011): %s\n", "", "", memory, Verdict(memory <= .2),
              goal.observed, Verdict(goal.observed <= .0011));
}

void OptimalTree(const Settings& settings, uint32_t levels, double absent, const Rates& uniform) {
  const bool none_absent = absent == 0;
  const double goal = none_absent ? FilterOptions().wasted_reads_goal : 0;
  const FilterOptions filter = Filter(true, goal);
  const Tree tree{{.keys = settings.num, .levels = levels, .seed = 1}, settings.directory + "/optimal"};
  tools::BuiltTree built = Take(tools::BuildTree(tree.shape, filter, tree.path), "building");
  Check(tools::LearnFromLookups(built.db.get(), tree.shape, absent, kTrainingLookups, {}), "learning");
  Check(tools::RegrowTree(built.db.get(), tree.shape, {}), "growing again");
  Check(built.db->Close(), "Close");
  built.db.reset();
  const double guess = none_absent ? .0005 : uniform.allocator / (absent == 100 ? 3 : 18);
  const Rates grown = RatesOf(Measure(tree, absent, guess), true, goal);
  PrintLine(tree, absent, none_absent ? "goal, as grown" : "optimal, as grown", grown, none_absent ? 0 : .15);
  {
    const std::unique_ptr<DB> db = OpenTree(tree, filter);
    Check(db->RebuildFilters(), "RebuildFilters");
    Check(db->Close(), "Close");
  }
  const Rates rebuilt = RatesOf(Measure(tree, absent, guess), true, goal);
  PrintLine(tree, absent, none_absent ? "goal, rebuilt" : "optimal, rebuilt", rebuilt, none_absent ? 0 : .10);
  if (none_absent) {
    PrintGoal(uniform, rebuilt);
  } else {
    PrintSaving(uniform, rebuilt, rebuilt);
  }
  Check(DestroyDB(Options(), tree.path), "DestroyDB");
}

void Trees(const Settings& settings, uint32_t levels) {
  constexpr double kAbsent[] = {100, 10, 0};
  const Tree tree{{.keys = settings.num, .levels = levels, .seed = 1}, settings.directory + "/uniform"};
  tools::BuiltTree built = Take(tools::BuildTree(tree.shape, Filter(false, 0), tree.path), "building");
  std::printf("\n%s", built.db->GetProperty("tamis.levels").value_or("").c_str());
  Check(built.db->Close(), "Close");
  built.db.reset();
  PrintHead();
  std::vector<Rates> uniform;
  for (const double absent : kAbsent) {
    uniform.push_back(RatesOf(Measure(tree, absent, .03), false, 0));
    PrintLine(tree, absent, "uniform", uniform.back(), .15);
  }
  Check(DestroyDB(Options(), tree.path), "DestroyDB");
  for (size_t i = 0; i < uniform.size(); ++i) OptimalTree(settings, levels, kAbsent[i], uniform[i]);
#ifdef TAMIS_HAVE_ROCKSDB
  for (const bool for_hits : {false, true}) {
    const PeerTree peer{.keys = settings.num, .levels = levels, .bits_per_key = kBitsPerKey, .for_hits = for_hits};
    for (const PeerRates& rates : RocksDbRates(peer, settings.directory + "/rocksdb", {100, 10, 0}, LookupsFor(.03))) {
      std::printf("%-8u %-10g %-20s %9.3f %9llu %10.6f\n", rates.levels, rates.absent_percent, for_hits ? "RocksDB, for hits" : "RocksDB",
                  rates.bits_per_key, static_cast<unsigned long long>(rates.wasted), rates.observed);
      std::fflush(stdout);
    }
  }
#endif
}

// ---- fillseq --------------------------------------------------------------------------------------------------------------------------

// Keys came in order, so tables do not overlap and an absent key asks one of them: R is the share of keys that a filter lets through. By
// MayExist, from which the database learns nothing: what is rebuilt shall be for the same lookups as what has grown.
double ObservedOf(const DB& db, uint64_t keys) {
  constexpr uint64_t kLookups = 1000000;
  Random random(5);
  std::string key;
  uint64_t passed = 0;
  for (uint64_t i = 0; i < kLookups; ++i) {
    IndexKey(random.Uniform(keys), kHashedKeyBytes, &key);
    key.push_back('0');
    passed += Take(db.MayExist(ReadOptions(), key), "MayExist") ? 1 : 0;
  }
  return static_cast<double>(passed) / static_cast<double>(kLookups);
}

double ModelOf(const Stats& stats) {
  double keys = 0;
  double sum = 0;
  for (const LevelStats& level : stats.levels) {
    keys += static_cast<double>(level.keys);
    sum += static_cast<double>(level.keys) * level.predicted_fpr;
  }
  return sum / keys;
}

void FillSequentially(const Settings& settings) {
  Options options;
  options.filter = Filter(true, 0);
  const std::string path = settings.directory + "/fillseq";
  const std::unique_ptr<DB> db = Take(DB::Open(options, path), "Open");
  ValueSource values(0.5, tools::kStudyValueBytes, 1);
  std::string key;
  for (uint64_t i = 0; i < settings.fillseq; ++i) {
    IndexKey(i, kHashedKeyBytes, &key);
    Check(db->Put(key, values.Next(tools::kStudyValueBytes)), "Put");
  }
  Check(db->Flush(), "Flush");
  Check(db->WaitForBackgroundWork(), "WaitForBackgroundWork");
  const Stats grown = Take(db->GetStats(), "GetStats");
  const double observed_grown = ObservedOf(*db, settings.fillseq);
  std::printf("\nfillseq of %llu keys, settled; filters corrected by themselves: %llu\n%s\n",
              static_cast<unsigned long long>(settings.fillseq), static_cast<unsigned long long>(grown.filters_rebuilt),
              db->GetProperty("tamis.filters").value_or("").c_str());
  Check(db->RebuildFilters(), "RebuildFilters");
  const Stats rebuilt = Take(db->GetStats(), "GetStats");
  const double observed_rebuilt = ObservedOf(*db, settings.fillseq);
  uint64_t keys = 0;
  for (const LevelStats& level : grown.levels) keys += level.keys;
  const double budget = kBitsPerKey / 8 * static_cast<double>(keys);
  const double share = static_cast<double>(grown.filter_bytes) / budget;
  std::printf("rebuilt\n%s\n", db->GetProperty("tamis.filters").value_or("").c_str());
  std::printf("filter bytes / budget: %.3f (rebuilt %.3f), bar 1.1: %s\n", share, static_cast<double>(rebuilt.filter_bytes) / budget,
              Verdict(share <= 1.1));
  std::printf("R by the model %.5f, rebuilt %.5f; observed %.5f, rebuilt %.5f: ratio %.3f, bar 1 +- .1: %s\n", ModelOf(grown),
              ModelOf(rebuilt), observed_grown, observed_rebuilt, observed_grown / observed_rebuilt,
              Verdict(std::abs(observed_grown / observed_rebuilt - 1) <= .1));
  Check(db->Close(), "Close");
}

constexpr char kUsage[] =
    "level_rates: reads for nothing, observed and by the allocator of filter bits\n\n"
    "  --levels=N   4 or 5 (both)\n"
    "  --num=N      keys in a tree (1000000 in one of four levels, 4700000 in one of five)\n"
    "  --fillseq=N  instead: N keys in ascending order\n"
    "  --dir=PATH   where the databases go, made and removed (a folder in /tmp)\n";

Settings ParseSettings(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, equals);
    const std::string value = equals < argument.size() ? argument.substr(equals + 1) : "";
    bool ok = name == "--dir";
    if (name == "--dir") settings.directory = value;
    if (name == "--num") ok = absl::SimpleAtoi(value, &settings.num) && settings.num > 0;
    if (name == "--levels") ok = absl::SimpleAtoi(value, &settings.levels) && (settings.levels == 4 || settings.levels == 5);
    if (name == "--fillseq") ok = absl::SimpleAtoi(value, &settings.fillseq) && settings.fillseq > 0;
    if (!ok) {
      std::fputs(kUsage, name == "--help" ? stdout : stderr);
      std::exit(name == "--help" ? 0 : 2);
    }
  }
  return settings;
}

}  // namespace
}  // namespace tamis::bench

int main(int argc, char** argv) {
  using namespace tamis::bench;  // NOLINT(google-build-using-namespace)
  Settings settings = ParseSettings(argc, argv);
  settings.directory = MakeScratchFolder(settings.directory, "level-rates");
  std::printf("%s\n", MachineLine(ReadMachineInfo()).c_str());
  if (settings.fillseq != 0) {
    FillSequentially(settings);
  } else {
    const uint64_t num = settings.num;
    for (const uint32_t levels : {4U, 5U}) {
      if (settings.levels != 0 && settings.levels != levels) continue;
      settings.num = num != 0 ? num : levels == 4 ? kKeysOfFourLevels : kKeysOfFiveLevels;
      Trees(settings, levels);
    }
  }
  std::printf("\n%s\n", g_missed == 0 ? "all bars met" : (std::to_string(g_missed) + " bars missed").c_str());
  return g_missed == 0 ? 0 : 1;
}
