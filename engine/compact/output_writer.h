// Writes the tables that a flush or compaction puts out: opens files as needed, cuts between user keys, syncs, and reads each table's
// footer, index and filters back before anybody relies on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/environment.h"
#include "engine/compact/filter_budget.h"
#include "engine/version/table_file.h"
#include "table/table_builder.h"

namespace tamis::internal {

struct OutputOptions {
  TableBuildOptions table;            // the table id is drawn for each file; bits per key are those of `filter_bits`
  FilterBits filter_bits;             // of the run that the tables belong to
  double filter_carry = 0;            // of the tables written to it before (FilterDivider)
  uint64_t target_file_bytes = 0;     // 0: one file, whatever its size
  RandomSource* random = nullptr;
  std::function<uint64_t()> new_file_number;
  std::shared_ptr<const TableFileContext> context;
  // Largest keys (inclusive fences) and sizes of the files of the level below the output level, by key: an output that overlaps more
  // than 10 target sizes of them is cut, so that its own compaction later stays small. May be empty.
  std::vector<std::pair<std::string, uint64_t>> grandparents;
};

// Not thread-safe. Destroyed without Finish, or after an error, it removes what it wrote.
class OutputWriter {
 public:
  explicit OutputWriter(OutputOptions options);
  ~OutputWriter();

  // REQUIRES: entries in internal-key order.
  absl::Status Add(std::string_view user_key, SequenceNumber sequence, EntryKind kind, std::string_view value);
  // Finishes the last file, syncs the directory, and hands the tables over (open). Empty if nothing was added.
  absl::StatusOr<std::vector<std::shared_ptr<TableFile>>> Finish();

  uint64_t entries() const { return entries_; }
  uint64_t bytes_written() const;
  double filter_carry() const { return filter_divider_.carry(); }

 private:
  absl::Status OpenFile();
  absl::Status CloseFile();
  bool ShouldCut(std::string_view next_key);

  const OutputOptions options_;
  FilterDivider filter_divider_;
  uint64_t number_ = 0;                    // of the file being written
  Id128 table_id_{};
  std::unique_ptr<AppendFile> file_;
  std::unique_ptr<TableBuilder> builder_;
  std::string last_key_;
  size_t grandparent_ = 0;
  uint64_t grandparent_bytes_ = 0;
  uint64_t entries_ = 0;
  uint64_t finished_bytes_ = 0;
  std::vector<uint64_t> numbers_;          // of all files made
  std::vector<std::shared_ptr<TableFile>> tables_;
  bool handed_over_ = false;
};

}  // namespace tamis::internal
