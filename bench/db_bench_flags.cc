#include "bench/db_bench_flags.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tamis::bench {
namespace {

using Target = std::variant<bool Flags::*, int64_t Flags::*, double Flags::*, std::string Flags::*, std::optional<int64_t> Flags::*,
                            std::optional<double> Flags::*, std::optional<std::string> Flags::*>;

struct FlagSpec {
  const char* name;
  Target target;
  const char* help;
};

const std::vector<FlagSpec>& Specs() {
  static const auto* specs = new std::vector<FlagSpec>{
      {"benchmarks", &Flags::benchmarks, "names separated by commas, run in order; name[X5] runs it five times"},
      {"num", &Flags::num, "number of keys"},
      {"reads", &Flags::reads, "reads a thread; -1: num"},
      {"writes", &Flags::writes, "writes a thread; -1: num"},
      {"deletes", &Flags::deletes, "deletes a thread; -1: num"},
      {"duration", &Flags::duration, "seconds instead of a number of operations; 0: off"},
      {"threads", &Flags::threads, "threads that run each benchmark"},
      {"key_size", &Flags::key_size, "bytes of a key"},
      {"value_size", &Flags::value_size, "bytes of a value"},
      {"compression_ratio", &Flags::compression_ratio, "values compress to about this share"},
      {"batch_size", &Flags::batch_size, "writes in a batch; keys in a multireadrandom"},
      {"seek_nexts", &Flags::seek_nexts, "moves after each seek of seekrandom"},
      {"reverse_iterator", &Flags::reverse_iterator, "seekrandom moves backwards"},
      {"use_existing_db", &Flags::use_existing_db, "keep what is in --db; benchmarks that need an empty database are skipped"},
      {"db", &Flags::db, "directory of the database"},
      {"sync", &Flags::sync, "each write survives a power loss"},
      {"histogram", &Flags::histogram, "print the distribution of latencies"},
      {"statistics", &Flags::statistics, "print counters at the end"},
      {"verify_checksum", &Flags::verify_checksum, "reads check block checksums"},
      {"readonly", &Flags::readonly, "open read-only"},
      {"benchmark_write_rate_limit", &Flags::benchmark_write_rate_limit, "bytes a second of the writer in readwhilewriting; 0: no limit"},
      {"seed", &Flags::seed, "of keys and values; 0: from the clock"},
      {"use_filters", &Flags::use_filters, "reads ask the filters (Tamis only)"},
      {"bloom_bits", &Flags::bloom_bits, "filter bits per key; -1: Tamis's default, 0: none"},
      {"compression_type", &Flags::compression_type, "none or lz4"},
      {"cache_size", &Flags::cache_size, "bytes of block cache"},
      {"write_buffer_size", &Flags::write_buffer_size, "bytes of a memtable"},
      {"max_write_buffer_number", &Flags::max_write_buffer_number, "memtables, the one in use included"},
      {"max_background_jobs", &Flags::max_background_jobs, "background threads"},
      {"block_size", &Flags::block_size, "bytes of a data block"},
      {"open_files", &Flags::open_files, "table files held open; -1: all"},
      {"num_levels", &Flags::num_levels, "levels"},
      {"target_file_size_base", &Flags::target_file_size_base, "bytes of a table file"},
      {"max_bytes_for_level_base", &Flags::max_bytes_for_level_base, "bytes of the first level below L0"},
      {"max_bytes_for_level_multiplier", &Flags::max_bytes_for_level_multiplier, "size ratio of neighbouring levels"},
      {"level0_file_num_compaction_trigger", &Flags::level0_file_num_compaction_trigger, "L0 files that start a compaction"},
      {"level0_slowdown_writes_trigger", &Flags::level0_slowdown_writes_trigger, "L0 files that slow writes"},
      {"level0_stop_writes_trigger", &Flags::level0_stop_writes_trigger, "L0 files that stop writes"},
      {"rate_limiter_bytes_per_sec", &Flags::rate_limiter_bytes_per_sec, "bytes a second that compactions may write; 0: no limit"},
      {"help", &Flags::help, "print this"},
      {"version", &Flags::version, "print the version"},
  };
  return *specs;
}

const FlagSpec* Find(std::string_view name) {
  for (const FlagSpec& spec : Specs()) {
    if (name == spec.name) return &spec;
  }
  return nullptr;
}

bool ParseBool(const std::string& text, bool* value) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "1" || lower == "true" || lower == "t" || lower == "yes" || lower == "y") return *value = true, true;
  if (lower == "0" || lower == "false" || lower == "f" || lower == "no" || lower == "n") return *value = false, true;
  return false;
}

bool Assign(bool* to, const std::string& text) { return ParseBool(text, to); }
bool Assign(int64_t* to, const std::string& text) { return absl::SimpleAtoi(text, to); }
bool Assign(double* to, const std::string& text) { return absl::SimpleAtod(text, to); }
bool Assign(std::string* to, const std::string& text) { return *to = text, true; }
template <typename T>
bool Assign(std::optional<T>* to, const std::string& text) {
  T value{};
  if (!Assign(&value, text)) return false;
  *to = std::move(value);
  return true;
}

absl::Status Set(const FlagSpec& spec, const std::string& text, Flags* flags) {
  const bool ok = std::visit([&](auto member) { return Assign(&(flags->*member), text); }, spec.target);
  return ok ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("--", spec.name, ": '", text, "' is no value for it"));
}

// One argument split up, and whether the next argument is its value if there is one.
struct Argument {
  std::string name;
  std::optional<std::string> value;
};

absl::StatusOr<Argument> Split(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-')
    return absl::InvalidArgumentError(absl::StrCat("'", std::string(argument), "' is no flag"));
  argument.remove_prefix(argument[1] == '-' ? 2 : 1);
  Argument result;
  const size_t equals = argument.find('=');
  result.name = std::string(argument.substr(0, equals));
  if (equals != std::string_view::npos) result.value = std::string(argument.substr(equals + 1));
  return result;
}

// --undefok=a,b: flags that may be unknown without a word.
std::vector<std::string> Undefok(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const auto argument = Split(argv[i]);
    if (!argument.ok() || argument->name != "undefok") continue;
    if (argument->value) return absl::StrSplit(*argument->value, ',');
    if (i + 1 < argc) return absl::StrSplit(argv[i + 1], ',');
  }
  return {};
}

absl::Status Check(const Flags& flags) {
  const auto at_least = [](const char* name, int64_t value, int64_t least) {
    return value >= least ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("--", name, " must be at least ", least));
  };
  for (const absl::Status& s :
       {at_least("num", flags.num, 1), at_least("threads", flags.threads, 1), at_least("key_size", flags.key_size, 1),
        at_least("value_size", flags.value_size, 0), at_least("batch_size", flags.batch_size, 1)}) {
    if (!s.ok()) return s;
  }
  if (flags.key_size > 65534) return absl::InvalidArgumentError("--key_size must be at most 65534");
  if (!(flags.compression_ratio > 0 && flags.compression_ratio <= 1)) {
    return absl::InvalidArgumentError("--compression_ratio must be above 0 and at most 1");
  }
  return absl::OkStatus();
}

template <typename T>
void Take(const std::optional<int64_t>& flag, T* option) {
  if (flag && *flag >= 0) *option = static_cast<T>(*flag);
}

}  // namespace

absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv, std::vector<std::string>* warnings) {
  Flags flags;
  const std::vector<std::string> undefok = Undefok(argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::StatusOr<Argument> argument = Split(argv[i]);
    if (!argument.ok()) return argument.status();
    const bool next_is_value = i + 1 < argc && (argv[i + 1][0] != '-' || (argv[i + 1][1] >= '0' && argv[i + 1][1] <= '9'));
    const FlagSpec* spec = Find(argument->name);
    if (spec == nullptr && argument->name.rfind("no", 0) == 0) {
      const FlagSpec* negated = Find(std::string_view(argument->name).substr(2));
      if (negated != nullptr && std::holds_alternative<bool Flags::*>(negated->target)) {
        spec = negated;
        argument->value = "false";
      }
    }
    if (spec == nullptr) {
      if (!argument->value && next_is_value) ++i;
      const bool quiet = argument->name == "undefok" || std::find(undefok.begin(), undefok.end(), argument->name) != undefok.end();
      if (!quiet) warnings->push_back(absl::StrCat("--", argument->name, " has no meaning here and is ignored"));
      continue;
    }
    if (!argument->value) {
      if (std::holds_alternative<bool Flags::*>(spec->target)) {
        argument->value = "true";
      } else if (i + 1 < argc) {
        argument->value = argv[++i];
      } else {
        return absl::InvalidArgumentError(absl::StrCat("--", spec->name, " needs a value"));
      }
    }
    if (absl::Status s = Set(*spec, *argument->value, &flags); !s.ok()) return s;
  }
  if (absl::Status s = Check(flags); !s.ok()) return s;
  return flags;
}

std::string FlagsHelp() {
  const Flags defaults;
  std::string text;
  for (const FlagSpec& spec : Specs()) {
    std::string value = "Tamis's default";
    if (const auto* member = std::get_if<int64_t Flags::*>(&spec.target)) value = absl::StrCat(defaults.*(*member));
    if (const auto* member = std::get_if<double Flags::*>(&spec.target)) value = absl::StrCat(defaults.*(*member));
    if (const auto* member = std::get_if<bool Flags::*>(&spec.target)) value = defaults.*(*member) ? "true" : "false";
    if (const auto* member = std::get_if<std::string Flags::*>(&spec.target)) value = absl::StrCat("\"", defaults.*(*member), "\"");
    absl::StrAppend(&text, "  --", spec.name, ": ", spec.help, " (", value, ")\n");
  }
  return text;
}

Options EngineOptions(const Flags& flags, std::vector<std::string>* warnings) {
  Options options;
  options.read_only = flags.readonly;
  options.create_if_missing = !flags.readonly;
  if (flags.bloom_bits && *flags.bloom_bits == 0) options.filter.bits_per_key = 0;
  if (flags.bloom_bits && *flags.bloom_bits > 0) {
    const double bits = std::clamp(*flags.bloom_bits, kMinBitsPerKey, kMaxBitsPerKey);
    if (bits != *flags.bloom_bits) warnings->push_back(absl::StrCat("--bloom_bits=", *flags.bloom_bits, ": ", bits, " is used"));
    options.filter.allocation = FilterAllocation::kUniform;
    options.filter.bits_per_key = bits;
  }
  if (flags.compression_type) {
    const std::string& type = *flags.compression_type;
    options.table.compression = type == "none" ? Compression::kNone : Compression::kLz4;
    if (type != "none" && type != "lz4") warnings->push_back(absl::StrCat("--compression_type=", type, ": lz4 is used"));
  }
  Take(flags.cache_size, &options.block_cache_bytes);
  Take(flags.write_buffer_size, &options.memtable_bytes);
  if (flags.max_write_buffer_number)
    options.max_immutable_memtables = static_cast<uint32_t>(std::max<int64_t>(1, *flags.max_write_buffer_number - 1));
  Take(flags.max_background_jobs, &options.background_threads);
  Take(flags.block_size, &options.table.block_bytes);
  if (flags.open_files) options.max_open_files = *flags.open_files < 0 ? 1000000 : static_cast<uint32_t>(*flags.open_files);
  Take(flags.num_levels, &options.compaction.levels);
  Take(flags.target_file_size_base, &options.compaction.target_file_bytes);
  Take(flags.max_bytes_for_level_base, &options.compaction.level_base_bytes);
  Take(flags.max_bytes_for_level_multiplier, &options.compaction.size_ratio);
  Take(flags.level0_file_num_compaction_trigger, &options.compaction.l0_trigger);
  Take(flags.level0_slowdown_writes_trigger, &options.compaction.l0_slowdown);
  Take(flags.level0_stop_writes_trigger, &options.compaction.l0_stop);
  Take(flags.rate_limiter_bytes_per_sec, &options.background_bytes_per_second);
  return options;
}

}  // namespace tamis::bench
