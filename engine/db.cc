#include "tamis/db.h"

#include <new>

#include "engine/db_impl.h"
#include "engine/shared_block_cache.h"
#include "engine/write/batch_format.h"

namespace tamis {
namespace {

absl::Status OutOfMemory() { return absl::Status(absl::StatusCode::kResourceExhausted, ""); }

// The API boundary: memory that runs out inside is a status outside.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace

std::shared_ptr<SharedBlockCache> NewSharedBlockCache(uint64_t capacity_bytes) {
  return std::make_shared<SharedBlockCache>(capacity_bytes);
}

absl::StatusOr<std::unique_ptr<DB>> DB::Open(const Options& options, const std::string& path) {
  return Guarded([&]() -> absl::StatusOr<std::unique_ptr<DB>> {
    internal::Environment environment = internal::Environment::System();
    if (options.file_system != nullptr) environment.files = options.file_system;
    absl::StatusOr<std::shared_ptr<internal::DbImpl>> impl = internal::OpenDatabase(options, path, environment);
    if (!impl.ok()) return impl.status();
    return std::make_unique<DB>(*std::move(impl));
  });
}

DB::DB(std::shared_ptr<internal::DbImpl> impl) : impl_(std::move(impl)) {}

DB::~DB() {
  if (impl_->InForkedChild()) {
    // Left as it is: its threads do not exist here, its mutexes may be held for ever, its lock and files are the parent's.
    static_cast<void>(new std::shared_ptr<internal::DbImpl>(std::move(impl_)));
    return;
  }
  Close().IgnoreError();  // whoever wants to know calls Close
}

absl::Status DB::Put(const WriteOptions& options, std::string_view key, std::string_view value) {
  return Guarded([&] {
    WriteBatch batch;
    batch.Put(key, value);
    return Write(options, batch);
  });
}

absl::Status DB::Delete(const WriteOptions& options, std::string_view key) {
  return Guarded([&] {
    WriteBatch batch;
    batch.Delete(key);
    return Write(options, batch);
  });
}

absl::Status DB::Write(const WriteOptions& options, const WriteBatch& batch) {
  if (!batch.status().ok()) return batch.status();
  return Guarded([&] { return impl_->Write(options, batch.representation(), batch.Count()); });
}

absl::Status DB::SyncLog() {
  return Guarded([&] { return impl_->SyncLog(); });
}

absl::Status DB::Get(const ReadOptions& options, std::string_view key, std::string* value) const {
  return Guarded([&] { return impl_->Get(options, key, value); });
}

absl::Status DB::Get(const ReadOptions& options, std::string_view key, PinnedValue* value) const {
  return Guarded([&] { return impl_->Get(options, key, value); });
}

void DB::MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys, absl::Span<PinnedValue> values,
                  absl::Span<absl::Status> statuses) const {
  try {
    impl_->MultiGet(options, keys, values, statuses);
  } catch (const std::bad_alloc&) {
    for (absl::Status& status : statuses) status = OutOfMemory();
  }
}

absl::StatusOr<bool> DB::MayExist(const ReadOptions& options, std::string_view key) const {
  return Guarded([&] { return impl_->MayExist(options, key); });
}

absl::StatusOr<std::unique_ptr<Iterator>> DB::NewIterator(const ReadOptions& options) const {
  return Guarded([&] { return impl_->NewIterator(options); });
}

absl::StatusOr<Snapshot> DB::GetSnapshot() const {
  return Guarded([&] { return impl_->GetSnapshot(); });
}

absl::Status DB::Flush() {
  return Guarded([&] { return impl_->Flush(); });
}

absl::Status DB::CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end, const Progress& progress) {
  return Guarded([&] { return impl_->CompactRange(begin, end, progress); });
}

absl::Status DB::WaitForBackgroundWork() {
  return Guarded([&] { return impl_->WaitForBackgroundWork(); });
}

absl::Status DB::RebuildFilters(const Progress& progress) {
  return Guarded([&] { return impl_->RebuildFilters(progress); });
}

absl::Status DB::VerifyChecksums(const Progress& progress) const {
  return Guarded([&] { return impl_->VerifyChecksums(progress); });
}

absl::StatusOr<uint64_t> DB::ApproximateSize(std::optional<std::string_view> begin, std::optional<std::string_view> end) const {
  return Guarded([&] { return impl_->Approximate(begin, end, /*count_entries=*/false); });
}

absl::StatusOr<uint64_t> DB::ApproximateCount(std::optional<std::string_view> begin, std::optional<std::string_view> end) const {
  return Guarded([&] { return impl_->Approximate(begin, end, /*count_entries=*/true); });
}

absl::StatusOr<Stats> DB::GetStats(const StatsOptions& options) const {
  return Guarded([&] { return impl_->GetStats(options); });
}

std::optional<std::string> DB::GetProperty(std::string_view name) const {
  try {
    return impl_->GetProperty(name);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

absl::Status DB::Close() {
  return Guarded([&] { return impl_->Close(); });
}

}  // namespace tamis
