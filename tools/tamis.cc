// The `tamis` command: looks into and changes a database from the shell.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "tools/command.h"

namespace {

constexpr char kDescription[] =
    "Looks into and changes a Tamis database.\n"
    "\n"
    "Keys and values are text with escapes (\\t \\n \\r \\0 \\\\ \\xHH), or hexadecimal digits with --hex.\n"
    "get, scan, stats, filters, advise, verify and dump only read: they take no lock, write nothing, and may run beside a program that\n"
    "has the database open. put, delete, load and compact need the database for themselves. study makes its own, and removes them.";

constexpr char kFooter[] =
    "Exit codes: 0 done or found, 1 not found, 2 wrong usage, 3 damage found, 4 any other failure.\n"
    "\n"
    "Examples:\n"
    "  tamis put /tmp/example apple red\n"
    "  tamis get /tmp/example apple\n"
    "  tamis scan /tmp/example --prefix a --limit 10\n"
    "  sort words | awk '{print $1 \"\\t\" NR}' | tamis load /tmp/example -\n"
    "  tamis filters /tmp/example && tamis advise /tmp/example\n"
    "  tamis verify /tmp/example && tamis dump /tmp/example/CURRENT\n";

int Run(int argc, char** argv) {
  CLI::App app(kDescription, "tamis");
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  int exit_code = tamis::tools::kExitOk;
  tamis::tools::RegisterDataCommands(&app, &exit_code);
  tamis::tools::RegisterLoadCommand(&app, &exit_code);
  tamis::tools::RegisterStatsCommand(&app, &exit_code);
  tamis::tools::RegisterFiltersCommand(&app, &exit_code);
  tamis::tools::RegisterAdviseCommand(&app, &exit_code);
  tamis::tools::RegisterVerifyCommand(&app, &exit_code);
  tamis::tools::RegisterDumpCommand(&app, &exit_code);
  tamis::tools::RegisterStudyCommand(&app, &exit_code);
  app.footer(kFooter);  // after the commands: each would take it over
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tamis::tools::kExitOk : tamis::tools::kExitUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code;
  try {
    exit_code = Run(argc, argv);
  } catch (const std::exception& error) {  // out of memory; CLI11's own setup errors
    std::fprintf(stderr, "tamis: %s\n", error.what());
    return tamis::tools::kExitFailure;
  }
  // Output that did not arrive is a failure, whatever the command found.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::perror("tamis: standard output");
    return tamis::tools::kExitFailure;
  }
  return exit_code;
}
