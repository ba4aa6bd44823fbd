// Runs a program as a shell does and takes what it says.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace tamis::testing_support {

struct Ran {
  int exit_code = -1;
  std::string output;  // standard output alone, unless the command line says 2>&1
};

inline Ran RunShell(const std::string& command_line) {
  Ran ran;
  std::FILE* pipe = popen(command_line.c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  size_t got;
  while ((got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0) ran.output.append(buffer, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  return ran;
}

}  // namespace tamis::testing_support
