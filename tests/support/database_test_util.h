// What tests of whole databases share: small settings, contents as a map, files on disk.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/version/file_names.h"
#include "tamis/db.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace tamis::testing_support {

using Contents = std::map<std::string, std::string>;

// Several levels from a few hundred KiB on; inline, so that a test decides what happens when.
inline Options SmallOptions() {
  Options options;
  options.background_threads = 0;
  options.memtable_bytes = 32 << 10;
  options.block_cache_bytes = 1 << 20;
  options.compaction.level_base_bytes = 32 << 10;
  options.compaction.target_file_bytes = 16 << 10;
  options.compaction.size_ratio = 4;
  options.table.block_bytes = 1024;
  return options;
}

// Everything in the database, read forward; the test fails at an error.
inline Contents ReadAll(const DB& db, const ReadOptions& options = {}) {
  Contents all;
  absl::StatusOr<std::unique_ptr<Iterator>> it = db.NewIterator(options);
  EXPECT_OK(it);
  if (!it.ok()) return all;
  std::string last;
  bool first = true;
  for ((*it)->SeekToFirst(); (*it)->Valid(); (*it)->Next()) {
    const std::string key((*it)->key());
    EXPECT_TRUE(first || key > last) << "keys out of order";
    all.emplace(key, (*it)->value());
    last = key;
    first = false;
  }
  EXPECT_OK((*it)->status());
  return all;
}

// The same read backward.
inline Contents ReadAllBackward(const DB& db, const ReadOptions& options = {}) {
  Contents all;
  absl::StatusOr<std::unique_ptr<Iterator>> it = db.NewIterator(options);
  EXPECT_OK(it);
  if (!it.ok()) return all;
  for ((*it)->SeekToLast(); (*it)->Valid(); (*it)->Prev()) all.emplace((*it)->key(), (*it)->value());
  EXPECT_OK((*it)->status());
  return all;
}

// The value, nullopt for NotFound; the test fails at another error.
inline std::optional<std::string> GetOr(const DB& db, std::string_view key, const ReadOptions& options = {}) {
  std::string value;
  const absl::Status status = db.Get(options, key, &value);
  if (absl::IsNotFound(status)) {
    EXPECT_EQ(status.message(), "");
    return std::nullopt;
  }
  EXPECT_OK(status);
  return value;
}

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void WriteBytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

// Names (links marked) and bytes of all entries: equal means untouched.
inline Contents FilesIn(const std::string& path) {
  Contents files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    if (entry.is_symlink()) {
      files[name] = "-> " + std::filesystem::read_symlink(entry.path()).string();
    } else {
      files[name] = entry.is_regular_file() ? ReadBytes(entry.path()) : "(directory)";
    }
  }
  return files;
}

// Of a live database this is what the death of its process would leave.
inline void CopyDatabase(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    std::filesystem::copy_file(entry.path(), to + "/" + entry.path().filename().string());
  }
}

// Names of the database's files of one kind, by ascending number.
inline std::vector<std::string> FilesOfKind(const std::string& path, internal::FileKind kind) {
  std::map<uint64_t, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    const std::optional<internal::FileName> parsed = internal::ParseFileName(name);
    if (parsed && parsed->kind == kind) found[parsed->number] = name;
  }
  std::vector<std::string> names;
  for (const auto& [number, name] : found) names.push_back(name);
  return names;
}

inline uint64_t BytesIn(const std::string& path) {
  uint64_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) total += entry.file_size();
  }
  return total;
}

inline std::string Key(uint64_t number, const char* prefix = "key") {
  std::string digits = std::to_string(number);
  return prefix + std::string(8 - std::min<size_t>(8, digits.size()), '0') + digits;
}

}  // namespace tamis::testing_support
