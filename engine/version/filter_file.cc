#include "engine/version/filter_file.h"

#include <memory>
#include <utility>

#include "base/checksum.h"
#include "base/status_util.h"
#include "engine/version/file_names.h"

namespace tamis::internal {
namespace {

absl::Status WriteDurably(Directory* directory, const std::string& name, std::string_view bytes) {
  TAMIS_ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file, directory->CreateAppend(name));
  TAMIS_RETURN_IF_ERROR(file->Append(bytes));
  TAMIS_RETURN_IF_ERROR(file->Sync());
  TAMIS_RETURN_IF_ERROR(file->Close());
  return directory->Sync();
}

}  // namespace

absl::StatusOr<FilterFileMeta> WriteFilterFile(Directory* directory, uint64_t number, std::string_view bytes) {
  const std::string name = FilterName(number);
  if (const absl::Status written = WriteDurably(directory, name, bytes); !written.ok()) {
    directory->Remove(name).IgnoreError();
    return written;
  }
  return FilterFileMeta{number, bytes.size(), Checksum64(bytes)};
}

absl::StatusOr<LoadedFilter> ReadFilterFile(const RandomAccessFile& file, const FilterFileMeta& meta, const Id128& table_id) {
  // Before anything is allocated: the manifest's number is worth no more than the file.
  if (file.size() != meta.size) {
    return absl::DataLossError(Concat(file.path(), ": has ", file.size(), " bytes where the manifest records ", meta.size));
  }
  LoadedFilter filter;
  filter.bytes = AlignedBuffer(static_cast<size_t>(meta.size));
  TAMIS_RETURN_IF_ERROR(file.Read(0, absl::Span<char>(filter.bytes.data(), filter.bytes.size())));
  if (Checksum64(filter.bytes.view()) != meta.checksum) {
    return absl::DataLossError(Concat(file.path(), ": the checksum differs from the manifest's"));
  }
  absl::StatusOr<FilterView> view = FilterView::Open(filter.bytes.view(), {.check_owner = true, .owner = table_id});
  if (!view.ok()) return Annotate(view.status(), file.path());
  filter.view = *view;
  return filter;
}

}  // namespace tamis::internal
