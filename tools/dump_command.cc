// dump: one file of a database as text.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/aligned_buffer.h"
#include "engine/version/file_names.h"
#include "engine/version/manifest.h"
#include "engine/write/batch_format.h"
#include "table/table_reader.h"
#include "tools/bytes_text.h"
#include "tools/command.h"
#include "tools/prefix_rule.h"
#include "wal/log_reader.h"

namespace tamis::tools {
namespace {

using Json = nlohmann::ordered_json;
namespace in = tamis::internal;

constexpr uint64_t kMaxFilterFileBytes = uint64_t{1} << 40;

struct DumpArgs : CommonArgs {
  std::string file;
  bool summary = false;
  uint64_t limit = UINT64_MAX;
};

std::string_view AsView(const in::Id128& id) { return {reinterpret_cast<const char*>(id.data()), id.size()}; }

void PrintJson(const Json& json) { std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str()); }

// What a file says, in order: named facts first, then its entries.
class Printer {
 public:
  explicit Printer(const DumpArgs& args) : args_(args), text_(args.hex), left_(args.summary ? 0 : args.limit) {}

  void Fact(const std::string& name, const std::string& value) {
    if (args_.json) {
      PrintJson(Json{{"fact", name}, {"value", value}});
    } else {
      std::printf("%-26s %s\n", (name + ":").c_str(), value.c_str());
    }
  }
  void Fact(const std::string& name, uint64_t value) { Fact(name, absl::StrCat(value)); }
  void Fact(const std::string& name, std::string_view value) { Fact(name, std::string(value)); }
  void Fact(const std::string& name, const char* value) { Fact(name, std::string(value)); }

  bool WantsEntries() const { return left_ > 0; }
  void Entry(in::EntryKind kind, uint64_t sequence, std::string_view key, std::string_view value) {
    if (left_ == 0) return;
    --left_;
    const bool put = kind == in::EntryKind::kPut;
    if (args_.json) {
      Json json{{"sequence", sequence}, {"kind", put ? "put" : "delete"}, {"key", text_.Print(key)}};
      if (put) json["value"] = text_.Print(value);
      PrintJson(json);
    } else if (put) {
      std::printf("%llu put %s\t%s\n", static_cast<unsigned long long>(sequence), text_.Print(key).c_str(), text_.Print(value).c_str());
    } else {
      std::printf("%llu delete %s\n", static_cast<unsigned long long>(sequence), text_.Print(key).c_str());
    }
  }
  const BytesText& text() const { return text_; }
  bool json() const { return args_.json; }

 private:
  const DumpArgs& args_;
  const BytesText text_;
  uint64_t left_;
};

// `of`: "filter", or the like, before each name.
void PrintFilterInfo(const std::string& of, const FilterView& filter, Printer* out) {
  const FilterInfo info = filter.Info();
  out->Fact(of + " kind", FilterKindName(info.kind));
  if (info.kind == FilterKind::kNone) return;
  if (info.prefix_rule.kind != FilterPrefixKind::kNone) out->Fact(of + " rule", PrefixRuleText(info.prefix_rule));
  out->Fact(of + " bytes", info.size_bytes);
  out->Fact(of + " keys", info.keys);
  out->Fact(of + " lines of 64 bytes", info.lines);
  out->Fact(of + " probes", info.probes);
  out->Fact(of + " bits per key", absl::StrFormat("%.3f", info.bits_per_key));
  out->Fact(of + " FPR predicted", absl::StrFormat("%.5f %%", 100 * info.predicted_fpr));
  out->Fact(of + " share of set bits", absl::StrFormat("%.4f", filter.MeasuredFill()));
  out->Fact(of + " seed", absl::StrFormat("%016x", info.seed));
  out->Fact(of + " owner", HexBytes({reinterpret_cast<const char*>(info.owner.data()), info.owner.size()}));
}

// The filters of a table. Returns why one is refused: that is damage (or of a newer version), though the data is good.
absl::Status PrintFilters(const in::TableReader& table, Printer* out) {
  if (table.filter_refusal().ok()) {
    PrintFilterInfo("filter", table.filter(), out);
  } else {
    out->Fact("filter refused", Text(table.filter_refusal()));
  }
  if (table.prefix_filter().has_filter()) PrintFilterInfo("prefix filter", table.prefix_filter(), out);
  if (!table.prefix_filter_refusal().ok()) out->Fact("prefix filter refused", Text(table.prefix_filter_refusal()));
  return table.filter_refusal().ok() ? table.prefix_filter_refusal() : table.filter_refusal();
}

void PrintProperties(const in::TableProperties& properties, Printer* out) {
  out->Fact("entries", properties.entries);
  out->Fact("deletes", properties.deletes);
  out->Fact("distinct keys", properties.distinct_keys);
  out->Fact("smallest key", out->text().Print(properties.smallest_key));
  out->Fact("largest key", out->text().Print(properties.largest_key));
  out->Fact("smallest sequence", properties.smallest_sequence);
  out->Fact("largest sequence", properties.largest_sequence);
  out->Fact("bytes of keys", properties.raw_key_bytes);
  out->Fact("bytes of values", properties.raw_value_bytes);
  out->Fact("data blocks", properties.data_blocks);
  out->Fact("bytes of data blocks", properties.raw_data_bytes);
  out->Fact("the same, stored", properties.stored_data_bytes);
  out->Fact("level at creation", properties.level_at_creation);
  for (const auto& [tag, bytes] : properties.unknown) out->Fact(absl::StrCat("unknown property ", tag), HexBytes(bytes));
}

absl::Status DumpTable(const Directory& directory, const std::string& name, Printer* out) {
  auto opened = directory.OpenRandomAccess(name);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<const RandomAccessFile> file = *std::move(opened);
  if (file->size() < in::kFooterBytes) return absl::DataLossError(absl::StrCat(file->path(), ": too short for a table"));
  std::string footer_bytes(in::kFooterBytes, '\0');
  absl::Status read = file->Read(file->size() - in::kFooterBytes, absl::MakeSpan(footer_bytes.data(), footer_bytes.size()));
  if (!read.ok()) return read;
  auto footer = in::DecodeFooter(footer_bytes, file->size(), file->path());
  if (!footer.ok()) return footer.status();
  out->Fact("table id", HexBytes(AsView(footer->table_id)));
  out->Fact("file bytes", footer->file_size);
  out->Fact("required features", absl::StrFormat("%016x", footer->required_features));
  out->Fact("optional features", absl::StrFormat("%016x", footer->optional_features));
  out->Fact("index offset", footer->index.offset);
  out->Fact("index bytes", footer->index.size);
  out->Fact("meta index offset", footer->meta_index.offset);
  out->Fact("meta index bytes", footer->meta_index.size);
  in::TableOpenOptions options;
  options.table_id = footer->table_id;
  options.file_size = file->size();
  auto reader = in::TableReader::Open(file, options);
  if (!reader.ok()) return reader.status();
  PrintProperties((*reader)->properties(), out);
  const absl::Status refused = PrintFilters(**reader, out);
  if (!out->WantsEntries()) return refused;
  auto cursor = (*reader)->NewCursor(in::TableReadOptions(), /*read_ahead=*/true);
  for (cursor->SeekToFirst(); cursor->Valid() && out->WantsEntries(); cursor->Next()) {
    out->Entry(cursor->kind(), cursor->sequence(), cursor->key(), cursor->value());
  }
  return cursor->status().ok() ? refused : cursor->status();
}

void PrintLogHead(const in::LogReader& reader, Printer* out) {
  const in::LogIdentity& identity = reader.identity();
  out->Fact("log number", identity.log_number);
  out->Fact("log id", absl::StrFormat("%016x", identity.log_id));
  out->Fact("database id", HexBytes(AsView(identity.database_id)));
  out->Fact("file bytes", reader.file_size());
}

std::string RecordText(const in::LogRecord& record) {
  return absl::StrCat("offset ", record.offset, " to ", record.end_offset, ", sequences from ", record.first_sequence, ", ", record.count,
                      " of them, proven log ", record.proven.log_number, " offset ", record.proven.offset);
}

// Says why the log ends where it does; DataLoss if something shows that it went on.
absl::Status PrintLogEnd(in::LogReader* reader, Printer* out) {
  if (!reader->status().ok()) return reader->status();
  const uint64_t end = reader->stop_offset();
  if (reader->end_mark_seen()) {
    out->Fact("end", absl::StrCat("end mark before offset ", end));
    return absl::OkStatus();
  }
  if (absl::Status s = reader->ScanForProof(); !s.ok()) return s;
  const std::string reason = reader->stop() == in::LogStop::kZeros ? "no end mark, zeros follow" : reader->stop_reason();
  out->Fact("end", absl::StrCat("at offset ", end, ": ", reason));
  if (in::ProvesLossOf(reader->greatest_proof(), reader->identity().log_number, end)) {
    return absl::DataLossError(absl::StrCat(reader->path(), " offset ", end, ": ", reason, ", but bytes up to offset ",
                                            reader->greatest_proof().offset, " were known to be durable"));
  }
  return absl::OkStatus();
}

absl::Status PrintBatch(const in::LogRecord& record, const std::string& path, Printer* out) {
  in::BatchReader batch(record.payload);
  in::EntryKind kind;
  std::string_view key;
  std::string_view value;
  for (uint64_t sequence = record.first_sequence; batch.Next(&kind, &key, &value); ++sequence) out->Entry(kind, sequence, key, value);
  const absl::Status s = batch.status();
  return s.ok() ? s : absl::Status(s.code(), absl::StrCat(path, " offset ", record.offset, ": ", Text(s)));
}

absl::Status DumpLog(const Directory& directory, const std::string& name, in::LogKind kind, Printer* out) {
  auto file = directory.OpenRandomAccess(name);
  if (!file.ok()) return file.status();
  auto reader = in::LogReader::Open(*std::move(file), kind, std::nullopt);
  if (!reader.ok()) return reader.status();
  PrintLogHead(**reader, out);
  in::LogRecord record;
  absl::Status fault;
  while ((*reader)->Next(&record)) {
    if (!out->WantsEntries()) continue;
    out->Fact("record", RecordText(record));
    absl::Status s;
    if (kind == in::LogKind::kManifest) {
      auto edit = in::VersionEdit::Decode(record.payload);
      s = edit.status();
      if (edit.ok()) out->Fact("edit", "\n" + edit->DebugString());
    } else {
      s = PrintBatch(record, (*reader)->path(), out);
    }
    if (fault.ok()) fault = s;
  }
  if (absl::Status s = PrintLogEnd(reader->get(), out); !s.ok()) return s;
  return fault;
}

absl::Status DumpFilter(const Directory& directory, const std::string& name, Printer* out) {
  auto file = directory.OpenRandomAccess(name);
  if (!file.ok()) return file.status();
  if ((*file)->size() > kMaxFilterFileBytes) return absl::DataLossError(absl::StrCat((*file)->path(), ": too long for a filter"));
  in::AlignedBuffer bytes(static_cast<size_t>((*file)->size()));
  if (absl::Status s = (*file)->Read(0, absl::MakeSpan(bytes.data(), bytes.size())); !s.ok()) return s;
  auto filter = FilterView::Open(bytes.view(), FilterExpectations());
  if (!filter.ok()) return absl::Status(filter.status().code(), absl::StrCat((*file)->path(), ": ", Text(filter.status())));
  PrintFilterInfo("filter", *filter, out);
  return absl::OkStatus();
}

absl::Status DumpCurrent(const Directory& directory, Printer* out) {
  auto manifest = in::ReadCurrent(directory);
  if (!manifest.ok()) return manifest.status();
  out->Fact("manifest", *manifest);
  return absl::OkStatus();
}

absl::Status RunDump(const DumpArgs& args) {
  const std::filesystem::path path(args.file);
  const std::string name = path.filename().string();
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::optional<in::FileName> parsed = in::ParseFileName(name);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat(args.file, ": the name tells what a file is; known are CURRENT, MANIFEST-N, N.log, N.table, N.filter"));
  }
  auto directory = FileSystem::Posix()->OpenDirectory(parent, FileSystem::OpenMode::kExisting, 0600);
  if (!directory.ok()) return directory.status();
  Printer out(args);
  switch (parsed->kind) {
    case in::FileKind::kCurrent:
      return DumpCurrent(**directory, &out);
    case in::FileKind::kManifest:
      return DumpLog(**directory, name, in::LogKind::kManifest, &out);
    case in::FileKind::kLog:
      return DumpLog(**directory, name, in::LogKind::kWriteAheadLog, &out);
    case in::FileKind::kTable:
      return DumpTable(**directory, name, &out);
    case in::FileKind::kFilter:
      return DumpFilter(**directory, name, &out);
    case in::FileKind::kLock:
    case in::FileKind::kInfoLog:
    case in::FileKind::kTemporary:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(args.file, ": is text already, or unfinished"));
}

}  // namespace

void RegisterDumpCommand(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<DumpArgs>();
  CLI::App* command = app->add_subcommand("dump", "Prints one file of a database: CURRENT, a manifest, a log, a table or a filter");
  command->footer(
      "Prints what can be read even if a later part is damaged; exit code 3 tells that some is. A log that was in use when its\n"
      "process ended has no end mark and may end in an unfinished record: that is not damage.");
  command->add_option("file", args->file, "The file")->required()->type_name("FILE");
  command->add_flag("--summary", args->summary, "Without entries and records");
  command->add_option("--limit", args->limit, "At most so many entries");
  AddHex(command, args.get());
  AddJson(command, args.get());
  command->callback([args, exit_code] { *exit_code = Report(RunDump(*args)); });
}

}  // namespace tamis::tools
