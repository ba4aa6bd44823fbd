// load: many records from a file or standard input.
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/command.h"
#include "tools/prefix_rule.h"
#include "tools/progress.h"
#include "tools/record_io.h"

namespace tamis::tools {
namespace {

// A batch is written at whichever comes first; larger ones gain nothing more per record.
constexpr uint64_t kBatchBytes = uint64_t{1} << 20;

struct LoadArgs : CommonArgs {
  std::string input = "-";
  RecordForm form = RecordForm::kTsv;
  uint64_t batch_records = 1000;
  std::optional<double> bits_per_key;
  std::optional<uint64_t> memtable_bytes;
  std::string prefix_rule;
};

struct Loaded {
  uint64_t records = 0;
  uint64_t bytes = 0;  // of keys and values
};

class InputFile {
 public:
  explicit InputFile(const std::string& path) : owned_(path != "-"), file_(owned_ ? std::fopen(path.c_str(), "rb") : stdin) {}
  ~InputFile() {
    if (owned_ && file_ != nullptr) std::fclose(file_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::FILE* get() const { return file_; }
  uint64_t Size() const {  // 0: not known
    struct stat about;
    if (fstat(fileno(file_), &about) != 0 || !S_ISREG(about.st_mode)) return 0;
    return static_cast<uint64_t>(about.st_size);
  }

 private:
  const bool owned_;
  std::FILE* const file_;
};

absl::Status CopyRecords(const LoadArgs& args, const InputFile& input, DB* db, Loaded* loaded) {
  RecordReader reader(input.get(), args.form, BytesText(args.hex));
  ProgressReport report("loading", "bytes");
  const uint64_t size = input.Size();
  WriteBatch batch;
  std::string key;
  std::string value;
  while (true) {
    absl::StatusOr<bool> more = reader.Next(&key, &value);
    if (!more.ok()) return more.status();
    if (*more) {
      batch.Put(key, value);
      loaded->bytes += key.size() + value.size();
    }
    if (batch.Count() > 0 && (!*more || batch.Count() >= args.batch_records || batch.ByteSize() >= kBatchBytes)) {
      if (absl::Status s = db->Write(batch); !s.ok()) return s;
      loaded->records += batch.Count();
      batch.Clear();
    }
    if (!*more) return absl::OkStatus();
    report.Update(reader.bytes_read(), size);
  }
}

absl::Status RunLoad(const LoadArgs& args) {
  if (args.batch_records == 0) return absl::InvalidArgumentError("--batch must be at least 1");
  InputFile input(args.input);
  if (input.get() == nullptr) return absl::FailedPreconditionError(absl::StrCat(args.input, ": ", std::strerror(errno)));
  Options options;
  if (args.bits_per_key) options.filter.bits_per_key = *args.bits_per_key;
  if (args.memtable_bytes) options.memtable_bytes = *args.memtable_bytes;
  auto rule = ParsePrefixRule(args.prefix_rule);
  if (!rule.ok()) return rule.status();
  options.filter.prefix_rule = *rule;
  auto db = OpenForWriting(options, args.database, /*create=*/true);
  if (!db.ok()) return db.status();
  Loaded loaded;
  const auto begin = std::chrono::steady_clock::now();
  absl::Status s = CopyRecords(args, input, db->get(), &loaded);
  if (s.ok()) s = (*db)->SyncLog();
  if (s.ok()) s = (*db)->Close();
  if (!s.ok()) return absl::Status(s.code(), absl::StrCat("after ", loaded.records, " records that were loaded: ", Text(s)));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (args.json) {
    std::puts(nlohmann::ordered_json{{"records", loaded.records}, {"bytes", loaded.bytes}, {"seconds", seconds}}.dump().c_str());
  } else {
    std::printf("loaded %llu records, %.1f MiB of keys and values, in %.2f s\n", static_cast<unsigned long long>(loaded.records),
                static_cast<double>(loaded.bytes) / (1 << 20), seconds);
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterLoadCommand(CLI::App* app, int* exit_code) {
  auto args = std::make_shared<LoadArgs>();
  CLI::App* command = app->add_subcommand("load", "Puts every record of a file or of standard input; makes the database if there is none");
  command->footer(
      "What was loaded before an error stays loaded; loading the same input again is harmless. All of it is durable when the\n"
      "command ends with exit code 0.");
  AddDatabase(command, args.get());
  command->add_option("input", args->input, "File to read, or - for standard input (default)");
  AddFormat(command, &args->form);
  command->add_option("--batch", args->batch_records, "Records a write batch (at most 1 MiB)");
  command->add_option("--bits-per-key", args->bits_per_key, "Filter memory of the tables written now, 2 to 24, or 0 for none");
  command->add_option("--memtable-bytes", args->memtable_bytes, "Size at which a memtable is written to a table");
  AddPrefixRule(command, &args->prefix_rule);
  AddHex(command, args.get());
  AddJson(command, args.get());
  command->callback([args, exit_code] { *exit_code = Report(RunLoad(*args)); });
}

}  // namespace tamis::tools
