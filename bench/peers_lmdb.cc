// LMDB: a B-tree in a memory map, no log, no compression, no filter. Writable map, nothing synced: each write still survives the death of
// the process, as with the others.
#include <lmdb.h>
#include <sys/stat.h>

#include "bench/peers_engine.h"

namespace tamis::bench {
namespace {

void Check(int result, const char* what) {
  if (result != MDB_SUCCESS) PeerFail("lmdb", what, mdb_strerror(result));
}

MDB_val AsValue(std::string_view bytes) { return MDB_val{bytes.size(), const_cast<char*>(bytes.data())}; }

class LmdbEngine : public PeerEngine {
 public:
  std::string Version() const override {
    return "lmdb " + std::to_string(MDB_VERSION_MAJOR) + "." + std::to_string(MDB_VERSION_MINOR) + "." + std::to_string(MDB_VERSION_PATCH);
  }

  void Open(const PeerSettings& settings) override {
    mkdir(settings.path.c_str(), 0700);
    Check(mdb_env_create(&environment_), "mdb_env_create");
    // 116 bytes an entry in half-full pages, with room to spare; only what is used takes disk.
    Check(mdb_env_set_mapsize(environment_, (uint64_t{1} << 30) + settings.keys * 512), "mdb_env_set_mapsize");
    Check(mdb_env_open(environment_, settings.path.c_str(), MDB_WRITEMAP | MDB_NOSYNC | MDB_NOMETASYNC | MDB_NORDAHEAD, 0600),
          "mdb_env_open");
    MDB_txn* transaction = nullptr;
    Check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "mdb_txn_begin");
    Check(mdb_dbi_open(transaction, nullptr, 0, &table_), "mdb_dbi_open");
    Check(mdb_txn_commit(transaction), "mdb_txn_commit");
  }

  void Put(std::string_view key, std::string_view value) override {
    EndReads();
    MDB_txn* transaction = nullptr;
    Check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "mdb_txn_begin");
    MDB_val k = AsValue(key);
    MDB_val v = AsValue(value);
    Check(mdb_put(transaction, table_, &k, &v, 0), "mdb_put");
    Check(mdb_txn_commit(transaction), "mdb_txn_commit");
  }

  void Settle() override {}

  bool Get(std::string_view key) override {
    BeginReads();
    MDB_val k = AsValue(key);
    MDB_val v;
    const int result = mdb_get(reads_, table_, &k, &v);
    if (result == MDB_NOTFOUND) return false;
    Check(result, "mdb_get");
    Touch(static_cast<const char*>(v.mv_data), v.mv_size);
    return true;
  }

  uint64_t MultiGet(const std::vector<std::string_view>& keys) override {
    uint64_t found = 0;
    for (const std::string_view key : keys) found += Get(key) ? 1 : 0;
    return found;
  }

  uint64_t SeekAndNext(std::string_view key, uint64_t entries) override {
    BeginReads();
    MDB_val k = AsValue(key);
    MDB_val v;
    uint64_t seen = 0;
    int result = mdb_cursor_get(cursor_, &k, &v, MDB_SET_RANGE);
    while (result == MDB_SUCCESS && seen < entries) {
      Touch(static_cast<const char*>(v.mv_data), v.mv_size);
      ++seen;
      result = mdb_cursor_get(cursor_, &k, &v, MDB_NEXT);
    }
    if (result != MDB_NOTFOUND) Check(result, "mdb_cursor_get");
    return seen;
  }

  uint64_t ScanAll() override {
    BeginReads();
    MDB_val k;
    MDB_val v;
    uint64_t seen = 0;
    int result = mdb_cursor_get(cursor_, &k, &v, MDB_FIRST);
    while (result == MDB_SUCCESS) {
      Touch(static_cast<const char*>(v.mv_data), v.mv_size);
      ++seen;
      result = mdb_cursor_get(cursor_, &k, &v, MDB_NEXT);
    }
    if (result != MDB_NOTFOUND) Check(result, "mdb_cursor_get");
    return seen;
  }

  void Close() override {
    EndReads();
    mdb_env_close(environment_);
    environment_ = nullptr;
  }

 private:
  // One read transaction for all reads until the next write: its best case.
  void BeginReads() {
    if (reads_ != nullptr) return;
    Check(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reads_), "mdb_txn_begin");
    Check(mdb_cursor_open(reads_, table_, &cursor_), "mdb_cursor_open");
  }
  void EndReads() {
    if (reads_ == nullptr) return;
    mdb_cursor_close(cursor_);
    mdb_txn_abort(reads_);
    reads_ = nullptr;
    cursor_ = nullptr;
  }

  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
  MDB_txn* reads_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

}  // namespace

std::unique_ptr<PeerEngine> MakeLmdb() { return std::make_unique<LmdbEngine>(); }

}  // namespace tamis::bench
