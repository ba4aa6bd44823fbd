// The benchmarks of db_bench, each as one thread runs it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <utility>

#include "bench/db_bench_run.h"

namespace tamis::bench {
namespace {

void DieUnlessOk(const absl::Status& status, const char* what) {
  if (!status.ok()) Die(what, status);
}

}  // namespace

void Die(const std::string& what, const absl::Status& status) {
  std::fflush(stdout);
  std::fprintf(stderr, "db_bench: %s: %s\n", what.c_str(), status.ToString().c_str());
  std::exit(1);
}

bool Benchmark::Until::Done(uint64_t operations) {
  if (seconds_ == 0) {
    if (left_ == 0) return true;
    left_ -= std::min(left_, operations);
    return false;
  }
  // The clock is read once in a hundred operations, as it would cost more than some of them.
  since_look_ += operations;
  if (since_look_ < 100) return false;
  since_look_ = 0;
  return NowMicros() - begin_ >= static_cast<uint64_t>(seconds_) * 1000000;
}

ReadOptions Benchmark::ReadSettings() const {
  ReadOptions options;
  options.verify_checksums = flags_.verify_checksum;
  options.use_filters = flags_.use_filters;
  return options;
}

WriteOptions Benchmark::WriteSettings() const {
  WriteOptions options;
  options.sync = plan_.sync;
  return options;
}

void Benchmark::Write(ThreadState* thread, const std::function<uint64_t(uint64_t)>& index_of) {
  const WriteOptions options = WriteSettings();
  const uint64_t value_bytes = static_cast<uint64_t>(flags_.value_size);
  Until until(flags_.duration, Writes());
  WriteBatch batch;
  std::string key;
  uint64_t written = 0;
  while (!until.Done(plan_.batch)) {
    batch.Clear();
    for (uint64_t i = 0; i < plan_.batch; ++i) {
      IndexKey(index_of(written++), plan_.key_bytes, &key);
      batch.Put(key, thread->values.Next(value_bytes));
    }
    DieUnlessOk(db_->Write(options, batch), "put");
    thread->stats.AddBytes(plan_.batch * (plan_.key_bytes + value_bytes));
    thread->stats.Finished(plan_.batch, "write");
  }
}

void Benchmark::WriteSequential(ThreadState* thread) {
  Write(thread, [this](uint64_t i) { return i % plan_.num; });
}

void Benchmark::WriteRandom(ThreadState* thread) {
  Write(thread, [this, thread](uint64_t) { return thread->random.Uniform(plan_.num); });
}

void Benchmark::WriteUniqueRandom(ThreadState* thread) {
  std::vector<uint64_t> order(plan_.num);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t i = plan_.num; i > 1; --i) std::swap(order[i - 1], order[thread->random.Uniform(i)]);
  thread->stats.Start();  // the shuffle is not part of it
  Write(thread, [this, &order](uint64_t i) { return order[i % plan_.num]; });
}

void Benchmark::DeleteKeys(ThreadState* thread, const std::function<uint64_t(uint64_t)>& index_of) {
  const WriteOptions options = WriteSettings();
  Until until(flags_.duration, Deletes());
  WriteBatch batch;
  std::string key;
  uint64_t deleted = 0;
  while (!until.Done(plan_.batch)) {
    batch.Clear();
    for (uint64_t i = 0; i < plan_.batch; ++i) {
      IndexKey(index_of(deleted++), plan_.key_bytes, &key);
      batch.Delete(key);
    }
    DieUnlessOk(db_->Write(options, batch), "delete");
    thread->stats.Finished(plan_.batch, "delete");
  }
}

void Benchmark::DeleteSequential(ThreadState* thread) {
  DeleteKeys(thread, [this](uint64_t i) { return i % plan_.num; });
}

void Benchmark::DeleteRandom(ThreadState* thread) {
  DeleteKeys(thread, [this, thread](uint64_t) { return thread->random.Uniform(plan_.num); });
}

void Benchmark::ReadRandom(ThreadState* thread) {
  const ReadOptions options = ReadSettings();
  Until until(flags_.duration, Reads());
  std::string key;
  PinnedValue value;
  uint64_t found = 0;
  uint64_t reads = 0;
  uint64_t bytes = 0;
  while (!until.Done(1)) {
    IndexKey(thread->random.Uniform(plan_.num), plan_.key_bytes, &key);
    const absl::Status s = db_->Get(options, key, &value);
    ++reads;
    if (s.ok()) {
      ++found;
      bytes += key.size() + value.size();
    } else if (!absl::IsNotFound(s)) {
      Die("get", s);
    }
    thread->stats.Finished(1, "read");
  }
  value.Reset();
  thread->stats.AddBytes(bytes);
  thread->stats.AddFound(found, reads);
}

void Benchmark::MultiReadRandom(ThreadState* thread) {
  const ReadOptions options = ReadSettings();
  const size_t group = static_cast<size_t>(plan_.batch);
  Until until(flags_.duration, Reads());
  std::vector<std::string> keys(group);
  std::vector<std::string_view> views(group);
  std::vector<PinnedValue> values(group);
  std::vector<absl::Status> statuses(group);
  uint64_t found = 0;
  uint64_t reads = 0;
  uint64_t bytes = 0;
  while (!until.Done(group)) {
    for (size_t i = 0; i < group; ++i) {
      IndexKey(thread->random.Uniform(plan_.num), plan_.key_bytes, &keys[i]);
      views[i] = keys[i];
    }
    db_->MultiGet(options, views, absl::MakeSpan(values), absl::MakeSpan(statuses));
    for (size_t i = 0; i < group; ++i) {
      if (statuses[i].ok()) {
        ++found;
        bytes += keys[i].size() + values[i].size();
      } else if (!absl::IsNotFound(statuses[i])) {
        Die("multiget", statuses[i]);
      }
    }
    reads += group;
    thread->stats.Finished(group, "read");
  }
  values.clear();
  thread->stats.AddBytes(bytes);
  thread->stats.AddFound(found, reads);
}

void Benchmark::Scan(ThreadState* thread, bool forward) {
  auto iterator = db_->NewIterator(ReadSettings());
  DieUnlessOk(iterator.status(), "iterator");
  Iterator& it = **iterator;
  Until until(flags_.duration, Reads());
  uint64_t bytes = 0;
  for (forward ? it.SeekToFirst() : it.SeekToLast(); it.Valid() && !until.Done(1); forward ? it.Next() : it.Prev()) {
    bytes += it.key().size() + it.value().size();
    thread->stats.Finished(1, "read");
  }
  DieUnlessOk(it.status(), "scan");
  thread->stats.AddBytes(bytes);
}

void Benchmark::ReadSequential(ThreadState* thread) { Scan(thread, true); }
void Benchmark::ReadReverse(ThreadState* thread) { Scan(thread, false); }

void Benchmark::SeekRandom(ThreadState* thread) {
  auto iterator = db_->NewIterator(ReadSettings());
  DieUnlessOk(iterator.status(), "iterator");
  const std::unique_ptr<Iterator> it = *std::move(iterator);
  Until until(flags_.duration, Reads());
  std::string key;
  uint64_t found = 0;
  uint64_t seeks = 0;
  uint64_t bytes = 0;
  while (!until.Done(1)) {
    IndexKey(thread->random.Uniform(plan_.num), plan_.key_bytes, &key);
    it->Seek(key);
    ++seeks;
    if (it->Valid() && it->key() == key) ++found;
    for (int64_t i = 0; i < flags_.seek_nexts && it->Valid(); ++i) {
      bytes += it->key().size() + it->value().size();
      flags_.reverse_iterator ? it->Prev() : it->Next();
    }
    DieUnlessOk(it->status(), "seek");
    thread->stats.Finished(1, "seek");
  }
  thread->stats.AddBytes(bytes);
  thread->stats.AddFound(found, seeks);
}

void Benchmark::ReadWhileWriting(ThreadState* thread) {
  if (thread->id == 0) {
    WriteUntilOthersAreDone(thread);
  } else {
    ReadRandom(thread);
    done_threads_.fetch_add(1);
  }
}

void Benchmark::WriteUntilOthersAreDone(ThreadState* thread) {
  const WriteOptions options = WriteSettings();
  const uint64_t value_bytes = static_cast<uint64_t>(flags_.value_size);
  const uint64_t others = static_cast<uint64_t>(flags_.threads);
  const uint64_t begin = NowMicros();
  std::string key;
  uint64_t bytes = 0;
  while (done_threads_.load() < others) {
    IndexKey(thread->random.Uniform(plan_.num), plan_.key_bytes, &key);
    DieUnlessOk(db_->Put(options, key, thread->values.Next(value_bytes)), "put");
    bytes += key.size() + value_bytes;
    const int64_t limit = flags_.benchmark_write_rate_limit;
    while (limit > 0 && done_threads_.load() < others &&
           static_cast<double>(bytes) > static_cast<double>(limit) * static_cast<double>(NowMicros() - begin) * 1e-6) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void Benchmark::Compact(ThreadState* thread) {
  DieUnlessOk(db_->CompactRange(std::nullopt, std::nullopt), "compact");
  thread->stats.Finished(1, "compact");
}

void Benchmark::FlushMemtable(ThreadState* thread) {
  DieUnlessOk(db_->Flush(), "flush");
  thread->stats.Finished(1, "flush");
}

void Benchmark::WaitForCompaction(ThreadState* thread) {
  DieUnlessOk(db_->WaitForBackgroundWork(), "waitforcompaction");
  thread->stats.Finished(1, "wait");
}

// Every checksum, and the order of all keys.
void Benchmark::Verify(ThreadState* thread) {
  DieUnlessOk(db_->VerifyChecksums(), "verify");
  auto iterator = db_->NewIterator(ReadSettings());
  DieUnlessOk(iterator.status(), "iterator");
  std::string last;
  bool first = true;
  for ((*iterator)->SeekToFirst(); (*iterator)->Valid(); (*iterator)->Next()) {
    if (!first && (*iterator)->key() <= last) Die("verify", absl::DataLossError("keys are out of order"));
    last = (*iterator)->key();
    first = false;
    thread->stats.Finished(1, "verify");
  }
  DieUnlessOk((*iterator)->status(), "verify");
}

}  // namespace tamis::bench
