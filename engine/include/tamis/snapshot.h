// A state of the database held for reading.
#pragma once

#include <cstdint>
#include <memory>

namespace tamis {

namespace internal {
class SnapshotHold;
}  // namespace internal

// While it lives, compactions keep what a read at this state needs. Move-only; released by the destructor; may outlive the DB object.
// An empty one (default, or moved from) is InvalidArgument in ReadOptions.
class Snapshot {
 public:
  Snapshot();
  explicit Snapshot(std::unique_ptr<internal::SnapshotHold> hold);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();
  // Everything written with this sequence or a smaller one is seen.
  uint64_t sequence() const;
  const internal::SnapshotHold* hold() const { return hold_.get(); }

 private:
  std::unique_ptr<internal::SnapshotHold> hold_;
};

}  // namespace tamis
