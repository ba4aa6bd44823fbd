#include "tamis/snapshot.h"

#include "engine/snapshot_list.h"

namespace tamis {

Snapshot::Snapshot() = default;
Snapshot::Snapshot(std::unique_ptr<internal::SnapshotHold> hold) : hold_(std::move(hold)) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;
uint64_t Snapshot::sequence() const { return hold_ == nullptr ? 0 : hold_->sequence(); }

}  // namespace tamis
