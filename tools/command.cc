#include "tools/command.h"

#include <cstdio>
#include <utility>

namespace tamis::tools {

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kDataLoss:
      return kExitDamage;
    default:
      return kExitFailure;
  }
}

int Report(const absl::Status& status) {
  if (!status.ok() && !absl::IsNotFound(status)) {
    std::fprintf(stderr, "tamis: %s: %s\n", absl::StatusCodeToString(status.code()).c_str(), Text(status).c_str());
  }
  return ExitCodeOf(status);
}

void AddDatabase(CLI::App* command, CommonArgs* args) {
  command->add_option("database", args->database, "Directory of the database")->required()->type_name("DIR");
}

void AddJson(CLI::App* command, CommonArgs* args) { command->add_flag("--json", args->json, "Print JSON"); }

void AddHex(CLI::App* command, CommonArgs* args) {
  command->add_flag("--hex", args->hex, "Keys and values are hexadecimal digits (default: text with \\t \\n \\r \\0 \\\\ \\xHH)");
}

void AddFormat(CLI::App* command, RecordForm* form) {
  command
      ->add_option_function<std::string>(
          "--format", [form](const std::string& name) { *form = name == "records" ? RecordForm::kRecords : RecordForm::kTsv; },
          "tsv: lines of key, tab, value (default); records: u32 key length, u32 value length, key, value")
      ->check(CLI::IsMember({"tsv", "records"}));
}

absl::StatusOr<std::unique_ptr<DB>> OpenForReading(const std::string& path) {
  Options options;
  options.read_only = true;
  options.create_if_missing = false;
  return DB::Open(options, path);
}

absl::StatusOr<std::unique_ptr<DB>> OpenForWriting(Options options, const std::string& path, bool create) {
  options.create_if_missing = create;
  return DB::Open(options, path);
}

}  // namespace tamis::tools
