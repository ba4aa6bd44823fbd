// The flags of db_bench. Names and syntax are those of the familiar tool (--name=value, --name value, --noname, also with one dash), so
// that its users' scripts run. Workload flags have its defaults; engine flags that are left out have Tamis's. A flag of that tool that
// has no meaning here is accepted with one line of warning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tamis/options.h"

namespace tamis::bench {

struct Flags {
  // Workload.
  std::string benchmarks =
      "fillseq,fillsync,fillrandom,overwrite,readrandom,readmissing,multireadrandom,readseq,readreverse,seekrandom,readwhilewriting,"
      "deleteseq,deleterandom";
  int64_t num = 1000000;
  int64_t reads = -1;    // num
  int64_t writes = -1;   // num
  int64_t deletes = -1;  // num
  int64_t duration = 0;  // seconds; 0: by number of operations
  int64_t threads = 1;
  int64_t key_size = 16;
  int64_t value_size = 100;
  double compression_ratio = 0.5;
  int64_t batch_size = 1;
  int64_t seek_nexts = 0;
  bool reverse_iterator = false;
  bool use_existing_db = false;
  std::string db;
  bool sync = false;
  bool histogram = false;
  bool statistics = false;
  bool verify_checksum = true;
  bool readonly = false;
  int64_t benchmark_write_rate_limit = 0;  // bytes a second of the background writer; 0: none
  int64_t seed = 0;                        // 0: from the clock
  bool use_filters = true;                 // our own: false reads past the filters
  // Engine; unset: Tamis's default.
  std::optional<double> bloom_bits;  // negative: default, 0: none
  std::optional<std::string> compression_type;
  std::optional<int64_t> cache_size;
  std::optional<int64_t> write_buffer_size;
  std::optional<int64_t> max_write_buffer_number;
  std::optional<int64_t> max_background_jobs;
  std::optional<int64_t> block_size;
  std::optional<int64_t> open_files;
  std::optional<int64_t> num_levels;
  std::optional<int64_t> target_file_size_base;
  std::optional<int64_t> max_bytes_for_level_base;
  std::optional<int64_t> max_bytes_for_level_multiplier;
  std::optional<int64_t> level0_file_num_compaction_trigger;
  std::optional<int64_t> level0_slowdown_writes_trigger;
  std::optional<int64_t> level0_stop_writes_trigger;
  std::optional<int64_t> rate_limiter_bytes_per_sec;

  bool help = false;
  bool version = false;
};

// Warnings (one a flag) are appended to *warnings. InvalidArgument for a value that is none, or an argument that is no flag.
absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv, std::vector<std::string>* warnings);
// The flags that mean something, one a line, with defaults.
std::string FlagsHelp();
// Warnings as above, for values that have no counterpart.
Options EngineOptions(const Flags& flags, std::vector<std::string>* warnings);

}  // namespace tamis::bench
