// From a kind to its builder.
#include <memory>

#include "absl/status/statusor.h"
#include "filter/blocked_bloom.h"
#include "filter/filter_format.h"
#include "tamis/filter.h"

namespace tamis {

absl::StatusOr<std::unique_ptr<FilterBuilder>> FilterBuilder::Create(const FilterBuildOptions& options) {
  if (absl::Status s = internal::CheckFilterKind(options.kind); !s.ok()) return s;
  absl::StatusOr<uint32_t> eighths = internal::BitsPerKeyEighths(options.bits_per_key);
  if (!eighths.ok()) return eighths.status();
  // CheckFilterKind lets through what is built here; a further kind adds its case to both.
  return std::make_unique<internal::BlockedBloomBuilder>(options, *eighths);
}

}  // namespace tamis
