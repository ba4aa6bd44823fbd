#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/table_properties.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "bench/level_rates.h"
#include "tools/study/tree.h"
#include "tools/study/workload.h"

namespace tamis::bench {
namespace {

void Check(const rocksdb::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "level_rates: rocksdb: %s: %s\n", what, status.ToString().c_str());
  std::exit(1);
}

class RocksDbTree {
 public:
  RocksDbTree(const PeerTree& tree, const std::string& path) : tree_(tree), shape_{.keys = tree.keys, .levels = tree.levels, .seed = 1} {
    const Options ours = tools::TreeOptions(shape_, FilterOptions());
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(tree.bits_per_key));
    table.format_version = 5;
    table.block_cache = rocksdb::NewLRUCache(size_t{256} << 20);
    options_.create_if_missing = true;
    options_.error_if_exists = true;
    options_.statistics = rocksdb::CreateDBStatistics();
    options_.compression = rocksdb::kLZ4Compression;
    options_.optimize_filters_for_hits = tree.for_hits;
    options_.write_buffer_size = ours.memtable_bytes;
    options_.num_levels = static_cast<int>(tools::kTreeLevels);
    options_.level_compaction_dynamic_level_bytes = true;
    options_.max_bytes_for_level_base = ours.compaction.level_base_bytes;
    options_.max_bytes_for_level_multiplier = ours.compaction.size_ratio;
    options_.target_file_size_base = ours.compaction.target_file_bytes;
    options_.level0_file_num_compaction_trigger = 1;
    options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options_, path, &db), "Open");
    db_.reset(db);
  }
  ~RocksDbTree() { Check(db_->Close(), "Close"); }
  RocksDbTree(const RocksDbTree&) = delete;
  RocksDbTree& operator=(const RocksDbTree&) = delete;

  void Build() {
    for (uint64_t i = 0; i < tree_.keys; ++i) Put(i);
    Settle();
    // Overwrites in pieces, from the largest upper level to the smallest, as tools/study/tree.h does.
    uint64_t next = 0;
    double share = 1;
    for (uint32_t above = 1; above < tree_.levels; ++above) {
      share /= shape_.ratio;
      const auto piece = std::max<uint64_t>(2, static_cast<uint64_t>(share * static_cast<double>(tree_.keys) / 5));
      for (int pieces = 0; pieces < 4; ++pieces) {
        for (uint64_t i = 0; i < piece; ++i) Put(next++ % tree_.keys);
        Settle();
      }
    }
  }

  PeerRates Measure(double absent_percent, uint64_t lookups) {
    PeerRates rates{.absent_percent = absent_percent};
    options_.statistics->Reset().PermitUncheckedError();
    const tools::LookupMix mix{.keys = tree_.keys, .absent_percent = absent_percent};
    tools::LookupStream stream(mix, shape_.seed, 10000);
    std::string key;
    rocksdb::PinnableSlice value;
    uint64_t absent = 0;
    for (uint64_t i = 0; i < lookups; ++i) {
      const bool present = stream.Next(&key);
      value.Reset();
      const rocksdb::Status s = db_->Get(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), key, &value);
      if (s.ok() != present) Check(rocksdb::Status::Corruption("wrong answer"), "Get");
      absent += present ? 0 : 1;
    }
    rates.wasted = options_.statistics->getTickerCount(rocksdb::BLOOM_FILTER_FULL_POSITIVE) -
                   options_.statistics->getTickerCount(rocksdb::BLOOM_FILTER_FULL_TRUE_POSITIVE);
    if (tree_.for_hits) rates.wasted += absent;
    rates.observed = static_cast<double>(rates.wasted) / static_cast<double>(lookups);
    rocksdb::TablePropertiesCollection tables;
    Check(db_->GetPropertiesOfAllTables(&tables), "GetPropertiesOfAllTables");
    uint64_t bytes = 0;
    uint64_t entries = 0;
    for (const auto& [name, properties] : tables) {
      bytes += properties->filter_size;
      entries += properties->num_entries;
    }
    rates.bits_per_key = 8 * static_cast<double>(bytes) / static_cast<double>(entries);
    for (int level = 0; level < options_.num_levels; ++level) {
      std::string files;
      if (db_->GetProperty("rocksdb.num-files-at-level" + std::to_string(level), &files) && files != "0") ++rates.levels;
    }
    return rates;
  }

 private:
  void Put(uint64_t index) {
    std::string key;
    std::string value;
    tools::StudyKey(shape_.seed, index, &key);
    tools::StudyValue(shape_.seed, written_++, &value);
    Check(db_->Put(rocksdb::WriteOptions(), key, value), "Put");
  }

  // No WaitForCompact in the public interface of this version: nothing pending and nothing running, several times in a row.
  void Settle() {
    Check(db_->Flush(rocksdb::FlushOptions()), "Flush");
    for (int quiet = 0; quiet < 5;) {
      uint64_t busy = 0;
      for (const char* name : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes", "rocksdb.compaction-pending",
                               "rocksdb.num-running-compactions"}) {
        uint64_t value = 0;
        if (db_->GetIntProperty(name, &value)) busy += value;
      }
      quiet = busy == 0 ? quiet + 1 : 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const PeerTree tree_;
  const tools::TreeShape shape_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  uint64_t written_ = 0;
};

}  // namespace

std::vector<PeerRates> RocksDbRates(const PeerTree& tree, const std::string& path, const std::vector<double>& absent_percents,
                                    uint64_t lookups) {
  std::vector<PeerRates> all;
  {
    RocksDbTree built(tree, path);
    built.Build();
    for (const double absent : absent_percents) all.push_back(built.Measure(absent, lookups));
  }
  Check(rocksdb::DestroyDB(path, rocksdb::Options()), "DestroyDB");
  return all;
}

}  // namespace tamis::bench
