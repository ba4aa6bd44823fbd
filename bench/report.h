// What a result needs beside it to mean anything: machine, kernel, commit.
#pragma once

#include <cstdint>
#include <string>

namespace tamis::bench {

struct MachineInfo {
  std::string cpu;  // model name
  int cores = 0;
  std::string cache;  // as /proc/cpuinfo says; empty if it does not
  uint64_t memory_bytes = 0;
  std::string kernel;
  std::string compiler;  // that built this program
  std::string commit;    // of the source folder at run time, with "+" if changed; empty without git
};
MachineInfo ReadMachineInfo();
std::string MachineLine(const MachineInfo& machine);  // one line of text
std::string MachineJson(const MachineInfo& machine);  // one object on one line
std::string JsonString(const std::string& text);      // quoted and escaped

// Bytes that this process caused to be written so far (/proc/self/io, write_bytes less cancelled_write_bytes); 0 if not known.
uint64_t ProcessBytesWritten();
// Sum of the allocated blocks of the regular files below `path`.
uint64_t DirectoryBytes(const std::string& path);

// Makes an empty folder in `parent` (empty: the system's folder for temporary files), which is removed at every normal exit of the program,
// that after an error included. Ends the program if it cannot. Call it once.
std::string MakeScratchFolder(const std::string& parent, const std::string& name);

}  // namespace tamis::bench
