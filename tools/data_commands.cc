// put, get, delete, scan, compact.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tamis/filter_prefix.h"
#include "tools/bytes_text.h"
#include "tools/command.h"
#include "tools/prefix_rule.h"
#include "tools/progress.h"
#include "tools/record_io.h"

namespace tamis::tools {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  const bool standard_input = path == "-";
  std::FILE* in = standard_input ? stdin : std::fopen(path.c_str(), "rb");
  if (in == nullptr) return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::string bytes;
  char buffer[1 << 16];
  size_t got;
  while ((got = std::fread(buffer, 1, sizeof buffer, in)) > 0) bytes.append(buffer, got);
  const bool failed = std::ferror(in) != 0;
  if (!standard_input) std::fclose(in);
  if (failed) return absl::UnknownError(absl::StrCat("reading ", path, " failed"));
  return bytes;
}

struct PutArgs : CommonArgs {
  std::string key;
  std::optional<std::string> value;
  std::string value_file;
  bool sync = false;
};

absl::Status RunPut(const PutArgs& args) {
  const BytesText text(args.hex);
  auto key = text.Parse(args.key);
  if (!key.ok()) return absl::InvalidArgumentError(absl::StrCat("key: ", Text(key.status())));
  if (args.value.has_value() == !args.value_file.empty()) return absl::InvalidArgumentError("give either a value or --value-file");
  auto value = args.value ? text.Parse(*args.value) : ReadWholeFile(args.value_file);
  if (!value.ok()) return absl::Status(value.status().code(), absl::StrCat("value: ", Text(value.status())));
  auto db = OpenForWriting(Options(), args.database, /*create=*/true);
  if (!db.ok()) return db.status();
  WriteOptions options;
  options.sync = args.sync;
  if (absl::Status s = (*db)->Put(options, *key, *value); !s.ok()) return s;
  return (*db)->Close();
}

struct DeleteArgs : CommonArgs {
  std::string key;
  bool sync = false;
};

absl::Status RunDelete(const DeleteArgs& args) {
  auto key = BytesText(args.hex).Parse(args.key);
  if (!key.ok()) return absl::InvalidArgumentError(absl::StrCat("key: ", Text(key.status())));
  auto db = OpenForWriting(Options(), args.database, /*create=*/false);
  if (!db.ok()) return db.status();
  WriteOptions options;
  options.sync = args.sync;
  if (absl::Status s = (*db)->Delete(options, *key); !s.ok()) return s;
  return (*db)->Close();
}

struct GetArgs : CommonArgs {
  std::string key;
  bool raw = false;
};

absl::Status RunGet(const GetArgs& args) {
  const BytesText text(args.hex);
  auto key = text.Parse(args.key);
  if (!key.ok()) return absl::InvalidArgumentError(absl::StrCat("key: ", Text(key.status())));
  auto db = OpenForReading(args.database);
  if (!db.ok()) return db.status();
  PinnedValue value;
  absl::Status s = (*db)->Get(ReadOptions(), *key, &value);
  if (!s.ok() && !absl::IsNotFound(s)) return s;
  if (args.json) {
    Json json{{"key", text.Print(*key)}, {"found", s.ok()}};
    if (s.ok()) json["value"] = text.Print(value.view());
    std::puts(json.dump().c_str());
  } else if (s.ok() && args.raw) {
    std::fwrite(value.data(), 1, value.size(), stdout);
  } else if (s.ok()) {
    std::puts(text.Print(value.view()).c_str());
  }
  return s;
}

struct ScanArgs : CommonArgs {
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::optional<std::string> prefix;
  std::optional<uint64_t> limit;
  bool reverse = false;
  bool keys_only = false;
  bool count_only = false;
  RecordForm form = RecordForm::kTsv;
};

struct Range {
  std::optional<std::string> lower;
  std::optional<std::string> upper;   // exclusive
  std::optional<std::string> prefix;  // set: of all keys in the range
};

absl::StatusOr<Range> RangeOf(const ScanArgs& args) {
  const BytesText text(args.hex);
  Range range;
  if (args.prefix) {
    auto prefix = text.Parse(*args.prefix);
    if (!prefix.ok()) return absl::InvalidArgumentError(absl::StrCat("--prefix: ", Text(prefix.status())));
    range.lower = *prefix;
    range.upper = PrefixSuccessor(*prefix);
    range.prefix = *std::move(prefix);
  }
  if (args.from) {
    auto from = text.Parse(*args.from);
    if (!from.ok()) return absl::InvalidArgumentError(absl::StrCat("--from: ", Text(from.status())));
    if (!range.lower || *from > *range.lower) range.lower = *std::move(from);
  }
  if (args.to) {
    auto to = text.Parse(*args.to);
    if (!to.ok()) return absl::InvalidArgumentError(absl::StrCat("--to: ", Text(to.status())));
    if (!range.upper || *to < *range.upper) range.upper = *std::move(to);
  }
  return range;
}

void PrintEntry(const ScanArgs& args, std::string_view key, std::string_view value) {
  const BytesText text(args.hex);
  if (args.json) {
    Json json{{"key", text.Print(key)}};
    if (!args.keys_only) json["value"] = text.Print(value);
    std::puts(json.dump().c_str());
  } else if (args.keys_only) {
    std::puts(text.Print(key).c_str());
  } else {
    WriteRecord(args.form, text, key, value);
  }
}

absl::Status RunScan(const ScanArgs& args) {
  auto range = RangeOf(args);
  if (!range.ok()) return range.status();
  auto db = OpenForReading(args.database);
  if (!db.ok()) return db.status();
  ReadOptions options;
  if (range->prefix && !args.from && !args.to) {
    options.prefix = *range->prefix;
  } else {
    if (range->lower) options.lower_bound = *range->lower;
    if (range->upper) options.upper_bound = *range->upper;
  }
  options.fill_cache = false;
  auto iterator = (*db)->NewIterator(options);
  if (!iterator.ok()) return iterator.status();
  uint64_t count = 0;
  if (args.reverse) {
    (*iterator)->SeekToLast();
  } else {
    (*iterator)->SeekToFirst();
  }
  while ((*iterator)->Valid() && (!args.limit || count < *args.limit)) {
    if (!args.count_only) PrintEntry(args, (*iterator)->key(), (*iterator)->value());
    ++count;
    if (args.reverse) {
      (*iterator)->Prev();
    } else {
      (*iterator)->Next();
    }
  }
  if (absl::Status s = (*iterator)->status(); !s.ok()) return s;
  if (args.count_only) {
    std::puts(args.json ? Json{{"count", count}}.dump().c_str() : std::to_string(count).c_str());
  }
  return absl::OkStatus();
}

struct CompactArgs : CommonArgs {
  std::string prefix_rule;
  std::optional<std::string> from;
  std::optional<std::string> to;
};

absl::Status RunCompact(const CompactArgs& args) {
  ScanArgs as_scan;
  as_scan.hex = args.hex;
  as_scan.from = args.from;
  as_scan.to = args.to;
  auto range = RangeOf(as_scan);
  if (!range.ok()) return range.status();
  Options options;
  auto rule = ParsePrefixRule(args.prefix_rule);
  if (!rule.ok()) return rule.status();
  options.filter.prefix_rule = *rule;
  auto db = OpenForWriting(options, args.database, /*create=*/false);
  if (!db.ok()) return db.status();
  auto before = (*db)->GetStats();
  if (!before.ok()) return before.status();
  absl::Status compacted;
  {
    ProgressReport report("compacting", "bytes");
    compacted = (*db)->CompactRange(range->lower, range->upper, [&report](uint64_t done, uint64_t total) {
      report.Update(done, total);
      return true;
    });
  }
  if (!compacted.ok()) return compacted;
  auto after = (*db)->GetStats();
  if (!after.ok()) return after.status();
  if (args.json) {
    std::puts(Json{{"table_bytes_before", before->table_bytes}, {"table_bytes_after", after->table_bytes}}.dump().c_str());
  } else {
    std::printf("tables: %.1f MiB before, %.1f MiB after\n", static_cast<double>(before->table_bytes) / (1 << 20),
                static_cast<double>(after->table_bytes) / (1 << 20));
  }
  return (*db)->Close();
}

void RegisterPut(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<PutArgs>();
  CLI::App* command = app->add_subcommand("put", "Sets a key; makes the database if there is none");
  AddDatabase(command, args.get());
  command->add_option("key", args->key, "The key")->required();
  command->add_option("value", args->value, "The value");
  command->add_option("--value-file", args->value_file, "Take the bytes of this file as the value (- : standard input)");
  command->add_flag("--sync", args->sync, "Return only once it survives a power loss");
  AddHex(command, args.get());
  command->callback([args, exit_code] { *exit_code = Report(RunPut(*args)); });
}

void RegisterGet(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<GetArgs>();
  CLI::App* command = app->add_subcommand("get", "Prints the value of a key; exit code 1 if it has none");
  AddDatabase(command, args.get());
  command->add_option("key", args->key, "The key")->required();
  AddHex(command, args.get());
  AddJson(command, args.get());
  command->add_flag("--raw", args->raw, "Print the bytes of the value as they are, without a line end");
  command->callback([args, exit_code] { *exit_code = Report(RunGet(*args)); });
}

void RegisterDelete(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<DeleteArgs>();
  CLI::App* command = app->add_subcommand("delete", "Deletes a key, whether it has a value or not");
  AddDatabase(command, args.get());
  command->add_option("key", args->key, "The key")->required();
  command->add_flag("--sync", args->sync, "Return only once it survives a power loss");
  AddHex(command, args.get());
  command->callback([args, exit_code] { *exit_code = Report(RunDelete(*args)); });
}

void RegisterScan(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<ScanArgs>();
  CLI::App* command = app->add_subcommand("scan", "Prints keys and values in order, in a form that load reads");
  AddDatabase(command, args.get());
  command->add_option("--from", args->from, "First key (this one included)");
  command->add_option("--to", args->to, "Last key (this one excluded)");
  command->add_option("--prefix", args->prefix, "Only keys that begin with this");
  command->add_option("--limit", args->limit, "At most so many");
  command->add_flag("--reverse", args->reverse, "From the last to the first");
  command->add_flag("--keys-only", args->keys_only, "Without values");
  command->add_flag("--count", args->count_only, "Only how many");
  AddFormat(command, &args->form);
  AddHex(command, args.get());
  AddJson(command, args.get());
  command->callback([args, exit_code] { *exit_code = Report(RunScan(*args)); });
}

void RegisterCompact(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<CompactArgs>();
  CLI::App* command = app->add_subcommand("compact", "Merges everything (or a range) down to the last level");
  AddDatabase(command, args.get());
  command->add_option("--from", args->from, "First key (this one included)");
  command->add_option("--to", args->to, "Last key (this one excluded)");
  AddPrefixRule(command, &args->prefix_rule);
  AddHex(command, args.get());
  AddJson(command, args.get());
  command->callback([args, exit_code] { *exit_code = Report(RunCompact(*args)); });
}

}  // namespace

void RegisterDataCommands(CLI::App* app, int* exit_code) {
  RegisterPut(app, exit_code);
  RegisterGet(app, exit_code);
  RegisterDelete(app, exit_code);
  RegisterScan(app, exit_code);
  RegisterCompact(app, exit_code);
}

}  // namespace tamis::tools
