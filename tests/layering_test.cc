// The direction of includes, as a table, held against every include line in the tree; and the claims that READMEs make about file names.
//
// A folder may include what the table lists for it, and nothing else. "public" stands for the public headers of a module ("tamis/x.h",
// in <module>/include/tamis/); a module that may be included at all may be included through its public headers too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tamis {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TAMIS_SOURCE_DIR;

// Folder -> folders it may include besides itself. engine/memtable and engine/version know nothing of each other; write, read and compact
// stand on both; the DB (engine itself) on all. "engine" as a target means its few files that all parts share, listed below.
const std::map<std::string, std::set<std::string>>& AllowedEdges() {
  static const auto* edges = new std::map<std::string, std::set<std::string>>{
      {"base", {}},
      {"filter", {}},
      {"wal", {"base"}},
      {"table", {"base", "filter"}},
      {"engine/memtable", {"base", "filter", "table"}},
      {"engine/version", {"base", "filter", "wal", "table"}},
      {"engine/write", {"base", "filter", "wal", "table", "engine/memtable", "engine/version"}},
      {"engine/read", {"base", "filter", "wal", "table", "engine/memtable", "engine/version"}},
      {"engine/compact", {"base", "filter", "wal", "table", "engine/memtable", "engine/version", "engine/read"}},
      {"engine", {"base", "filter", "wal", "table", "engine/memtable", "engine/version", "engine/write", "engine/read", "engine/compact"}},
  };
  return *edges;
}

// Engine headers that all its parts may include: values and functions that need nothing of the DB. The picker's is the shape of a tree
// as plain numbers, which a version describes itself with.
const std::set<std::string>& SharedEngineHeaders() {
  static const auto* shared = new std::set<std::string>{"engine/handle_state.h", "engine/compact/compaction_picker.h"};
  return *shared;
}

// Tools and benchmarks use public headers; these may look inside (inspection, micro benchmarks).
bool MaySeeInternals(const std::string& path) {
  static const std::regex allowed(
      "(tools/(dump|verify|inspect)[a-z_]*\\.(h|cc)|bench/filter_bench[a-z_]*\\.cc|bench/(block|memtable|wal)_bench\\.cc|bench/miss_path[a-z_]*\\.(h|cc))");
  return std::regex_match(path, allowed);
}

struct Include {
  std::string file;  // relative to the root
  int line = 0;
  std::string target;
  bool angle = false;
};

bool IsSource(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cc"; }

std::vector<std::string> SourceFiles(const std::string& folder) {
  std::vector<std::string> files;
  if (!fs::exists(kRoot / folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    if (entry.is_regular_file() && IsSource(entry.path())) files.push_back(fs::relative(entry.path(), kRoot).generic_string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Include> IncludesOf(const std::string& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  std::ifstream in(kRoot / file);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    std::smatch match;
    if (std::regex_search(text, match, pattern)) includes.push_back({file, line, match[2].str(), match[1].str() == "<"});
  }
  return includes;
}

std::string FolderOf(const std::string& file) {
  std::string best;
  for (const auto& [folder, unused] : AllowedEdges()) {
    if (file.rfind(folder + "/", 0) == 0 && folder.size() > best.size()) best = folder;
  }
  // Public headers of the engine are promises to all its parts: they are nobody's part.
  if (file.rfind("engine/include/", 0) == 0) return "engine";
  return best;
}

// The module whose public header "tamis/x.h" is; empty if none has it.
std::string OwnerOfPublicHeader(const std::string& target) {
  for (const char* module : {"base", "filter", "wal", "table", "engine"}) {
    if (fs::exists(kRoot / module / "include" / target)) return module;
  }
  return "";
}

bool IsPublic(const std::string& target) { return target.rfind("tamis/", 0) == 0; }

std::string Where(const Include& include) { return include.file + ":" + std::to_string(include.line) + " includes " + include.target; }

// Why the include is against the rules, or nothing.
std::optional<std::string> Fault(const Include& include) {
  if (include.angle || include.target.rfind("absl/", 0) == 0) return std::nullopt;
  const std::string from = FolderOf(include.file);
  const std::set<std::string>& allowed = AllowedEdges().at(from);
  if (IsPublic(include.target)) {
    const std::string owner = OwnerOfPublicHeader(include.target);
    if (owner.empty()) return Where(include) + ", which no module has";
    const std::string module = from.substr(0, from.find('/'));
    if (owner == module || allowed.count(owner) != 0) return std::nullopt;
    return Where(include) + " of " + owner + ", which " + from + " may not use";
  }
  if (!fs::exists(kRoot / include.target)) {
    const bool third_party = include.target == "xxhash.h" || include.target == "lz4.h";
    if (third_party) return std::nullopt;
    return Where(include) + ", which is no path from the root";
  }
  const std::string to = FolderOf(include.target);
  if (to == from || allowed.count(to) != 0 || SharedEngineHeaders().count(include.target) != 0) return std::nullopt;
  return Where(include) + " of " + to + ", which " + from + " may not use";
}

TEST(LayeringTest, IncludesFollowTheTable) {
  int seen = 0;
  for (const char* folder : {"base", "filter", "wal", "table", "engine"}) {
    for (const std::string& file : SourceFiles(folder)) {
      for (const Include& include : IncludesOf(file)) {
        ++seen;
        if (auto fault = Fault(include)) ADD_FAILURE() << *fault;
      }
    }
  }
  EXPECT_GT(seen, 100) << "nothing was looked at";
}

TEST(LayeringTest, TheTableRefusesWhatItShould) {
  EXPECT_TRUE(Fault({"base/coding.h", 1, "wal/log_format.h", false}));
  EXPECT_TRUE(Fault({"filter/hash.h", 1, "base/coding.h", false}));
  EXPECT_TRUE(Fault({"table/block.h", 1, "wal/log_format.h", false}));
  EXPECT_TRUE(Fault({"table/block.h", 1, "tamis/db.h", false}));
  EXPECT_TRUE(Fault({"engine/version/manifest.h", 1, "engine/memtable/memtable.h", false}));
  EXPECT_TRUE(Fault({"base/coding.h", 1, "no/such/file.h", false}));
  EXPECT_FALSE(Fault({"engine/version/manifest.h", 1, "wal/log_writer.h", false}));
  EXPECT_FALSE(Fault({"table/block.h", 1, "tamis/filter.h", false}));
}

TEST(LayeringTest, OnlyTheDatabaseIncludesItsOwnHeader) {
  for (const char* folder : {"base", "filter", "wal", "table", "engine", "bench"}) {
    for (const std::string& file : SourceFiles(folder)) {
      for (const Include& include : IncludesOf(file)) {
        if (include.target != "engine/db_impl.h") continue;
        EXPECT_TRUE(fs::path(file).parent_path() == "engine" || MaySeeInternals(file)) << Where(include);
      }
    }
  }
}

TEST(LayeringTest, PublicHeadersIncludeOnlyPublicHeaders) {
  for (const char* module : {"base", "filter", "wal", "table", "engine"}) {
    for (const std::string& file : SourceFiles(std::string(module) + "/include")) {
      for (const Include& include : IncludesOf(file)) {
        // Standard headers have no slash and no extension; <immintrin.h> and the like would tie a client to a machine.
        if (include.angle) {
          EXPECT_TRUE(include.target.find('/') == std::string::npos && include.target.find('.') == std::string::npos) << Where(include);
        } else {
          EXPECT_TRUE(IsPublic(include.target) || include.target.rfind("absl/", 0) == 0) << Where(include);
        }
      }
    }
  }
}

TEST(LayeringTest, PublicHeadersDoNotDependOnBuildFlags) {
  static const std::regex flags(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(NDEBUG|TAMIS_[A-Z_]*|__AVX2__|__SSE[0-9_]*__)\b)");
  for (const char* module : {"base", "filter", "wal", "table", "engine"}) {
    for (const std::string& file : SourceFiles(std::string(module) + "/include")) {
      std::ifstream in(kRoot / file);
      std::string text;
      for (int line = 1; std::getline(in, text); ++line)
        EXPECT_FALSE(std::regex_search(text, flags)) << file << ":" << line << ": " << text;
    }
  }
}

TEST(LayeringTest, ToolsAndBenchmarksUsePublicHeaders) {
  for (const char* folder : {"tools", "bench"}) {
    for (const std::string& file : SourceFiles(folder)) {
      if (MaySeeInternals(file)) continue;
      for (const Include& include : IncludesOf(file)) {
        if (include.angle) continue;
        for (const char* module : {"base/", "filter/", "wal/", "table/", "engine/"}) {
          EXPECT_NE(include.target.rfind(module, 0), 0U) << Where(include);
        }
      }
    }
  }
}

// "x.h/.cc" is short for "x.h" and "x.cc".
std::vector<std::string> NamesIn(const std::string& quoted) {
  const size_t slash = quoted.rfind("/.");
  if (slash == std::string::npos) return {quoted};
  const std::string first = quoted.substr(0, slash);
  return {first, first.substr(0, first.rfind('.')) + quoted.substr(slash + 1)};
}

// Names in backquotes that look like a file of ours must be one: relative to the root or the README's folder, or, for a bare name, anywhere
// in the tree.
TEST(ReadmeTest, FilesThatAreNamedExist) {
  static const std::regex quoted("`([A-Za-z0-9_./-]+\\.(?:h|cc|sh|cmake|md|json))`");
  std::set<std::string> known;
  std::vector<std::string> readmes = {"README.md"};
  for (const char* folder : {"base", "filter", "wal", "table", "engine", "tools", "bench", "tests"}) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      known.insert(entry.path().filename().string());
      if (entry.path().filename() == "README.md") readmes.push_back(fs::relative(entry.path(), kRoot).generic_string());
    }
  }
  int seen = 0;
  for (const std::string& readme : readmes) {
    std::ifstream in(kRoot / readme);
    std::stringstream whole;
    whole << in.rdbuf();
    const std::string text = whole.str();
    for (std::sregex_iterator match(text.begin(), text.end(), quoted), end; match != end; ++match) {
      for (const std::string& name : NamesIn((*match)[1])) {
        if (name.rfind('/', 0) == 0) continue;
        ++seen;
        const bool path_exists = fs::exists(kRoot / name) || fs::exists((kRoot / readme).parent_path() / name) ||
                                 (IsPublic(name) && !OwnerOfPublicHeader(name).empty());
        const bool bare_exists = name.find('/') == std::string::npos && known.count(name) != 0;
        EXPECT_TRUE(path_exists || bare_exists) << readme << " names " << name;
      }
    }
  }
  EXPECT_GT(seen, 5);
}

TEST(ReadmeTest, EachModuleHasOne) {
  for (const char* folder : {".", "base", "filter", "wal", "table", "engine", "tools", "bench"}) {
    EXPECT_TRUE(fs::exists(kRoot / folder / "README.md")) << folder;
  }
}

}  // namespace
}  // namespace tamis
