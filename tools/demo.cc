// The main job on real data: what filters save when most lookups are for keys that are not there, or that only one of many files can hold.
//
// Loads every (path, md5) pair of the machine's package file lists (/var/lib/dpkg/info/*.md5sums) into a database with settings so small
// that the data is spread over at least four levels; then looks up every path, and as many absent paths that lie between them, once with
// the filters and once without. Every answer is checked. Prints one table of what that took.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tamis/db.h"
#include "tools/text_table.h"

namespace tamis::tools {
namespace {

namespace fs = std::filesystem;
using Pairs = std::map<std::string, std::string>;

constexpr char kDefaultLists[] = "/var/lib/dpkg/info";
constexpr uint64_t kSeed = 20240607;
constexpr uint32_t kWantedLevels = 4;

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "demo: %s\n", text.c_str());
  std::exit(1);
}

void Require(const absl::Status& status, std::string_view what) {
  if (!status.ok()) Fail(absl::StrCat(std::string(what), ": ", status.ToString()));
}

// Lines of "md5", two blanks, "path". A path listed twice: the later one (files in the order of their names).
Pairs ReadLists(const fs::path& folder, size_t* files, size_t* lines) {
  std::vector<fs::path> lists;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".md5sums") lists.push_back(entry.path());
  }
  if (error) Fail(absl::StrCat(folder.string(), ": ", error.message()));
  std::sort(lists.begin(), lists.end());
  Pairs pairs;
  *files = lists.size();
  for (const fs::path& list : lists) {
    std::ifstream in(list);
    std::string line;
    while (std::getline(in, line)) {
      const size_t blanks = line.find("  ");
      if (blanks == std::string::npos) continue;
      ++*lines;
      pairs[line.substr(blanks + 2)] = line.substr(0, blanks);
    }
  }
  return pairs;
}

// One absent path for each present one, that sorts right behind it or has one letter changed: it lies inside the key range of the same
// files, so that only a filter can tell.
std::vector<std::string> AbsentPaths(const Pairs& pairs) {
  std::vector<std::string> absent;
  absent.reserve(pairs.size());
  std::mt19937_64 random(kSeed);
  for (const auto& [path, md5] : pairs) {
    std::string candidate = path;
    if (!candidate.empty() && random() % 2 == 0) {
      char& letter = candidate[candidate.size() - 1 - random() % std::min<size_t>(candidate.size(), 8)];
      letter = letter == 'q' ? 'z' : 'q';
    } else {
      candidate += "~";
    }
    while (pairs.count(candidate) != 0) candidate += "~";
    absent.push_back(std::move(candidate));
  }
  return absent;
}

// So small that 110,000 pairs (14 MB) need four levels and more.
Options DemoOptions() {
  Options options;
  options.memtable_bytes = 256 << 10;
  options.block_cache_bytes = 4 << 20;
  options.compaction.size_ratio = 4;
  options.compaction.level_base_bytes = 64 << 10;
  options.compaction.target_file_bytes = 128 << 10;
  options.filter.bits_per_key = 10;
  return options;
}

void Load(DB* db, const Pairs& pairs) {
  std::vector<const Pairs::value_type*> order;
  order.reserve(pairs.size());
  for (const auto& pair : pairs) order.push_back(&pair);
  // In no order, as a package database is filled over the years: every level then spans all paths.
  std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
  for (const auto* pair : order) Require(db->Put(pair->first, pair->second), "Put");
  Require(db->Flush(), "Flush");
  Require(db->WaitForBackgroundWork(), "WaitForBackgroundWork");
}

uint32_t LevelsInUse(const DB& db) {
  auto stats = db.GetStats();
  Require(stats.status(), "GetStats");
  uint32_t levels = 0;
  for (const LevelStats& level : stats->levels) levels += level.files > 0 ? 1 : 0;
  return levels;
}

// Writes a thirtieth of the pairs again, with the values they have, until the upper levels hold tables, as in a database in use.
void Freshen(DB* db, const Pairs& pairs) {
  constexpr size_t kShare = 30;
  for (size_t turn = 0; turn < kShare && (turn == 0 || LevelsInUse(*db) < kWantedLevels); ++turn) {
    size_t i = 0;
    for (const auto& [path, md5] : pairs) {
      if (i++ % kShare == turn) Require(db->Put(path, md5), "Put");
    }
    Require(db->Flush(), "Flush");
    Require(db->WaitForBackgroundWork(), "WaitForBackgroundWork");
  }
}

struct Counters {
  uint64_t considered = 0;
  uint64_t skipped = 0;
  uint64_t blocks = 0;
  uint64_t false_positives = 0;
  uint64_t negatives = 0;      // filters asked about a key that their table does not hold
  double predicted_false = 0;  // of those, expected to say "maybe"
};

Counters CountersOf(const DB& db) {
  auto stats = db.GetStats();
  Require(stats.status(), "GetStats");
  Counters counters;
  counters.considered = stats->files_considered;
  counters.skipped = stats->files_skipped;
  counters.blocks = stats->blocks_read;
  for (const LevelStats& level : stats->levels) {
    const uint64_t negatives = level.skipped + level.false_positives;
    counters.false_positives += level.false_positives;
    counters.negatives += negatives;
    counters.predicted_false += static_cast<double>(negatives) * level.predicted_fpr;
  }
  return counters;
}

struct Round {
  std::string name;
  uint64_t lookups = 0;
  uint64_t wrong = 0;
  double seconds = 0;
  Counters before;
  Counters after;
};

// Looks up `present` (or, if that is null, `absent`), in an order that has nothing to do with that of the keys.
Round LookUp(const DB& db, const std::string& name, const Pairs& pairs, const std::vector<std::string>* absent, bool use_filters) {
  std::vector<std::pair<std::string_view, const std::string*>> queries;
  if (absent == nullptr) {
    for (const auto& [path, md5] : pairs) queries.emplace_back(path, &md5);
  } else {
    for (const std::string& path : *absent) queries.emplace_back(path, nullptr);
  }
  std::shuffle(queries.begin(), queries.end(), std::mt19937_64(kSeed + 1));
  ReadOptions options;
  options.use_filters = use_filters;
  Round round;
  round.name = name;
  round.lookups = queries.size();
  round.before = CountersOf(db);
  PinnedValue value;
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [path, expected] : queries) {
    const absl::Status s = db.Get(options, path, &value);
    const bool right = expected == nullptr ? absl::IsNotFound(s) : s.ok() && value.view() == *expected;
    if (!right && round.wrong++ == 0) {
      std::fprintf(stderr, "demo: wrong answer for '%s': %s\n", std::string(path).c_str(), s.ToString().c_str());
    }
  }
  round.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  round.after = CountersOf(db);
  return round;
}

std::vector<std::string> Row(const Round& round, bool use_filters) {
  const Counters& a = round.before;
  const Counters& b = round.after;
  return {round.name,
          absl::StrCat(round.lookups),
          absl::StrCat(b.considered - a.considered),
          absl::StrCat(b.skipped - a.skipped),
          absl::StrCat(b.blocks - a.blocks),
          use_filters ? absl::StrFormat("%.0f", b.predicted_false - a.predicted_false) : "-",
          use_filters ? absl::StrCat(b.false_positives - a.false_positives) : "-",
          absl::StrFormat("%.3f", 1e6 * round.seconds / static_cast<double>(round.lookups))};
}

void PrintLevels(const Stats& stats) {
  TextTable table({"level", "files", "KiB", "keys", "filter KiB", "bits/key", "FPR predicted", "FPR observed"});
  for (const LevelStats& level : stats.levels) {
    if (level.files == 0) continue;
    table.Add({absl::StrCat("L", level.level), absl::StrCat(level.files), absl::StrCat(level.bytes >> 10), absl::StrCat(level.keys),
               absl::StrFormat("%.1f", static_cast<double>(level.filter_bytes) / 1024), absl::StrFormat("%.2f", level.bits_per_key),
               absl::StrFormat("%.3f %%", 100 * level.predicted_fpr), absl::StrFormat("%.3f %%", 100 * level.observed_fpr)});
  }
  table.Print();
}

int Run(const fs::path& lists, const fs::path& database) {
  size_t files = 0;
  size_t lines = 0;
  const Pairs pairs = ReadLists(lists, &files, &lines);
  if (pairs.empty()) Fail(absl::StrCat(lists.string(), ": no pairs found"));
  std::printf("%zu pairs (path, md5) from %zu lines of %zu files in %s\n", pairs.size(), lines, files, lists.string().c_str());
  const std::vector<std::string> absent = AbsentPaths(pairs);

  auto db = DB::Open(DemoOptions(), database.string());
  Require(db.status(), "Open");
  const auto begin = std::chrono::steady_clock::now();
  Load(db->get(), pairs);
  Freshen(db->get(), pairs);
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const uint32_t levels = LevelsInUse(**db);
  std::printf("loaded in %.1f s into %u levels; 256 KiB memtables, 128 KiB tables, size ratio 4, 10 bits per key\n\n", load_seconds,
              levels);
  if (pairs.size() > 20000 && levels < kWantedLevels) Fail("the data is not spread over four levels");

  TextTable table({"lookups of", "number", "files considered", "skipped by filter", "blocks read", "false pos. predicted", "observed",
                   "us per lookup"});
  uint64_t wrong = 0;
  // Not printed: the first pass fills the block cache and the kernel's.
  wrong += LookUp(**db, "", pairs, nullptr, true).wrong + LookUp(**db, "", pairs, &absent, false).wrong;
  for (const bool use_filters : {true, false}) {
    const std::string suffix = use_filters ? ", filters on" : ", filters off";
    for (const auto* keys : {static_cast<const std::vector<std::string>*>(nullptr), &absent}) {
      const Round round = LookUp(**db, (keys == nullptr ? "present paths" : "absent paths") + suffix, pairs, keys, use_filters);
      wrong += round.wrong;
      table.Add(Row(round, use_filters));
    }
  }
  table.Print();
  std::puts("");
  auto stats = (*db)->GetStats();
  Require(stats.status(), "GetStats");
  PrintLevels(*stats);
  Require((*db)->Close(), "Close");
  if (wrong > 0) Fail(absl::StrCat(wrong, " wrong answers"));
  std::puts("\nevery present path was found with its md5, no absent one was found");
  return 0;
}

}  // namespace
}  // namespace tamis::tools

namespace {
std::string& Scratch() {
  static auto* path = new std::string;
  return *path;
}
}  // namespace

// tamis_demo [FOLDER WITH *.md5sums]
int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  Scratch() = (fs::temp_directory_path() / "tamis-demo-XXXXXX").string();
  if (mkdtemp(Scratch().data()) == nullptr) {
    std::perror("demo: a folder for the database");
    return 1;
  }
  // At every exit, that of a failed check included.
  std::atexit([] {
    std::error_code ignored;
    fs::remove_all(Scratch(), ignored);
  });
  return tamis::tools::Run(argc > 1 ? argv[1] : tamis::tools::kDefaultLists, fs::path(Scratch()) / "database");
}
