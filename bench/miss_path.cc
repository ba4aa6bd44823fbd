// miss_path: what an absent key costs, in units of the one thing that it cannot do without: a dependent random read of 64 bytes.
//
// Builds a settled tree of five levels and one of two, of the same keys, by settings. Then measures, all in one run and on one thread:
//   - a dependent random 64-byte read in a buffer as large as all filters together (a cycle through all lines: each line names the next);
//   - Get of absent keys, chained: the next key is made from the last answer. An answer is a predicted branch away, so a core may start
//     the next lookup early, as it may in any program that goes on after a miss; the second figure has a fence after each Get, which
//     forbids that (and costs some cycles itself);
//   - the steps of that Get, each as the difference between a loop with it and one without: view (entering and leaving the epoch), hash,
//     memtable, fences (finding the candidate in each level), filters (prefetching all candidates' lines, then asking them).
//
// The steps run on the engine's own parts, put together here from the database's files as the engine does.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/aligned_buffer.h"
#include "base/epoch.h"
#include "bench/report.h"
#include "bench/workload.h"
#include "engine/memtable/memtable.h"
#include "engine/version/manifest.h"
#include "engine/version/version.h"
#include "tamis/db.h"

namespace tamis::bench {
namespace {

namespace in = tamis::internal;

constexpr size_t kValueBytes = 100;
constexpr uint32_t kSizeRatio = 6;
// What a key takes in a table, about: 16 + 100 bytes of which half compress away, and its share of index and filter. Level sizes are chosen
// in the middle (on a logarithmic scale) of the range that gives the wanted number of levels, so a factor of two does not matter.
constexpr double kStoredBytesPerKey = 80;
constexpr uint32_t kMaxCandidates = in::kMaxLevels;

struct Settings {
  uint64_t num = 20000000;
  uint64_t gets = 5000000;
  uint64_t memtable_entries = 100000;  // in the memtable that the step is timed with
  double bits_per_key = 10;
  std::string directory;
};

[[noreturn]] void Die(const char* what, const std::string& why) {
  std::fprintf(stderr, "miss_path: %s: %s\n", what, why.c_str());
  std::exit(1);
}

void Check(const absl::Status& status, const char* what) {
  if (!status.ok()) Die(what, status.ToString());
}

inline void Fence() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  __asm__ volatile("dsb sy\n\tisb" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Nanoseconds an operation: the least of three runs, as whatever disturbs only adds.
template <typename F>
double Nanoseconds(uint64_t operations, F run) {
  double best = 1e18;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count() / static_cast<double>(operations));
  }
  return best;
}

volatile uint64_t g_sink;  // what loops compute must go somewhere

// An absent key made from `state`: it differs from all present ones by its index.
inline void AbsentKey(uint64_t state, uint64_t num, char* key) { HashedKey(num + (state >> 1), key); }

// ---- The unit -----------------------------------------------------------------------------------------------------------------------

double RandomReadNanoseconds(uint64_t bytes, uint64_t reads) {
  const uint64_t lines = std::max<uint64_t>(2, bytes / in::kCacheLineBytes);
  in::AlignedBuffer buffer(lines * in::kCacheLineBytes);
  const auto line = [&buffer](uint64_t i) { return reinterpret_cast<uint64_t*>(buffer.data() + i * in::kCacheLineBytes); };
  // Sattolo's shuffle: one cycle through all lines.
  std::vector<uint64_t> order(lines);
  std::iota(order.begin(), order.end(), 0);
  Random random(7);
  for (uint64_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random.Uniform(i)]);
  for (uint64_t i = 0; i < lines; ++i) *line(i) = order[i];
  uint64_t at = 0;
  const double nanoseconds = Nanoseconds(reads, [&] {
    for (uint64_t i = 0; i < reads; ++i) at = *line(at);
  });
  g_sink = at;
  return nanoseconds;
}

// ---- The tree -----------------------------------------------------------------------------------------------------------------------

// Level targets are made from the last level's size S upwards (S, S / ratio, ...); a level is opened while the one below is larger than
// level_base_bytes. So base = S / ratio^(levels - 1.5) gives `levels` levels.
Options TreeOptions(const Settings& settings, uint32_t levels) {
  Options options;
  options.filter.allocation = FilterAllocation::kUniform;
  options.filter.bits_per_key = settings.bits_per_key;
  options.memtable_bytes = 8 << 20;
  options.max_open_files = 100000;
  options.compaction.levels = 8;
  options.compaction.size_ratio = kSizeRatio;
  const double stored = kStoredBytesPerKey * static_cast<double>(settings.num);
  const double base = stored / std::pow(kSizeRatio, static_cast<double>(levels) - 1.5);
  options.compaction.level_base_bytes = std::max<uint64_t>(4096, static_cast<uint64_t>(base));
  options.compaction.target_file_bytes = std::clamp<uint64_t>(options.compaction.level_base_bytes / 4, 64 << 10, 16 << 20);
  options.compaction.l0_trigger = 1;  // nothing stays in L0
  return options;
}

std::pair<uint32_t, uint64_t> LevelsAndL0Files(const DB& db) {
  auto stats = db.GetStats();
  Check(stats.status(), "GetStats");
  uint32_t levels = 0;
  for (const LevelStats& level : stats->levels) levels += level.level > 0 && level.files > 0 ? 1 : 0;
  return {levels, stats->levels.empty() ? 0 : stats->levels[0].files};
}

void Settle(DB* db) {
  Check(db->Flush(), "Flush");
  Check(db->WaitForBackgroundWork(), "WaitForBackgroundWork");
}

std::unique_ptr<DB> BuildTree(const Settings& settings, uint32_t levels, const std::string& path) {
  auto opened = DB::Open(TreeOptions(settings, levels), path);
  Check(opened.status(), "Open");
  std::unique_ptr<DB> db = *std::move(opened);
  ValueSource values(0.5, kValueBytes, 1);
  std::string key(kHashedKeyBytes, '\0');
  for (uint64_t i = 0; i < settings.num; ++i) {
    HashedKey(i, key.data());
    Check(db->Put(key, values.Next(kValueBytes)), "Put");
  }
  Settle(db.get());
  // The last flushes may have been larger than the uppermost level's target and have gone through it. Overwrite keys in pieces that fit
  // in there (each flush makes one file), until every level that should be there is.
  const uint64_t base_keys = TreeOptions(settings, levels).compaction.level_base_bytes / static_cast<uint64_t>(kStoredBytesPerKey);
  const uint64_t piece = std::clamp<uint64_t>(base_keys / 8, 1, 40000);
  uint64_t next = 0;
  for (int attempt = 0; attempt < 300 && LevelsAndL0Files(*db) != std::pair(levels, uint64_t{0}); ++attempt) {
    for (uint64_t i = 0; i < piece; ++i) {
      HashedKey(next++ % settings.num, key.data());
      Check(db->Put(key, values.Next(kValueBytes)), "Put");
    }
    Settle(db.get());
  }
  const auto [found, l0_files] = LevelsAndL0Files(*db);
  if (found != levels || l0_files != 0) {
    std::fprintf(stderr, "%s", db->GetProperty("tamis.levels").value_or("").c_str());
    Die("tree", "it has " + std::to_string(found) + " levels and " + std::to_string(l0_files) +
                    " files in L0; wanted: " + std::to_string(levels) + " and 0");
  }
  return db;
}

// ---- Get ----------------------------------------------------------------------------------------------------------------------------

template <bool kFenced>
double GetNanoseconds(const DB& db, const Settings& settings) {
  const ReadOptions options;
  PinnedValue value;
  char key[kHashedKeyBytes];
  uint64_t state = 1;
  uint64_t found = 0;
  const double nanoseconds = Nanoseconds(settings.gets, [&] {
    for (uint64_t i = 0; i < settings.gets; ++i) {
      AbsentKey(state, settings.num, key);
      const absl::Status s = db.Get(options, std::string_view(key, sizeof key), &value);
      if constexpr (kFenced) Fence();
      found += s.ok() ? 1 : 0;
      state = Mix(state + static_cast<uint64_t>(s.raw_code()));
    }
  });
  if (found != 0) Die("Get", "an absent key was found");
  return nanoseconds;
}

void CheckPresent(const DB& db, const Settings& settings) {
  std::string value;
  Random random(3);
  for (int i = 0; i < 1000; ++i) Check(db.Get(HashedKey(random.Uniform(settings.num)), &value), "Get of a present key");
}

// ---- Steps --------------------------------------------------------------------------------------------------------------------------

// The engine's parts, as a point read meets them.
struct Parts {
  std::unique_ptr<in::Version> version;
  in::Memtable memtable;
  std::atomic<const in::Version*> view{nullptr};
  uint64_t seed = 0;
  uint64_t visible = 0;
};

std::unique_ptr<Parts> OpenParts(const Settings& settings, const std::string& path) {
  auto parts = std::make_unique<Parts>();
  auto opened = FileSystem::Posix()->OpenDirectory(path, FileSystem::OpenMode::kExisting, 0600);
  Check(opened.status(), "OpenDirectory");
  auto context = std::make_shared<in::TableFileContext>();
  context->directory = *std::move(opened);
  context->descriptors = std::make_shared<in::DescriptorCache>(context->directory, 100000);
  auto manifest = in::ReadManifest(*context->directory);
  Check(manifest.status(), "ReadManifest");
  parts->seed = manifest->state.identity.hash_seed;
  std::vector<std::vector<std::shared_ptr<in::TableFile>>> levels;
  for (const auto& tables : manifest->state.levels) {
    std::vector<std::shared_ptr<in::TableFile>> files;
    for (const auto& [number, meta] : tables) {
      files.push_back(std::make_shared<in::TableFile>(meta, context));
      Check(files.back()->Reader().status(), "opening a table");
    }
    if (levels.empty()) {
      std::reverse(files.begin(), files.end());
    } else {
      std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a->meta().smallest < b->meta().smallest; });
    }
    levels.push_back(std::move(files));
  }
  parts->version = std::make_unique<in::Version>(std::move(levels), parts->seed);
  parts->view.store(parts->version.get(), std::memory_order_release);
  std::string key(kHashedKeyBytes, '\0');
  ValueSource values(0.5, kValueBytes, 1);
  if (!parts->memtable.Reserve(settings.memtable_entries, settings.memtable_entries * (kHashedKeyBytes + kValueBytes))) {
    Die("memtable", "no memory");
  }
  for (uint64_t i = 0; i < settings.memtable_entries; ++i) {
    HashedKey(i, key.data());
    parts->memtable.Add(++parts->visible, in::EntryKind::kPut, key, values.Next(kValueBytes));
  }
  return parts;
}

enum Step { kKeyOnly, kView, kHash, kMemtable, kFences, kFilters, kSteps };
constexpr const char* kStepNames[kSteps] = {"making the key", "view", "hash", "memtable", "fences", "filters"};

// All steps up to `kLast`; the answer is made of what they found, so that the next key waits for it.
template <int kLast>
uint64_t LookUp(const Parts& parts, std::string_view key) {
  uint64_t answer = static_cast<unsigned char>(key[0]);
  if constexpr (kLast >= kView) {
    const in::EpochGuard guard;
    const in::Version* version = parts.view.load(std::memory_order_acquire);
    uint64_t hash = 0;
    if constexpr (kLast >= kHash) answer += hash = FilterKeyHash(key, parts.seed);
    if constexpr (kLast >= kMemtable) answer += static_cast<uint64_t>(parts.memtable.Get(key, parts.visible).state);
    if constexpr (kLast >= kFences) {
      const FilterView* filters[kMaxCandidates];
      uint32_t candidates = 0;
      for (const in::LevelFiles& level : version->levels()) {
        if (level.empty()) continue;
        const size_t file = level.Find(key);
        if (file == in::LevelFiles::kNone) continue;
        filters[candidates] = &level.filter(file);
        if constexpr (kLast >= kFilters) filters[candidates]->Prefetch(hash);
        ++candidates;
        answer += file;
      }
      if constexpr (kLast >= kFilters) {
        for (uint32_t i = 0; i < candidates; ++i) answer += filters[i]->MayContain(hash) ? 1 : 0;
      }
    }
  }
  return answer;
}

template <int kLast>
double StepsNanoseconds(const Parts& parts, const Settings& settings) {
  char key[kHashedKeyBytes];
  uint64_t state = 1;
  const double nanoseconds = Nanoseconds(settings.gets, [&] {
    for (uint64_t i = 0; i < settings.gets; ++i) {
      AbsentKey(state, settings.num, key);
      state = Mix(state + LookUp<kLast>(parts, std::string_view(key, sizeof key)));
    }
  });
  g_sink = state;
  return nanoseconds;
}

struct Measured {
  uint64_t filter_bytes = 0;
  uint64_t files = 0;
  double get = 0;
  double get_fenced = 0;
  double up_to[kSteps] = {};
};

Measured Measure(const Settings& settings, uint32_t levels) {
  const std::string path = settings.directory + "/levels-" + std::to_string(levels);
  Measured measured;
  std::unique_ptr<DB> db = BuildTree(settings, levels, path);
  CheckPresent(*db, settings);
  auto stats = db->GetStats();
  Check(stats.status(), "GetStats");
  measured.filter_bytes = stats->filter_bytes;
  for (const LevelStats& level : stats->levels) measured.files += level.files;
  std::printf("tree of %u levels: %llu files, filters %.1f MiB\n%s\n", levels, static_cast<unsigned long long>(measured.files),
              static_cast<double>(measured.filter_bytes) / (1 << 20), db->GetProperty("tamis.levels").value_or("").c_str());
  std::fflush(stdout);
  measured.get = GetNanoseconds<false>(*db, settings);
  measured.get_fenced = GetNanoseconds<true>(*db, settings);
  Check(db->Close(), "Close");
  db.reset();
  const std::unique_ptr<Parts> parts = OpenParts(settings, path);
  measured.up_to[kKeyOnly] = StepsNanoseconds<kKeyOnly>(*parts, settings);
  measured.up_to[kView] = StepsNanoseconds<kView>(*parts, settings);
  measured.up_to[kHash] = StepsNanoseconds<kHash>(*parts, settings);
  measured.up_to[kMemtable] = StepsNanoseconds<kMemtable>(*parts, settings);
  measured.up_to[kFences] = StepsNanoseconds<kFences>(*parts, settings);
  measured.up_to[kFilters] = StepsNanoseconds<kFilters>(*parts, settings);
  return measured;
}

void Print(const Measured& five, const Measured& two, double read, double read_two) {
  std::printf("\n%-40s %12s %12s\n", "nanoseconds", "five levels", "two levels");
  std::printf("%-40s %12.1f %12.1f\n", "dependent random 64-byte read", read, read_two);
  std::printf("%-40s %12.1f %12.1f\n", "Get of an absent key", five.get, two.get);
  std::printf("%-40s %12.1f %12.1f\n", "the same, a fence after each", five.get_fenced, two.get_fenced);
  for (int step = kKeyOnly; step < kSteps; ++step) {
    const double five_step = five.up_to[step] - (step == kKeyOnly ? 0 : five.up_to[step - 1]);
    const double two_step = two.up_to[step] - (step == kKeyOnly ? 0 : two.up_to[step - 1]);
    std::printf("  step: %-32s %12.1f %12.1f\n", kStepNames[step], five_step, two_step);
  }
  std::printf("  %-38s %12.1f %12.1f\n", "all steps in one loop", five.up_to[kFilters], two.up_to[kFilters]);
  std::printf("\nGet / random read: %.2f (fenced: %.2f), at most 4 wanted\n", five.get / read, five.get_fenced / read);
  std::printf("five levels / two: %.2f (fenced: %.2f), at most 1.5 wanted\n", five.get / two.get, five.get_fenced / two.get_fenced);
}

constexpr char kUsage[] =
    "miss_path: what an absent key costs\n\n"
    "  --num=N           keys in the tree (20000000)\n"
    "  --gets=N          lookups a measurement (5000000)\n"
    "  --bits_per_key=X  (10)\n"
    "  --dir=PATH        where the databases go, made and removed (a folder in /tmp)\n";

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
    if (name == "--gets") ok = absl::SimpleAtoi(value, &settings.gets) && settings.gets > 0;
    if (name == "--bits_per_key") ok = absl::SimpleAtod(value, &settings.bits_per_key);
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
  settings.directory = MakeScratchFolder(settings.directory, "miss-path");
  std::printf("%s\n%llu keys of 16 bytes, values of 100 bytes, %g bits per key\n\n", MachineLine(ReadMachineInfo()).c_str(),
              static_cast<unsigned long long>(settings.num), settings.bits_per_key);
  const Measured five = Measure(settings, 5);
  const double read = RandomReadNanoseconds(five.filter_bytes, settings.gets);
  const Measured two = Measure(settings, 2);
  const double read_two = RandomReadNanoseconds(two.filter_bytes, settings.gets);
  Print(five, two, read, read_two);
  return 0;
}
