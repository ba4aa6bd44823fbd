// Scripts for pure decisions: text in, text out. A script is a file of cases separated by blank lines; a case is its input lines, a line
// "----", and the output expected. Lines that start with '#' are comments of the input.
//
// With TAMIS_REWRITE=1 in the environment the file is rewritten with the outputs as they are: read the diff before you keep it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace tamis::testing_support {

using ScriptLines = std::vector<std::string>;

// `run` gets the input lines of a case without comments and returns its output lines. `name` is a file of tests/scripts.
inline void RunScript(const std::string& name, const std::function<ScriptLines(const ScriptLines&)>& run) {
  const std::string path = std::string(TAMIS_SOURCE_DIR) + "/tests/scripts/" + name;
  const char* const rewrite_setting = std::getenv("TAMIS_REWRITE");
  const bool rewrite = rewrite_setting != nullptr && std::string(rewrite_setting) == "1";

  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  std::ostringstream rewritten;
  int line_number = 0;
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    if (line.empty()) continue;
    const int first_line = line_number;
    ScriptLines shown, input, expected;
    for (; line != "----"; ++line_number) {
      ASSERT_FALSE(line.empty()) << path << ":" << line_number << ": a case without \"----\"";
      shown.push_back(line);
      if (line[0] != '#') input.push_back(line);
      ASSERT_TRUE(std::getline(file, line)) << path << ":" << line_number << ": a case without \"----\"";
    }
    while (std::getline(file, line) && !line.empty()) {
      ++line_number;
      expected.push_back(line);
    }
    ++line_number;
    if (input.empty()) {  // the head comment
      rewritten << (cases++ == 0 ? "" : "\n");
      for (const std::string& text : shown) rewritten << text << "\n";
      rewritten << "----\n";
      continue;
    }
    const ScriptLines actual = run(input);
    if (!rewrite) {
      EXPECT_EQ(actual, expected) << path << ":" << first_line << ": " << shown.front();
    }
    rewritten << (cases++ == 0 ? "" : "\n");
    for (const std::string& text : shown) rewritten << text << "\n";
    rewritten << "----\n";
    for (const std::string& text : actual) rewritten << text << "\n";
  }
  EXPECT_GT(cases, 0) << path;
  file.close();
  if (rewrite) std::ofstream(path) << rewritten.str();
}

}  // namespace tamis::testing_support
