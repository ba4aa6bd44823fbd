// A value read without copying it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tamis {

// Holds the block or memtable that its bytes lie in; they stay valid until Reset, the next read into it, or its destruction, also after
// the database was closed. Values of up to 4 KiB that are still in the memtable are copied, so that a long-lived handle does not hold a
// whole memtable. Reusing one object for many reads avoids allocation. Not thread-safe.
class PinnedValue {
 public:
  PinnedValue() = default;
  PinnedValue(PinnedValue&& other) noexcept { *this = std::move(other); }
  PinnedValue& operator=(PinnedValue&& other) noexcept;
  ~PinnedValue() { Reset(); }

  std::string_view view() const { return bytes_; }
  const char* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::string ToString() const { return std::string(bytes_); }
  void Reset();

  // For the engine. `release(object)` is called once, when the bytes are no longer needed.
  void Pin(std::string_view bytes, void* object, void (*release)(void*));
  void Copy(std::string_view bytes);

 private:
  std::string_view bytes_;
  std::string copy_;
  void* object_ = nullptr;
  void (*release_)(void*) = nullptr;
};

}  // namespace tamis
