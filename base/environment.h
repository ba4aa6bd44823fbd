// What the engine takes from the machine, as seams that tests replace: file system, monotonic clock, threads, randomness.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "base/checksum.h"
#include "tamis/file_system.h"

namespace tamis::internal {

// Monotonic. Nothing stored depends on it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t NowNanos() const = 0;
  virtual void SleepMicros(uint64_t micros) = 0;
  uint64_t NowMicros() const { return NowNanos() / 1000; }
  static Clock* System();
};

// Starts threads. Signals are blocked in them (but for faults such as SIGSEGV): they belong to the embedding program.
class Executor {
 public:
  class Thread {
   public:
    virtual ~Thread() = default;  // joins
  };
  virtual ~Executor() = default;
  // nullptr if the system gives no thread.
  virtual std::unique_ptr<Thread> Start(std::string name, std::function<void()> body) = 0;
  static Executor* System();
};

// Ids and seeds. Thread-safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual void Fill(absl::Span<uint8_t> bytes) = 0;
  uint64_t Next64();
  Id128 NextId128();
  static RandomSource* System();                               // getrandom
  static std::unique_ptr<RandomSource> Seeded(uint64_t seed);  // reproducible, for tests
};

// Not owned.
struct Environment {
  FileSystem* files = nullptr;
  Clock* clock = nullptr;
  Executor* executor = nullptr;
  RandomSource* random = nullptr;
  static Environment System();
};

}  // namespace tamis::internal
