// A log file that is a string, with faults, and a reader of all that a string of log bytes holds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/coding.h"
#include "base/random.h"
#include "tamis/file_system.h"
#include "tests/support/status_matchers.h"
#include "wal/log_reader.h"
#include "wal/log_writer.h"

namespace tamis::internal {

// What a FakeLogFile did and what it shall do. It lives longer than the file.
struct FakeDisk {
  std::string bytes;  // of size reserved
  int writes = 0;
  int writes_through = 0;
  std::atomic<int> syncs{0};
  int truncates = 0;
  int closes = 0;
  std::vector<uint64_t> reserves;
  // Errors to return; OK lets the call through.
  std::function<absl::Status(uint64_t end)> on_reserve;
  absl::Status write_error;
  absl::Status sync_error;
  absl::Status truncate_error;
};

class FakeLogFile : public LogFile {
 public:
  explicit FakeLogFile(FakeDisk* disk) : disk_(disk) {}
  absl::Status Reserve(uint64_t end) override {
    if (disk_->on_reserve) {
      if (absl::Status status = disk_->on_reserve(end); !status.ok()) return status;
    }
    disk_->reserves.push_back(end);
    if (end > disk_->bytes.size()) disk_->bytes.resize(end);
    return absl::OkStatus();
  }
  uint64_t reserved() const override { return disk_->bytes.size(); }
  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    ++disk_->writes;
    return Store(offset, bytes);
  }
  absl::Status WriteThrough(uint64_t offset, std::string_view bytes) override {
    ++disk_->writes_through;
    return Store(offset, bytes);
  }
  absl::Status Sync() override {
    ++disk_->syncs;
    return disk_->sync_error;
  }
  absl::Status Truncate(uint64_t size) override {
    ++disk_->truncates;
    if (!disk_->truncate_error.ok()) return disk_->truncate_error;
    EXPECT_LE(size, disk_->bytes.size());
    disk_->bytes.resize(size);
    return absl::OkStatus();
  }
  absl::Status Close() override {
    ++disk_->closes;
    return absl::OkStatus();
  }
  const std::string& path() const override { return path_; }

 private:
  absl::Status Store(uint64_t offset, std::string_view bytes) {
    if (!disk_->write_error.ok()) return disk_->write_error;
    EXPECT_LE(offset + bytes.size(), disk_->bytes.size()) << "a write beyond what is reserved";
    std::memcpy(disk_->bytes.data() + offset, bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  FakeDisk* disk_;
  std::string path_ = "fake/000007.log";
};

class StringFile : public RandomAccessFile {
 public:
  explicit StringFile(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::Status Read(uint64_t offset, absl::Span<char> buffer) const override {
    if (offset < error_from_ && offset + buffer.size() <= error_from_) {
      if (offset + buffer.size() > bytes_.size()) return absl::DataLossError("read beyond the end");
      std::memcpy(buffer.data(), bytes_.data() + offset, buffer.size());
      return absl::OkStatus();
    }
    return absl::DataLossError("injected read error");
  }
  uint64_t size() const override { return bytes_.size(); }
  const std::string& path() const override { return path_; }
  void ReadAhead(uint64_t, uint64_t) const override {}
  void FailFrom(uint64_t offset) { error_from_ = offset; }

 private:
  std::string bytes_;
  std::string path_ = "fake/000007.log";
  uint64_t error_from_ = UINT64_MAX;
};

inline LogIdentity TestIdentity(uint64_t number = 7) {
  LogIdentity identity;
  identity.log_number = number;
  identity.log_id = 0x1122334455667788u + number;
  for (size_t i = 0; i < identity.database_id.size(); ++i) identity.database_id[i] = static_cast<uint8_t>(i + 1);
  return identity;
}

// A record as it was written or read, with a payload of its own.
struct OwnedRecord {
  uint64_t offset = 0;
  uint64_t end_offset = 0;
  ProvenPoint proven;
  uint64_t first_sequence = 0;
  uint32_t count = 0;
  std::string payload;
  friend bool operator==(const OwnedRecord&, const OwnedRecord&) = default;
};

struct LogContents {
  std::vector<OwnedRecord> records;
  LogStop stop = LogStop::kNone;
  uint64_t stop_offset = 0;
  std::string stop_reason;
  ProvenPoint proof_before_scan;
  ProvenPoint proof;  // ScanForProof included
};

// Reads all of `bytes`. An error status of the reader is a test failure.
inline LogContents ReadLog(const std::string& bytes, LogKind kind = LogKind::kWriteAheadLog) {
  LogContents contents;
  auto opened = LogReader::Open(std::make_shared<StringFile>(bytes), kind, std::nullopt);
  EXPECT_OK(opened);
  if (!opened.ok()) return contents;
  LogReader& reader = **opened;
  LogRecord r;
  while (reader.Next(&r)) {
    contents.records.push_back({r.offset, r.end_offset, r.proven, r.first_sequence, r.count, std::string(r.payload)});
  }
  EXPECT_OK(reader.status());
  contents.stop = reader.stop();
  contents.stop_offset = reader.stop_offset();
  contents.stop_reason = reader.stop_reason();
  contents.proof_before_scan = reader.greatest_proof();
  EXPECT_OK(reader.ScanForProof());
  contents.proof = reader.greatest_proof();
  return contents;
}

// A log being written, and what it should hold.
class LogUnderTest {
 public:
  explicit LogUnderTest(const LogIdentity& identity = TestIdentity()) {
    auto created = LogWriter::Create(std::make_unique<FakeLogFile>(&disk), identity);
    EXPECT_OK(created);
    writer = *std::move(created);
  }
  // `split` bytes of the payload are given as the head.
  void Add(const std::string& payload, size_t split = 0, bool durable = false, std::optional<ProvenPoint> proven = std::nullopt) {
    const ProvenPoint point = proven.value_or(writer->proven());
    ASSERT_OK(writer->Reserve(payload.size()));
    const std::string_view all(payload);
    OwnedRecord record{FragmentStart(writer->offset()), 0, point, sequence, static_cast<uint32_t>(records.size() % 5 + 1), payload};
    if (durable) {
      ASSERT_OK(writer->AppendDurable(point, record.first_sequence, record.count, all.substr(0, split), all.substr(split)));
      record.end_offset = writer->proven().offset;
    } else {
      ASSERT_OK(writer->Append(point, record.first_sequence, record.count, all.substr(0, split), all.substr(split)));
      record.end_offset = writer->offset();
    }
    sequence += record.count;
    records.push_back(std::move(record));
  }
  std::string Used() const { return disk.bytes.substr(0, writer->offset()); }

  FakeDisk disk;
  std::unique_ptr<LogWriter> writer;
  std::vector<OwnedRecord> records;
  uint64_t sequence = 1;
};

inline std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, 0);
  for (char& c : bytes) c = static_cast<char>(random.Next());
  return bytes;
}

// How many of `expected` `got` has; a test failure unless they are the first ones, unchanged.
inline size_t ExpectPrefix(const std::vector<OwnedRecord>& got, const std::vector<OwnedRecord>& expected, std::string_view where) {
  EXPECT_LE(got.size(), expected.size()) << where;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) EXPECT_TRUE(got[i] == expected[i]) << where << ", record " << i;
  return got.size();
}

}  // namespace tamis::internal
