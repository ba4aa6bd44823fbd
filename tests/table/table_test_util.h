// Files in memory, entries and tables for the tests of table/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status_util.h"
#include "table/cursor.h"
#include "table/table_builder.h"
#include "table/table_reader.h"
#include "tests/support/status_matchers.h"

namespace tamis::internal {

class StringFile final : public AppendFile {
 public:
  absl::Status Append(std::string_view bytes) override {
    if (size() + bytes.size() > fail_at) return absl::ResourceExhaustedError("test: disk full");
    contents.append(bytes);
    return absl::OkStatus();
  }
  void StartWriteback() override { ++writebacks; }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
  uint64_t size() const override { return contents.size(); }
  const std::string& path() const override { return path_; }

  std::string contents;
  uint64_t fail_at = UINT64_MAX;
  int writebacks = 0;

 private:
  std::string path_ = "dir/table";
};

class BytesFile final : public RandomAccessFile {
 public:
  explicit BytesFile(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::Status Read(uint64_t offset, absl::Span<char> buffer) const override {
    reads.fetch_add(1);
    uint64_t largest = largest_read.load();
    while (largest < buffer.size() && !largest_read.compare_exchange_weak(largest, buffer.size())) {
    }
    if (offset > bytes_.size() || bytes_.size() - offset < buffer.size()) return absl::DataLossError("dir/table: short read");
    if (offset < fail_end.load() && offset + buffer.size() > fail_begin.load()) return absl::DataLossError("dir/table: input/output error");
    if (!buffer.empty()) std::memcpy(buffer.data(), bytes_.data() + offset, buffer.size());
    return absl::OkStatus();
  }
  uint64_t size() const override { return bytes_.size(); }
  const std::string& path() const override { return path_; }
  void ReadAhead(uint64_t, uint64_t) const override {}

  mutable std::atomic<uint64_t> reads{0};
  mutable std::atomic<uint64_t> largest_read{0};
  std::atomic<uint64_t> fail_begin{0};  // reads that touch [fail_begin, fail_end) fail
  std::atomic<uint64_t> fail_end{0};

 private:
  std::string bytes_;
  std::string path_ = "dir/table";
};

struct TestEntry {
  std::string key;
  SequenceNumber sequence = 0;
  EntryKind kind = EntryKind::kPut;
  std::string value;
};

inline bool Before(const TestEntry& a, const TestEntry& b) { return CompareInternalKeys(a.key, a.sequence, b.key, b.sequence) < 0; }

inline void SortUnique(std::vector<TestEntry>* entries) {
  std::sort(entries->begin(), entries->end(), Before);
  entries->erase(std::unique(entries->begin(), entries->end(), [](const auto& a, const auto& b) { return !Before(a, b) && !Before(b, a); }),
                 entries->end());
}

// Keys made to tie: a common prefix, then few different bytes, so that prefixes of each other, trailing NULs and 0xff abound.
inline std::string TieKey(Random* random, std::string_view prefix, size_t most) {
  static constexpr char kAlphabet[] = {'\0', '\0', 'a', '\xff'};
  std::string key(prefix);
  for (size_t n = random->Uniform(most + 1); n > 0; --n) key.push_back(kAlphabet[random->Uniform(sizeof kAlphabet)]);
  return key;
}

inline std::vector<TestEntry> TieEntries(Random* random, size_t count, std::string_view prefix, size_t most, uint64_t versions) {
  std::vector<TestEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    const EntryKind kind = random->OneIn(5) ? EntryKind::kDelete : EntryKind::kPut;
    std::string value(kind == EntryKind::kDelete ? 0 : random->Uniform(12), static_cast<char>('a' + random->Uniform(26)));
    const uint64_t sequence = random->OneIn(50) ? kMaxSequence - random->Uniform(3) : 1 + random->Uniform(versions);
    entries.push_back({TieKey(random, prefix, most), sequence, kind, std::move(value)});
  }
  SortUnique(&entries);
  return entries;
}

inline void ExpectAt(const Cursor& cursor, const std::vector<TestEntry>& entries, size_t i) {
  ASSERT_EQ(cursor.Valid(), i < entries.size());
  if (!cursor.Valid()) return;
  ASSERT_EQ(cursor.key(), entries[i].key);
  ASSERT_EQ(cursor.sequence(), entries[i].sequence);
  ASSERT_EQ(cursor.kind(), entries[i].kind);
  ASSERT_EQ(cursor.value(), entries[i].value);
}

// Every seek to every entry's key and neighbours of it, at sequences around it, and both full scans.
inline void CheckCursor(Cursor* cursor, const std::vector<TestEntry>& entries) {
  size_t i = 0;
  for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next()) ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, i++));
  ASSERT_OK(cursor->status());
  ASSERT_EQ(i, entries.size());
  for (cursor->SeekToLast(); cursor->Valid(); cursor->Prev()) ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, --i));
  ASSERT_OK(cursor->status());
  ASSERT_EQ(i, 0u);
  const auto check = [&](const std::string& key, SequenceNumber sequence) {
    const TestEntry target{key, sequence, EntryKind::kPut, ""};
    const size_t at = static_cast<size_t>(std::lower_bound(entries.begin(), entries.end(), target, Before) - entries.begin());
    cursor->Seek(key, sequence);
    ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, at));
    if (at < entries.size()) {
      cursor->Next();
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, at + 1));
    }
    const bool same = at < entries.size() && entries[at].key == key && entries[at].sequence == sequence;
    const size_t last = same ? at : at - 1;  // of 0: past the end
    cursor->SeekForPrev(key, sequence);
    ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, last));
    if (last < entries.size()) {
      cursor->Prev();
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, entries, last - 1));
    }
  };
  for (const TestEntry& entry : entries) {
    std::vector<std::string> keys = {entry.key, entry.key + '\0', entry.key + '\xff', entry.key + std::string(9, '\0')};
    if (!entry.key.empty()) {
      keys.push_back(entry.key.substr(0, entry.key.size() - 1));
      for (const int step : {-1, 1}) {
        keys.push_back(entry.key);
        keys.back().back() = static_cast<char>(keys.back().back() + step);
      }
    }
    for (const std::string& key : keys) {
      for (const SequenceNumber sequence : {SequenceNumber{0}, entry.sequence - 1, entry.sequence, entry.sequence + 1, kMaxSequence}) {
        ASSERT_NO_FATAL_FAILURE(check(key, sequence));
      }
    }
  }
  ASSERT_NO_FATAL_FAILURE(check("", kMaxSequence));
  ASSERT_NO_FATAL_FAILURE(check(std::string(20, '\xff'), 0));
}

inline Id128 TestId(uint8_t first) {
  Id128 id{};
  id[0] = first;
  id[15] = 0x77;
  return id;
}

inline constexpr uint64_t kTestSeed = 0x1234567;

inline TableBuildOptions TestBuildOptions(Compression compression, uint32_t block_bytes) {
  TableBuildOptions options;
  options.table_id = TestId(1);
  options.block_bytes = block_bytes;
  options.compression = compression;
  options.hash_seed = kTestSeed;
  return options;
}

inline std::string BuildTable(const TableBuildOptions& options, const std::vector<TestEntry>& entries, TableSummary* summary = nullptr) {
  StringFile file;
  TableBuilder builder(options, &file);
  for (const TestEntry& entry : entries) EXPECT_OK(builder.Add(entry.key, entry.sequence, entry.kind, entry.value));
  absl::StatusOr<TableSummary> finished = builder.Finish();
  EXPECT_OK(finished);
  EXPECT_EQ(finished->file_size, file.contents.size());
  if (summary != nullptr) *summary = *finished;
  return file.contents;
}

inline absl::StatusOr<std::shared_ptr<TableReader>> OpenTable(std::shared_ptr<const BytesFile> file, const Id128& id,
                                                              std::shared_ptr<BlockCache> cache = nullptr) {
  TableOpenOptions options;
  options.table_id = id;
  options.file_size = file->size();
  options.cache = std::move(cache);
  return TableReader::Open(std::move(file), options);
}

inline absl::StatusOr<std::shared_ptr<TableReader>> OpenTable(std::string bytes, const Id128& id = TestId(1),
                                                              std::shared_ptr<BlockCache> cache = nullptr) {
  return OpenTable(std::make_shared<BytesFile>(std::move(bytes)), id, std::move(cache));
}

}  // namespace tamis::internal
