// peers: the same work on Tamis and on the stores that are installed, in one run.
//
// The databases are filled once (and the fill is repeated on scratch copies, if asked for); then each round runs each read step on one
// store after the other, the first one changing from round to round, so that what disturbs the machine disturbs all. Printed are medians,
// and the median of the ratios within a round with the least and the greatest.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/peers_engine.h"
#include "bench/peers_steps.h"
#include "bench/report.h"

namespace tamis::bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  StepSizes sizes;
  uint64_t cache_mib = 0;  // 0: 512 up to 5 M keys, 256 beyond
  uint64_t rounds = 5;
  uint64_t fill_rounds = 0;  // 0: as many as rounds up to 5 M keys, 1 beyond
  double bits_per_key = 10;
  std::vector<std::string> engines = {"tamis", "rocksdb", "leveldb", "lmdb"};
  std::string directory;
  std::string json;
};

constexpr char kUsage[] =
    "peers: the same work on Tamis and on the stores that are installed\n\n"
    "  --num=N           keys of 16 bytes with values of 100 bytes (2000000)\n"
    "  --cache_mib=N     block cache of each store (512 up to 5 M keys, 256 beyond)\n"
    "  --rounds=N        rounds of all read steps (5)\n"
    "  --fill_rounds=N   times that each store is filled (as rounds up to 5 M keys, 1 beyond)\n"
    "  --reads=N         gets in a step (1000000, at most num)\n"
    "  --seeks=N         seeks in a step (200000)\n"
    "  --bits_per_key=X  of the filters (10)\n"
    "  --engines=A,B     of tamis, rocksdb, leveldb, lmdb (all that are compiled in)\n"
    "  --dir=PATH        where the databases go, made and removed (a folder in /tmp)\n"
    "  --seed=N          (1)\n"
    "  --json=FILE       also write one JSON object a line\n";

std::unique_ptr<PeerEngine> MakeEngine(const std::string& name) {
  if (name == "tamis") return MakeTamis();
#ifdef TAMIS_HAVE_ROCKSDB
  if (name == "rocksdb") return MakeRocksDb();
#endif
#ifdef TAMIS_HAVE_LEVELDB
  if (name == "leveldb") return MakeLevelDb();
#endif
#ifdef TAMIS_HAVE_LMDB
  if (name == "lmdb") return MakeLmdb();
#endif
  return nullptr;
}

bool ParseSetting(const std::string& name, const std::string& value, Settings* settings) {
  const std::map<std::string, uint64_t*> numbers{{"num", &settings->sizes.keys},    {"cache_mib", &settings->cache_mib},
                                                 {"rounds", &settings->rounds},     {"fill_rounds", &settings->fill_rounds},
                                                 {"reads", &settings->sizes.reads}, {"seeks", &settings->sizes.seeks},
                                                 {"seed", &settings->sizes.seed}};
  if (const auto number = numbers.find(name); number != numbers.end()) return absl::SimpleAtoi(value, number->second);
  if (name == "bits_per_key") return absl::SimpleAtod(value, &settings->bits_per_key);
  if (name == "engines") settings->engines = absl::StrSplit(value, ',', absl::SkipEmpty());
  if (name == "dir") settings->directory = value;
  if (name == "json") settings->json = value;
  return name == "engines" || name == "dir" || name == "json";
}

Settings ParseSettings(int argc, char** argv) {
  Settings settings;
  settings.sizes.keys = 2000000;
  settings.sizes.reads = 1000000;
  settings.sizes.seeks = 200000;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (argument.rfind("--", 0) != 0 || equals == std::string::npos ||
        !ParseSetting(argument.substr(2, equals - 2), argument.substr(equals + 1), &settings)) {
      std::fprintf(stderr, "peers: not understood: %s\n\n%s", argument.c_str(), kUsage);
      std::exit(2);
    }
  }
  const bool small = settings.sizes.keys <= 5000000;
  settings.rounds = std::max<uint64_t>(1, settings.rounds);
  settings.sizes.keys = std::max<uint64_t>(1, settings.sizes.keys);
  settings.sizes.reads = std::clamp<uint64_t>(settings.sizes.reads, 1, settings.sizes.keys);
  settings.sizes.seeks = std::clamp<uint64_t>(settings.sizes.seeks, 1, settings.sizes.keys);
  if (settings.cache_mib == 0) settings.cache_mib = small ? 512 : 256;
  if (settings.fill_rounds == 0) settings.fill_rounds = small ? settings.rounds : 1;
  return settings;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Comparison {
 public:
  explicit Comparison(Settings settings) : settings_(std::move(settings)) {}

  void Run() {
    if (!settings_.json.empty()) json_.open(settings_.json, std::ios::app);
    if (!settings_.json.empty() && !json_) PeerFail("all", "--json", settings_.json);
    MakeEngines();
    PrintHead();
    for (uint64_t round = 0; round < settings_.fill_rounds; ++round) FillRound(round);
    WarmUp();
    for (uint64_t round = 0; round < settings_.rounds; ++round) ReadRound(round);
    for (auto& [name, engine] : engines_) engine->Close();
    PrintTable();
  }

 private:
  using Named = std::pair<std::string, std::unique_ptr<PeerEngine>>;

  void MakeEngines() {
    for (const std::string& name : settings_.engines) {
      std::unique_ptr<PeerEngine> engine = MakeEngine(name);
      if (engine == nullptr) {
        std::printf("%s: not compiled in\n", name.c_str());
        continue;
      }
      engines_.emplace_back(name, std::move(engine));
    }
    if (engines_.empty()) PeerFail("all", "--engines", "none of them is compiled in");
  }

  void PrintHead() {
    const MachineInfo machine = ReadMachineInfo();
    std::string versions;
    for (const auto& [name, engine] : engines_) absl::StrAppend(&versions, versions.empty() ? "" : ", ", engine->Version());
    std::printf(
        "%s\n%s\n%llu keys of 16 bytes, values of 100 bytes (half compressible), %g bits per key, %llu MiB block cache, 64 MiB memtable,\n"
        "LZ4 (LevelDB: Snappy, LMDB: none), one thread, two background threads; %llu rounds, %llu fills\n\n",
        MachineLine(machine).c_str(), versions.c_str(), static_cast<unsigned long long>(settings_.sizes.keys), settings_.bits_per_key,
        static_cast<unsigned long long>(settings_.cache_mib), static_cast<unsigned long long>(settings_.rounds),
        static_cast<unsigned long long>(settings_.fill_rounds));
    std::fflush(stdout);
    WriteJson(absl::StrCat("\"machine\":", MachineJson(machine), ",\"versions\":", JsonString(versions), ",\"keys\":", settings_.sizes.keys,
                           ",\"cache_mib\":", settings_.cache_mib, ",\"bits_per_key\":", settings_.bits_per_key));
  }

  PeerSettings SettingsFor(const std::string& name) const {
    PeerSettings settings;
    settings.path = settings_.directory + "/" + name;
    settings.keys = settings_.sizes.keys;
    settings.cache_bytes = settings_.cache_mib << 20;
    settings.bits_per_key = settings_.bits_per_key;
    return settings;
  }

  Named& Turn(uint64_t round, size_t i) { return engines_[(round + i) % engines_.size()]; }

  // The first fill makes the databases that are read; later ones are repeated on scratch copies.
  void FillRound(uint64_t round) {
    for (size_t i = 0; i < engines_.size(); ++i) {
      const std::string& name = Turn(round, i).first;
      const std::unique_ptr<PeerEngine> scratch = round == 0 ? nullptr : MakeEngine(name);
      PeerEngine* engine = round == 0 ? Turn(round, i).second.get() : scratch.get();
      const PeerSettings settings = SettingsFor(round == 0 ? name : name + "-again");
      engine->Open(settings);
      const FillResult result = Fill(engine, settings.path, settings_.sizes);
      if (round > 0) {
        engine->Close();
        fs::remove_all(settings.path);
      }
      Record(name, "fillrandom", round, result.ops_per_second,
             absl::StrCat(",\"settle_seconds\":", result.settle_seconds, ",\"bytes_written\":", result.bytes_written,
                          ",\"directory_bytes\":", result.directory_bytes));
      fills_[name].push_back(result);
    }
  }

  // Each store's cache as full as it gets, before anything counts.
  void WarmUp() {
    for (auto& [name, engine] : engines_) {
      engine->ScanAll();
      RunStep(engine.get(), name.c_str(), "readrandom", settings_.sizes, settings_.rounds + 1);
    }
  }

  void ReadRound(uint64_t round) {
    for (const std::string& step : ReadSteps()) {
      for (size_t i = 0; i < engines_.size(); ++i) {
        Named& turn = Turn(round, i);
        Record(turn.first, step, round, RunStep(turn.second.get(), turn.first.c_str(), step, settings_.sizes, round), "");
      }
    }
  }

  void Record(const std::string& engine, const std::string& step, uint64_t round, double rate, const std::string& more) {
    std::printf("round %llu  %-20s %-8s %12.0f op/s\n", static_cast<unsigned long long>(round), step.c_str(), engine.c_str(), rate);
    std::fflush(stdout);
    rates_[step][engine].push_back(rate);
    WriteJson(absl::StrCat("\"engine\":", JsonString(engine), ",\"step\":", JsonString(step), ",\"round\":", round,
                           ",\"ops_per_second\":", absl::StrFormat("%.1f", rate), more));
  }

  void WriteJson(const std::string& members) {
    if (json_.is_open()) json_ << "{" << members << "}" << std::endl;
  }

  void PrintTable() {
    std::vector<std::string> steps = ReadSteps();
    steps.insert(steps.begin(), "fillrandom");
    std::printf("\nop/s, median of rounds\n%-20s", "");
    for (const auto& [name, engine] : engines_) std::printf(" %12s", name.c_str());
    std::printf("\n");
    for (const std::string& step : steps) {
      std::printf("%-20s", step.c_str());
      for (const auto& [name, engine] : engines_) std::printf(" %12.0f", Median(rates_[step][name]));
      std::printf("\n");
    }
    if (rates_["fillrandom"].count("tamis") != 0 && engines_.size() > 1) PrintRatios(steps);
    std::printf("\nfill: settled after the last put, bytes written by the process until then, size of the directory (medians)\n");
    for (const auto& [name, engine] : engines_) {
      std::vector<double> settle, written, size;
      for (const FillResult& fill : fills_[name]) {
        settle.push_back(fill.settle_seconds);
        written.push_back(static_cast<double>(fill.bytes_written) / 1e9);
        size.push_back(static_cast<double>(fill.directory_bytes) / 1e9);
      }
      std::printf("%-20s %8.1f s %8.2f GB %8.2f GB\n", name.c_str(), Median(settle), Median(written), Median(size));
    }
  }

  void PrintRatios(const std::vector<std::string>& steps) {
    std::printf("\ntamis / peer, median of the ratios within a round [least, greatest]\n%-20s", "");
    for (const auto& [name, engine] : engines_) {
      if (name != "tamis") std::printf(" %22s", name.c_str());
    }
    std::printf("\n");
    for (const std::string& step : steps) {
      std::printf("%-20s", step.c_str());
      for (const auto& [name, engine] : engines_) {
        if (name == "tamis") continue;
        std::vector<double> ratios;
        for (size_t round = 0; round < rates_[step][name].size(); ++round)
          ratios.push_back(rates_[step]["tamis"][round] / rates_[step][name][round]);
        const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
        std::printf(" %22s", absl::StrFormat("%.2f [%.2f, %.2f]", Median(ratios), *least, *greatest).c_str());
      }
      std::printf("\n");
    }
  }

  const Settings settings_;
  std::vector<Named> engines_;
  std::map<std::string, std::map<std::string, std::vector<double>>> rates_;  // [step][engine][round]
  std::map<std::string, std::vector<FillResult>> fills_;
  std::ofstream json_;
};

}  // namespace
}  // namespace tamis::bench

int main(int argc, char** argv) {
  tamis::bench::Settings settings = tamis::bench::ParseSettings(argc, argv);
  settings.directory = tamis::bench::MakeScratchFolder(settings.directory, "peers");
  tamis::bench::Comparison(settings).Run();
  return 0;
}
