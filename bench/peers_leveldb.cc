// LevelDB with Snappy and a Bloom filter. It has one background thread, no MultiGet (a loop) and no flush (reopening writes the log's
// contents to a table).
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>

#include <chrono>
#include <thread>

#include "bench/peers_engine.h"

namespace tamis::bench {
namespace {

void Check(const leveldb::Status& status, const char* what) {
  if (!status.ok()) PeerFail("leveldb", what, status.ToString());
}

leveldb::Slice AsSlice(std::string_view bytes) { return leveldb::Slice(bytes.data(), bytes.size()); }

class LevelDbEngine : public PeerEngine {
 public:
  std::string Version() const override {
    return "leveldb " + std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion);
  }

  void Open(const PeerSettings& settings) override {
    settings_ = settings;
    cache_.reset(leveldb::NewLRUCache(settings.cache_bytes));
    filter_.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(settings.bits_per_key)));
    OpenDatabase();
  }

  void Put(std::string_view key, std::string_view value) override { Check(db_->Put(write_, AsSlice(key), AsSlice(value)), "Put"); }

  void Settle() override {
    iterator_.reset();
    db_.reset();
    OpenDatabase();
    // It says nothing about work that is pending: wait until the files a level have been the same for three seconds.
    std::string last;
    for (int quiet = 0; quiet < 30;) {
      std::string now;
      for (int level = 0; level < 7; ++level) {
        std::string files;
        if (!db_->GetProperty("leveldb.num-files-at-level" + std::to_string(level), &files))
          PeerFail("leveldb", "GetProperty", "num-files");
        now += files + " ";
      }
      std::string stats;
      if (db_->GetProperty("leveldb.stats", &stats)) now += stats;
      quiet = now == last ? quiet + 1 : 0;
      last = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  bool Get(std::string_view key) override {
    const leveldb::Status s = db_->Get(read_, AsSlice(key), &value_);
    if (s.ok()) {
      Touch(value_.data(), value_.size());
      return true;
    }
    if (!s.IsNotFound()) Check(s, "Get");
    return false;
  }

  uint64_t MultiGet(const std::vector<std::string_view>& keys) override {
    uint64_t found = 0;
    for (const std::string_view key : keys) found += Get(key) ? 1 : 0;
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
    const std::unique_ptr<leveldb::Iterator> iterator(db_->NewIterator(read_));
    uint64_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++seen) Touch(iterator->value().data(), iterator->value().size());
    Check(iterator->status(), "scan");
    return seen;
  }

  void Close() override {
    iterator_.reset();
    db_.reset();
    cache_.reset();
    filter_.reset();
  }

 private:
  void OpenDatabase() {
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = settings_.memtable_bytes;
    options.block_cache = cache_.get();
    options.filter_policy = filter_.get();
    options.compression = leveldb::kSnappyCompression;
    leveldb::DB* db = nullptr;
    Check(leveldb::DB::Open(options, settings_.path, &db), "Open");
    db_.reset(db);
  }

  PeerSettings settings_;
  const leveldb::ReadOptions read_{};
  const leveldb::WriteOptions write_{};
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::DB> db_;
  std::unique_ptr<leveldb::Iterator> iterator_;
  std::string value_;
};

}  // namespace

std::unique_ptr<PeerEngine> MakeLevelDb() { return std::make_unique<LevelDbEngine>(); }

}  // namespace tamis::bench
