#include <optional>
#include <utility>

#include "bench/peers_engine.h"
#include "tamis/db.h"

namespace tamis::bench {
namespace {

void Check(const absl::Status& status, const char* what) {
  if (!status.ok()) PeerFail("tamis", what, status.ToString());
}

class TamisEngine : public PeerEngine {
 public:
  std::string Version() const override { return "tamis " TAMIS_VERSION; }

  void Open(const PeerSettings& settings) override {
    Options options;
    options.memtable_bytes = settings.memtable_bytes;
    options.block_cache_bytes = settings.cache_bytes;
    // Like for like: the peers have the same bits in every level.
    options.filter.allocation = FilterAllocation::kUniform;
    options.filter.bits_per_key = settings.bits_per_key;
    options.background_threads = static_cast<uint32_t>(settings.background_jobs);
    options.table.compression = Compression::kLz4;
    auto db = DB::Open(options, settings.path);
    Check(db.status(), "Open");
    db_ = *std::move(db);
  }

  void Put(std::string_view key, std::string_view value) override { Check(db_->Put(write_, key, value), "Put"); }

  void Settle() override {
    Check(db_->Flush(), "Flush");
    Check(db_->WaitForBackgroundWork(), "WaitForBackgroundWork");
  }

  bool Get(std::string_view key) override {
    const absl::Status s = db_->Get(read_, key, &value_);
    if (s.ok()) {
      Touch(value_.data(), value_.size());
      return true;
    }
    if (!absl::IsNotFound(s)) Check(s, "Get");
    return false;
  }

  uint64_t MultiGet(const std::vector<std::string_view>& keys) override {
    values_.resize(keys.size());
    statuses_.resize(keys.size());
    db_->MultiGet(read_, keys, absl::MakeSpan(values_), absl::MakeSpan(statuses_));
    uint64_t found = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses_[i].ok()) {
        Touch(values_[i].data(), values_[i].size());
        ++found;
      } else if (!absl::IsNotFound(statuses_[i])) {
        Check(statuses_[i], "MultiGet");
      }
    }
    return found;
  }

  uint64_t SeekAndNext(std::string_view key, uint64_t entries) override {
    if (iterator_ == nullptr) iterator_ = NewIterator();
    uint64_t seen = 0;
    for (iterator_->Seek(key); iterator_->Valid() && seen < entries; iterator_->Next(), ++seen) {
      Touch(iterator_->value().data(), iterator_->value().size());
    }
    Check(iterator_->status(), "Seek");
    return seen;
  }

  uint64_t ScanAll() override {
    const std::unique_ptr<Iterator> iterator = NewIterator();
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
  std::unique_ptr<Iterator> NewIterator() {
    auto iterator = db_->NewIterator(read_);
    Check(iterator.status(), "NewIterator");
    return *std::move(iterator);
  }

  const ReadOptions read_{};
  const WriteOptions write_{};
  std::unique_ptr<DB> db_;
  std::unique_ptr<Iterator> iterator_;  // as the others: one for all seeks, on a database that does not change
  PinnedValue value_;
  std::vector<PinnedValue> values_;
  std::vector<absl::Status> statuses_;
};

}  // namespace

std::unique_ptr<PeerEngine> MakeTamis() { return std::make_unique<TamisEngine>(); }

}  // namespace tamis::bench
