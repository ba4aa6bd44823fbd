// verify: reads a database from its files, without the engine's help, and checks all that can be checked.
//
// CURRENT, the manifest and what it says of levels; each listed log with the rule of recovery (a log may stop early, unless something
// proves that what lies past the stop had been durable); each listed table with every checksum, the order of its keys, its properties
// against its entries, and its filters against each of its keys. It goes on after a fault and reports all of them.
//
// A writer may be at work beside it and delete what was listed a moment ago: faults are believed only if CURRENT and the manifest's last
// record are the same afterwards; otherwise the whole check starts again.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "engine/version/file_names.h"
#include "engine/version/filter_file.h"
#include "engine/version/manifest.h"
#include "engine/write/batch_format.h"
#include "table/table_reader.h"
#include "tools/bytes_text.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "wal/log_reader.h"

namespace tamis::tools {
namespace {

using Json = nlohmann::ordered_json;
namespace in = tamis::internal;

constexpr std::chrono::seconds kPatienceWithWriter(10);

struct Fault {
  std::string file;
  std::optional<uint64_t> offset;
  std::string text;
};

struct Findings {
  std::vector<Fault> faults;
  std::vector<std::string> notes;  // worth saying, but legal
  uint64_t tables = 0;
  uint64_t table_bytes = 0;
  uint64_t entries = 0;
  uint64_t filter_files = 0;
  uint64_t logs = 0;
  uint64_t log_records = 0;
  // What told that the files are still the ones that were listed.
  uint64_t manifest_number = 0;
  uint64_t manifest_end = 0;
};

class Verifier {
 public:
  Verifier(const Directory& directory, ProgressReport* progress) : directory_(directory), progress_(progress) {}

  Findings Run() {
    absl::StatusOr<in::ManifestContents> contents = in::ReadManifest(directory_);
    if (!contents.ok()) {
      AddStatus(std::string(in::kCurrentName), contents.status());
      return std::move(findings_);
    }
    manifest_ = *std::move(contents);
    findings_.manifest_number = manifest_.manifest_number;
    findings_.manifest_end = manifest_.last_record_end;
    const std::string manifest_name = in::ManifestName(manifest_.manifest_number);
    if (manifest_.bytes_dropped > 0) {
      findings_.notes.push_back(absl::StrCat(manifest_name, ": ", manifest_.bytes_dropped, " bytes after offset ",
                                             manifest_.last_record_end, " are no record (", manifest_.drop_reason,
                                             "): an unfinished write"));
    }
    if (absl::Status s = manifest_.state.Check(); !s.ok()) AddStatus(manifest_name, s);
    CheckLogs();
    for (const auto& level : manifest_.state.levels) {
      for (const auto& [number, meta] : level) total_bytes_ += meta.size;
    }
    for (const auto& level : manifest_.state.levels) {
      for (const auto& [number, meta] : level) CheckTable(meta);
    }
    return std::move(findings_);
  }

 private:
  void Add(std::string file, std::optional<uint64_t> offset, std::string text) {
    findings_.faults.push_back({std::move(file), offset, std::move(text)});
  }
  void AddStatus(std::string file, const absl::Status& status) { Add(std::move(file), std::nullopt, Text(status)); }

  // The size of a file that must be there; adds the fault and returns nullopt if it is not.
  std::optional<uint64_t> SizeOf(const std::string& name) {
    auto size = directory_.FileSize(name);
    if (!size.ok()) {
      AddStatus(name, size.status());
      return std::nullopt;
    }
    if (!*size) Add(name, std::nullopt, "is missing: the manifest lists it");
    return *size;
  }

  void CheckLogs();
  void CheckLog(uint64_t number, uint64_t id);
  void JudgeStops();
  void CheckBatch(const std::string& name, const in::LogRecord& record);
  void CheckTable(const in::TableMeta& meta);
  void CheckTableAgainstMeta(const std::string& name, const in::TableMeta& meta, const in::TableProperties& properties);
  // The filter of a table's filter file; kind none, and a fault, if it is not good.
  in::LoadedFilter CheckFilterFile(const in::TableMeta& meta);

  struct Stop {
    uint64_t log = 0;
    uint64_t offset = 0;
    in::LogStop kind = in::LogStop::kNone;
    std::string reason;
  };

  const Directory& directory_;
  ProgressReport* const progress_;
  in::ManifestContents manifest_;
  Findings findings_;
  std::vector<Stop> stops_;
  in::ProvenPoint proof_;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
};

void Verifier::CheckLogs() {
  proof_ = manifest_.state.proven;
  for (const auto& [number, id] : manifest_.state.logs) {
    if (number >= manifest_.state.oldest_log) CheckLog(number, id);
  }
  JudgeStops();
}

void Verifier::CheckLog(uint64_t number, uint64_t id) {
  const std::string name = in::LogName(number);
  if (!SizeOf(name)) return;
  auto file = directory_.OpenRandomAccess(name);
  if (!file.ok()) return AddStatus(name, file.status());
  in::LogIdentity identity;
  identity.log_number = number;
  identity.log_id = id;
  identity.database_id = manifest_.state.identity.database_id;
  auto reader = in::LogReader::Open(*std::move(file), in::LogKind::kWriteAheadLog, identity);
  if (!reader.ok()) return AddStatus(name, reader.status());
  ++findings_.logs;
  in::LogRecord record;
  while ((*reader)->Next(&record)) {
    ++findings_.log_records;
    CheckBatch(name, record);
  }
  if (!(*reader)->status().ok()) return AddStatus(name, (*reader)->status());
  stops_.push_back({number, (*reader)->stop_offset(), (*reader)->stop(), (*reader)->stop_reason()});
  if (!(*reader)->end_mark_seen()) {
    if (absl::Status s = (*reader)->ScanForProof(); !s.ok()) return AddStatus(name, s);
  }
  proof_ = std::max(proof_, (*reader)->greatest_proof());
}

void Verifier::CheckBatch(const std::string& name, const in::LogRecord& record) {
  in::BatchReader batch(record.payload);
  in::EntryKind kind;
  std::string_view key;
  std::string_view value;
  uint64_t writes = 0;
  while (batch.Next(&kind, &key, &value)) ++writes;
  if (batch.damaged()) return Add(name, record.offset, Text(batch.status()));
  if (writes != record.count) {
    Add(name, record.offset, absl::StrCat("the record says ", record.count, " writes and holds ", writes));
  }
}

void Verifier::JudgeStops() {
  for (const Stop& stop : stops_) {
    const std::string name = in::LogName(stop.log);
    if (stop.kind != in::LogStop::kEndMark && in::ProvesLossOf(proof_, stop.log, stop.offset)) {
      Add(name, stop.offset,
          absl::StrCat(stop.reason.empty() ? "the log ends here" : stop.reason, ", but everything up to ", in::LogName(proof_.log_number),
                       " offset ", proof_.offset, " was known to be durable"));
    } else if (stop.kind == in::LogStop::kDamaged) {
      findings_.notes.push_back(absl::StrCat(name, ": the history ends at offset ", stop.offset, " (", stop.reason,
                                             "): an unfinished write, dropped at the next open"));
    }
  }
}

void Verifier::CheckTable(const in::TableMeta& meta) {
  const std::string name = in::TableName(meta.number);
  const uint64_t before = done_bytes_;
  done_bytes_ += meta.size;
  const std::optional<uint64_t> size = SizeOf(name);
  if (!size) return;
  if (*size != meta.size) return Add(name, std::nullopt, absl::StrCat("has ", *size, " bytes; the manifest says ", meta.size));
  auto file = directory_.OpenRandomAccess(name);
  if (!file.ok()) return AddStatus(name, file.status());
  in::TableOpenOptions options;
  options.table_id = meta.id;
  options.file_size = meta.size;
  auto reader = in::TableReader::Open(*std::move(file), options);
  if (!reader.ok()) return AddStatus(name, reader.status());
  if (!(*reader)->filter_refusal().ok()) Add(name, std::nullopt, absl::StrCat("filter refused: ", Text((*reader)->filter_refusal())));
  if (absl::Status s = (*reader)->prefix_filter_refusal(); !s.ok())
    Add(name, std::nullopt, absl::StrCat("prefix filter refused: ", Text(s)));
  CheckTableAgainstMeta(name, meta, (*reader)->properties());
  const in::LoadedFilter filter = meta.filter_file ? CheckFilterFile(meta) : in::LoadedFilter();
  const auto report = [&](uint64_t done, uint64_t) {
    progress_->Update(before + done, total_bytes_);
    return true;
  };
  if (absl::Status s = (*reader)->Verify(manifest_.state.identity.hash_seed, report, &filter.view); !s.ok()) AddStatus(name, s);
  ++findings_.tables;
  findings_.table_bytes += meta.size;
  findings_.entries += meta.entries;
}

void Verifier::CheckTableAgainstMeta(const std::string& name, const in::TableMeta& meta, const in::TableProperties& properties) {
  const auto compare = [&](const char* what, uint64_t in_manifest, uint64_t in_table) {
    if (in_manifest == in_table) return;
    Add(name, std::nullopt, absl::StrCat(what, ": the manifest says ", in_manifest, ", the table ", in_table));
  };
  compare("entries", meta.entries, properties.entries);
  compare("deletes", meta.deletes, properties.deletes);
  compare("distinct keys", meta.distinct_keys, properties.distinct_keys);
  compare("smallest sequence", meta.smallest_sequence, properties.smallest_sequence);
  compare("largest sequence", meta.largest_sequence, properties.largest_sequence);
  if (meta.smallest != properties.smallest_key || meta.largest != properties.largest_key) {
    Add(name, std::nullopt,
        absl::StrCat("key range: the manifest says '", EscapeBytes(meta.smallest), "' to '", EscapeBytes(meta.largest), "', the table '",
                     EscapeBytes(properties.smallest_key), "' to '", EscapeBytes(properties.largest_key), "'"));
  }
}

in::LoadedFilter Verifier::CheckFilterFile(const in::TableMeta& meta) {
  const std::string name = in::FilterName(meta.filter_file->number);
  if (!SizeOf(name)) return {};
  auto file = directory_.OpenRandomAccess(name);
  absl::StatusOr<in::LoadedFilter> filter = file.ok() ? in::ReadFilterFile(**file, *meta.filter_file, meta.id) : file.status();
  if (!filter.ok()) {
    AddStatus(name, filter.status());
    return {};
  }
  const FilterInfo info = filter->view.Info();
  if (info.seed != manifest_.state.identity.hash_seed) Add(name, 0, "is of another hash seed than the database");
  if (info.keys != meta.distinct_keys) {
    Add(name, 0, absl::StrCat("holds ", info.keys, " keys; the manifest says ", meta.distinct_keys, " of the table"));
  }
  ++findings_.filter_files;
  return *std::move(filter);
}

// Runs until what was checked is what is there, or patience ends.
absl::StatusOr<Findings> VerifyDirectory(const std::string& path, ProgressReport* progress) {
  auto directory = FileSystem::Posix()->OpenDirectory(path, FileSystem::OpenMode::kExisting, 0600);
  if (!directory.ok()) return directory.status();
  auto current = (*directory)->FileSize(in::kCurrentName);
  if (!current.ok()) return current.status();
  if (!*current) {
    // No CURRENT: an empty or foreign directory is a wrong path, the rest of a database is damage. The engine tells which.
    auto db = OpenForReading(path);
    return db.ok() ? absl::FailedPreconditionError(absl::StrCat(path, ": no CURRENT")) : db.status();
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatienceWithWriter;
  while (true) {
    Findings findings = Verifier(**directory, progress).Run();
    if (findings.faults.empty()) return findings;
    auto again = in::ReadManifest(**directory);
    const bool same =
        !again.ok() || (again->manifest_number == findings.manifest_number && again->last_record_end == findings.manifest_end);
    if (same || std::chrono::steady_clock::now() > deadline) return findings;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void PrintJson(const Findings& findings) {
  Json faults = Json::array();
  for (const Fault& fault : findings.faults) {
    Json json{{"file", fault.file}};
    if (fault.offset) json["offset"] = *fault.offset;
    json["text"] = fault.text;
    faults.push_back(std::move(json));
  }
  const Json json{{"ok", findings.faults.empty()},
                  {"tables", findings.tables},
                  {"table_bytes", findings.table_bytes},
                  {"entries", findings.entries},
                  {"filter_files", findings.filter_files},
                  {"logs", findings.logs},
                  {"log_records", findings.log_records},
                  {"faults", faults},
                  {"notes", findings.notes}};
  std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void PrintText(const Findings& findings) {
  for (const std::string& note : findings.notes) std::printf("note   %s\n", note.c_str());
  for (const Fault& fault : findings.faults) {
    const std::string where = fault.offset ? absl::StrCat(fault.file, " offset ", *fault.offset) : fault.file;
    std::printf("fault  %s: %s\n", where.c_str(), fault.text.c_str());
  }
  std::printf("%s: %llu tables (%.1f MiB, %llu entries), %llu logs (%llu records), %zu faults\n",
              findings.faults.empty() ? "ok" : "DAMAGED", static_cast<unsigned long long>(findings.tables),
              static_cast<double>(findings.table_bytes) / (1 << 20), static_cast<unsigned long long>(findings.entries),
              static_cast<unsigned long long>(findings.logs), static_cast<unsigned long long>(findings.log_records),
              findings.faults.size());
}

int RunVerify(const CommonArgs& args) {
  absl::StatusOr<Findings> findings = absl::InternalError("");
  {
    ProgressReport progress("verifying", "bytes");
    findings = VerifyDirectory(args.database, &progress);
  }
  if (!findings.ok()) return Report(findings.status());
  if (findings->faults.empty()) {
    // The last check is the one that counts for a user: it opens, and the engine finds nothing either.
    auto db = OpenForReading(args.database);
    if (absl::IsDataLoss(db.status())) {
      findings->faults.push_back({std::string(in::kCurrentName), std::nullopt, absl::StrCat("does not open: ", Text(db.status()))});
    } else if (!db.ok()) {
      return Report(db.status());
    }
  }
  if (args.json) {
    PrintJson(*findings);
  } else {
    PrintText(*findings);
  }
  return findings->faults.empty() ? kExitOk : kExitDamage;
}

}  // namespace

void RegisterVerifyCommand(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<CommonArgs>();
  CLI::App* command =
      app->add_subcommand("verify", "Reads every byte and checks every checksum, every invariant, filters against their keys");
  command->footer("Prints each fault with its file (and offset). Exit code 3 if there is any.");
  AddDatabase(command, args.get());
  AddJson(command, args.get());
  command->callback([args, exit_code] { *exit_code = RunVerify(*args); });
}

}  // namespace tamis::tools
