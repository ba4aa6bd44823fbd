// RocksDB, as its users set it up for point reads: LZ4, LRU cache, whole-key Bloom filter, format version 5, batched MultiGet.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <chrono>
#include <thread>

#include "bench/peers_engine.h"

namespace tamis::bench {
namespace {

void Check(const rocksdb::Status& status, const char* what) {
  if (!status.ok()) PeerFail("rocksdb", what, status.ToString());
}

rocksdb::Slice AsSlice(std::string_view bytes) { return rocksdb::Slice(bytes.data(), bytes.size()); }

class RocksDbEngine : public PeerEngine {
 public:
  std::string Version() const override {
    return "rocksdb " + std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." + std::to_string(ROCKSDB_PATCH);
  }

  void Open(const PeerSettings& settings) override {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(settings.cache_bytes);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(settings.bits_per_key));
    table.format_version = 5;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = settings.memtable_bytes;
    options.max_background_jobs = settings.background_jobs;
    options.compression = rocksdb::kLZ4Compression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, settings.path, &db), "Open");
    db_.reset(db);
  }

  void Put(std::string_view key, std::string_view value) override { Check(db_->Put(write_, AsSlice(key), AsSlice(value)), "Put"); }

  void Settle() override {
    Check(db_->Flush(rocksdb::FlushOptions()), "Flush");
    // No WaitForCompact in the public interface of this version: nothing pending and nothing running, twenty times in a row.
    for (int quiet = 0; quiet < 20;) {
      uint64_t busy = 0;
      for (const char* name : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes", "rocksdb.compaction-pending",
                               "rocksdb.num-running-compactions"}) {
        uint64_t value = 0;
        if (!db_->GetIntProperty(name, &value)) PeerFail("rocksdb", "GetIntProperty", name);
        busy += value;
      }
      quiet = busy == 0 ? quiet + 1 : 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  bool Get(std::string_view key) override {
    value_.Reset();
    const rocksdb::Status s = db_->Get(read_, db_->DefaultColumnFamily(), AsSlice(key), &value_);
    if (s.ok()) {
      Touch(value_.data(), value_.size());
      return true;
    }
    if (!s.IsNotFound()) Check(s, "Get");
    return false;
  }

  uint64_t MultiGet(const std::vector<std::string_view>& keys) override {
    slices_.clear();
    for (const std::string_view key : keys) slices_.push_back(AsSlice(key));
    if (values_.size() != keys.size()) values_ = std::vector<rocksdb::PinnableSlice>(keys.size());
    for (rocksdb::PinnableSlice& value : values_) value.Reset();
    statuses_.resize(keys.size());
    db_->MultiGet(read_, db_->DefaultColumnFamily(), keys.size(), slices_.data(), values_.data(), statuses_.data());
    uint64_t found = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses_[i].ok()) {
        Touch(values_[i].data(), values_[i].size());
        ++found;
      } else if (!statuses_[i].IsNotFound()) {
        Check(statuses_[i], "MultiGet");
      }
    }
    return found;
  }

  uint64_t SeekAndNext(std::string_view key, uint64_t entries) override {
    if (iterator_ == nullptr) iterator_.reset(db_->NewIterator(read_));
    uint64_t seen = 0;
    for (iterator_->Seek(AsSlice(key)); iterator_->Valid() && seen < entries; iterator_->Next(), ++seen) {
      Touch(iterator_->value().data(), iterator_->value().size());
    }
    Check(iterator_->status(), "Seek");
    return seen;
  }

  uint64_t ScanAll() override {
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(read_));
    uint64_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++seen) Touch(iterator->value().data(), iterator->value().size());
    Check(iterator->status(), "scan");
    return seen;
  }

  void Close() override {
    iterator_.reset();
    values_.clear();
    value_.Reset();
    Check(db_->Close(), "Close");
    db_.reset();
  }

 private:
  const rocksdb::ReadOptions read_{};
  const rocksdb::WriteOptions write_{};
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  rocksdb::PinnableSlice value_;
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> statuses_;
};

}  // namespace

std::unique_ptr<PeerEngine> MakeRocksDb() { return std::make_unique<RocksDbEngine>(); }

}  // namespace tamis::bench
