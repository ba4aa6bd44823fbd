// Log appends on a real file: through the mapping, and durably. The file lies in $TAMIS_BENCH_DIR, or the current directory: a tmpfs
// would make the second number meaningless.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/status_util.h"
#include "tamis/file_system.h"
#include "wal/log_reader.h"
#include "wal/log_writer.h"

namespace tamis::internal {
namespace {

// A put of a 16-byte key and a 100-byte value with the framing of a batch.
constexpr size_t kHeadBytes = 22;
constexpr size_t kBodyBytes = 116;
// A log of the size that a memtable lets it grow to.
constexpr uint64_t kLogBytes = 64 << 20;

class Logs {
 public:
  explicit Logs(benchmark::State& state) : state_(state) {
    const char* root = std::getenv("TAMIS_BENCH_DIR");
    path_ = Concat(root != nullptr ? root : ".", "/wal_bench.", static_cast<int>(getpid()));
    auto opened = FileSystem::Posix()->OpenDirectory(path_, FileSystem::OpenMode::kCreate, 0600);
    if (!opened.ok()) {
      Skip(opened.status());
      return;
    }
    directory_ = *std::move(opened);
    Next();
  }
  ~Logs() {
    writer_.reset();
    if (directory_ == nullptr) return;
    (void)directory_->Remove(name_);
    directory_.reset();
    (void)FileSystem::Posix()->RemoveDirectory(path_);
  }
  LogWriter* writer() { return writer_.get(); }
  void Skip(const absl::Status& status) { state_.SkipWithError(status.ToString().c_str()); }
  // A fresh log in place of the current one.
  void Next() {
    writer_.reset();
    if (!name_.empty()) (void)directory_->Remove(name_);
    name_ = Concat(++number_, ".log");
    auto file = directory_->CreateLog(name_);
    if (!file.ok()) return Skip(file.status());
    LogIdentity identity;
    identity.log_number = number_;
    identity.log_id = 0x5eed + number_;
    auto writer = LogWriter::Create(*std::move(file), identity);
    if (!writer.ok()) return Skip(writer.status());
    writer_ = *std::move(writer);
  }

 private:
  benchmark::State& state_;
  std::string path_;
  std::string name_;
  uint64_t number_ = 0;
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<LogWriter> writer_;
};

void Run(benchmark::State& state, bool durable) {
  Logs logs(state);
  const std::string head(kHeadBytes, 'h');
  const std::string body(kBodyBytes, 'b');
  uint64_t sequence = 1;
  for (auto _ : state) {
    LogWriter* writer = logs.writer();
    if (writer == nullptr) break;
    absl::Status status = writer->Reserve(kHeadBytes + kBodyBytes);
    if (status.ok()) {
      status = durable ? writer->AppendDurable(writer->proven(), sequence, 1, head, body)
                       : writer->Append(writer->proven(), sequence, 1, head, body);
    }
    if (!status.ok()) {
      logs.Skip(status);
      break;
    }
    ++sequence;
    if (writer->offset() >= kLogBytes) {
      state.PauseTiming();
      logs.Next();
      state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kHeadBytes + kBodyBytes));
}

void BM_LogAppend(benchmark::State& state) { Run(state, false); }
BENCHMARK(BM_LogAppend);

void BM_LogAppendDurable(benchmark::State& state) { Run(state, true); }
BENCHMARK(BM_LogAppendDurable)->UseRealTime();

}  // namespace
}  // namespace tamis::internal

BENCHMARK_MAIN();
