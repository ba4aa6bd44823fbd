// What the subcommands of `tamis` share: exit codes, opening, arguments that mean the same everywhere.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tamis/db.h"
#include "tools/record_io.h"

namespace tamis::tools {

// Promised to scripts; never renumber.
enum ExitCode : int {
  kExitOk = 0,
  kExitNotFound = 1,
  kExitUsage = 2,
  kExitDamage = 3,
  kExitFailure = 4,
};
int ExitCodeOf(const absl::Status& status);
// Prints the status as an error of the command (nothing for OK and NotFound) and returns its exit code.
int Report(const absl::Status& status);

struct CommonArgs {
  std::string database;
  bool json = false;
  bool hex = false;
};
void AddDatabase(CLI::App* command, CommonArgs* args);
void AddJson(CLI::App* command, CommonArgs* args);
void AddHex(CLI::App* command, CommonArgs* args);
void AddFormat(CLI::App* command, RecordForm* form);

// For looking: takes no lock and writes nothing, so it works beside a live writer.
absl::StatusOr<std::unique_ptr<DB>> OpenForReading(const std::string& path);
// For changing. With `create` a missing database is made.
absl::StatusOr<std::unique_ptr<DB>> OpenForWriting(Options options, const std::string& path, bool create);

// absl::string_view and std::string_view are two types in Debian's Abseil.
inline std::string Text(const absl::Status& status) { return std::string(status.message()); }
inline std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Each adds its commands to `app`; a command that runs leaves its result in *exit_code.
void RegisterDataCommands(CLI::App* app, int* exit_code);    // put, get, delete, scan, compact
void RegisterLoadCommand(CLI::App* app, int* exit_code);     // load
void RegisterStatsCommand(CLI::App* app, int* exit_code);    // stats
void RegisterFiltersCommand(CLI::App* app, int* exit_code);  // filters
void RegisterAdviseCommand(CLI::App* app, int* exit_code);   // advise
void RegisterVerifyCommand(CLI::App* app, int* exit_code);   // verify
void RegisterDumpCommand(CLI::App* app, int* exit_code);     // dump
void RegisterStudyCommand(CLI::App* app, int* exit_code);    // study

}  // namespace tamis::tools
