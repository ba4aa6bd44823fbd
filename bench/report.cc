#include "bench/report.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tamis::bench {
namespace {

// "name : value" lines of a file in /proc; the first of that name.
std::string ProcField(const char* file, const std::string& name) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind(name, 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

uint64_t LeadingNumber(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

std::string FirstLineOf(const char* command) {
  struct Closer {
    void operator()(std::FILE* file) const { pclose(file); }
  };
  const std::unique_ptr<std::FILE, Closer> pipe(popen(command, "r"));
  char buffer[256];
  if (pipe == nullptr || std::fgets(buffer, sizeof buffer, pipe.get()) == nullptr) return "";
  std::string line(buffer);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

std::string& ScratchFolder() {
  static auto* path = new std::string;
  return *path;
}

}  // namespace

MachineInfo ReadMachineInfo() {
  MachineInfo machine;
  machine.cpu = ProcField("/proc/cpuinfo", "model name");
  machine.cores = static_cast<int>(std::thread::hardware_concurrency());
  machine.cache = ProcField("/proc/cpuinfo", "cache size");
  machine.memory_bytes = LeadingNumber(ProcField("/proc/meminfo", "MemTotal")) << 10;
  struct utsname about;
  if (uname(&about) == 0) machine.kernel = absl::StrCat(about.sysname, " ", about.release, " ", about.machine);
#if defined(__clang__)
  machine.compiler = absl::StrCat("clang ", __clang_version__);
#else
  machine.compiler = absl::StrCat("gcc ", __VERSION__);
#endif
  machine.commit = FirstLineOf("git -C '" TAMIS_SOURCE_DIR "' describe --always --dirty=+ --abbrev=12 2>/dev/null");
  return machine;
}

std::string MachineLine(const MachineInfo& machine) {
  return absl::StrFormat("%s, %d cores, %.1f GiB, %s, %s, commit %s", machine.cpu, machine.cores,
                         static_cast<double>(machine.memory_bytes) / (1 << 30), machine.kernel, machine.compiler,
                         machine.commit.empty() ? "unknown" : machine.commit);
}

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += absl::StrFormat("\\u%04x", c);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string MachineJson(const MachineInfo& machine) {
  return absl::StrCat("{\"cpu\":", JsonString(machine.cpu), ",\"cores\":", machine.cores, ",\"cache\":", JsonString(machine.cache),
                      ",\"memory_bytes\":", machine.memory_bytes, ",\"kernel\":", JsonString(machine.kernel),
                      ",\"compiler\":", JsonString(machine.compiler), ",\"commit\":", JsonString(machine.commit), "}");
}

uint64_t ProcessBytesWritten() {
  const uint64_t written = LeadingNumber(ProcField("/proc/self/io", "write_bytes"));
  const uint64_t cancelled = LeadingNumber(ProcField("/proc/self/io", "cancelled_write_bytes"));
  return written > cancelled ? written - cancelled : 0;
}

uint64_t DirectoryBytes(const std::string& path) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    struct stat about;
    if (lstat(entry->path().c_str(), &about) == 0 && S_ISREG(about.st_mode)) bytes += static_cast<uint64_t>(about.st_blocks) * 512;
  }
  return bytes;
}

std::string MakeScratchFolder(const std::string& parent, const std::string& name) {
  namespace fs = std::filesystem;
  std::string path = (parent.empty() ? fs::temp_directory_path() : fs::path(parent)) / absl::StrCat("tamis-", name, "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    std::perror(path.c_str());
    std::exit(1);
  }
  ScratchFolder() = path;
  std::atexit([] {
    std::error_code ignored;
    fs::remove_all(ScratchFolder(), ignored);
  });
  return path;
}

}  // namespace tamis::bench
