#include "tools/record_io.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tamis::tools {
namespace {

constexpr uint32_t kMaxKeyBytes = 65535;
constexpr uint32_t kMaxValueBytes = uint32_t{1} << 30;
constexpr size_t kHeaderBytes = 8;

uint32_t LoadLittle32(const unsigned char* from) {
  return static_cast<uint32_t>(from[0]) | static_cast<uint32_t>(from[1]) << 8 | static_cast<uint32_t>(from[2]) << 16 |
         static_cast<uint32_t>(from[3]) << 24;
}

void StoreLittle32(unsigned char* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<unsigned char>(value >> (8 * i));
}

absl::Status ReadFailure() { return absl::UnknownError(absl::StrCat("reading the input: ", std::strerror(errno))); }

}  // namespace

RecordReader::~RecordReader() { std::free(line_); }

absl::StatusOr<bool> RecordReader::Next(std::string* key, std::string* value) {
  return form_ == RecordForm::kTsv ? NextLine(key, value) : NextBinary(key, value);
}

absl::StatusOr<bool> RecordReader::NextLine(std::string* key, std::string* value) {
  const ssize_t length = getline(&line_, &line_capacity_, in_);
  if (length < 0) {
    if (std::ferror(in_) != 0) return ReadFailure();
    return false;
  }
  bytes_read_ += static_cast<uint64_t>(length);
  ++line_number_;
  std::string_view line(line_, static_cast<size_t>(length));
  if (line.back() == '\n') line.remove_suffix(1);
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos)
    return absl::InvalidArgumentError(absl::StrCat("line ", line_number_, ": no tab between key and value"));
  absl::StatusOr<std::string> parsed_key = text_.Parse(line.substr(0, tab));
  absl::StatusOr<std::string> parsed_value = text_.Parse(line.substr(tab + 1));
  for (const auto* parsed : {&parsed_key, &parsed_value}) {
    if (parsed->ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_number_, parsed == &parsed_key ? ", key: " : ", value: ", parsed->status().message()));
  }
  *key = *std::move(parsed_key);
  *value = *std::move(parsed_value);
  return true;
}

absl::StatusOr<bool> RecordReader::NextBinary(std::string* key, std::string* value) {
  unsigned char header[kHeaderBytes];
  const size_t got = std::fread(header, 1, kHeaderBytes, in_);
  if (std::ferror(in_) != 0) return ReadFailure();
  if (got == 0) return false;
  if (got != kHeaderBytes) return absl::InvalidArgumentError(absl::StrCat("the input ends inside the record at offset ", bytes_read_));
  const uint32_t key_length = LoadLittle32(header);
  const uint32_t value_length = LoadLittle32(header + 4);
  if (key_length > kMaxKeyBytes || value_length > kMaxValueBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the record at offset ", bytes_read_, " has a key of ", key_length, " and a value of ",
                                                   value_length, " bytes; at most ", kMaxKeyBytes, " and ", kMaxValueBytes,
                                                   " are allowed"));
  }
  for (auto [length, bytes] : {std::pair(key_length, key), std::pair(value_length, value)}) {
    if (absl::Status s = ReadExactly(length, bytes); !s.ok()) return s;
  }
  bytes_read_ += kHeaderBytes + key_length + value_length;
  return true;
}

absl::Status RecordReader::ReadExactly(uint64_t length, std::string* bytes) {
  // In steps: a length that lies must not allocate a gigabyte before the input turns out to be short.
  constexpr uint64_t kStep = uint64_t{1} << 20;
  bytes->clear();
  while (bytes->size() < length) {
    const size_t have = bytes->size();
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kStep, length - have));
    bytes->resize(have + want);
    if (std::fread(bytes->data() + have, 1, want, in_) != want) {
      if (std::ferror(in_) != 0) return ReadFailure();
      return absl::InvalidArgumentError(absl::StrCat("the input ends inside the record at offset ", bytes_read_));
    }
  }
  return absl::OkStatus();
}

void WriteRecord(RecordForm form, BytesText text, std::string_view key, std::string_view value) {
  if (form == RecordForm::kTsv) {
    std::string line = text.Print(key);
    line += '\t';
    line += text.Print(value);
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stdout);
    return;
  }
  unsigned char header[kHeaderBytes];
  StoreLittle32(header, static_cast<uint32_t>(key.size()));
  StoreLittle32(header + 4, static_cast<uint32_t>(value.size()));
  std::fwrite(header, 1, sizeof header, stdout);
  std::fwrite(key.data(), 1, key.size(), stdout);
  std::fwrite(value.data(), 1, value.size(), stdout);
}

}  // namespace tamis::tools
