// What bench/peers asks of a store: so little that each can do it in its best way. Errors end the program: a comparison with a store that
// failed means nothing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tamis::bench {

struct PeerSettings {
  std::string path;
  uint64_t keys = 0;  // that will be written, for stores that must know the size of their map
  uint64_t cache_bytes = 0;
  uint64_t memtable_bytes = uint64_t{64} << 20;
  double bits_per_key = 10;
  int background_jobs = 2;
};

class PeerEngine {
 public:
  virtual ~PeerEngine() = default;
  PeerEngine(const PeerEngine&) = delete;
  PeerEngine& operator=(const PeerEngine&) = delete;

  virtual std::string Version() const = 0;
  virtual void Open(const PeerSettings& settings) = 0;  // makes what is missing; the parent directory exists
  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Everything written is in its sorted files and no background work is due.
  virtual void Settle() = 0;
  // Whether the key is there; its value was looked at.
  virtual bool Get(std::string_view key) = 0;
  // How many of the keys are there.
  virtual uint64_t MultiGet(const std::vector<std::string_view>& keys) = 0;
  // Moves to the first key at or after `key`, then on; how many entries it saw, at most `entries`.
  virtual uint64_t SeekAndNext(std::string_view key, uint64_t entries) = 0;
  virtual uint64_t ScanAll() = 0;  // number of entries
  virtual void Close() = 0;

 protected:
  PeerEngine() = default;
};

// nullptr: not compiled in.
std::unique_ptr<PeerEngine> MakeTamis();
std::unique_ptr<PeerEngine> MakeRocksDb();
std::unique_ptr<PeerEngine> MakeLevelDb();
std::unique_ptr<PeerEngine> MakeLmdb();

[[noreturn]] inline void PeerFail(const char* engine, const char* what, const std::string& why) {
  std::fprintf(stderr, "peers: %s: %s: %s\n", engine, what, why.c_str());
  std::exit(1);
}

// Reading the value's first byte: a store that returns a pointer must have the bytes at hand.
inline void Touch(const char* bytes, size_t size) {
  if (size > 0) {
    volatile char first = bytes[0];
    (void)first;
  }
}

}  // namespace tamis::bench
