#include "tamis/pinned_value.h"

#include <utility>

namespace tamis {

PinnedValue& PinnedValue::operator=(PinnedValue&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  // Bytes in `copy_` move with it, but a short string's bytes live inside the object.
  const bool copied = other.object_ == nullptr;
  copy_ = std::move(other.copy_);
  bytes_ = copied ? std::string_view(copy_).substr(0, other.bytes_.size()) : other.bytes_;
  object_ = std::exchange(other.object_, nullptr);
  release_ = std::exchange(other.release_, nullptr);
  other.bytes_ = {};
  return *this;
}

void PinnedValue::Reset() {
  bytes_ = {};
  if (object_ != nullptr) std::exchange(release_, nullptr)(std::exchange(object_, nullptr));
}

void PinnedValue::Pin(std::string_view bytes, void* object, void (*release)(void*)) {
  Reset();
  bytes_ = bytes;
  object_ = object;
  release_ = release;
}

void PinnedValue::Copy(std::string_view bytes) {
  Reset();
  copy_.assign(bytes);
  bytes_ = copy_;
}

}  // namespace tamis
