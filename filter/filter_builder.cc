// From a kind to its builder.
#include <memory>

#include "absl/status/statusor.h"
#include "filter/binary_fuse_builder.h"
#include "filter/blocked_bloom.h"
#include "filter/classic_bloom.h"
#include "filter/filter_format.h"
#include "filter/ribbon_builder.h"
#include "filter/split_block_bloom.h"
#include "tamis/filter.h"

namespace tamis {

absl::StatusOr<std::unique_ptr<FilterBuilder>> FilterBuilder::Create(const FilterBuildOptions& options) {
  if (absl::Status s = internal::CheckBuildOptions(options); !s.ok()) return s;
  absl::StatusOr<uint32_t> eighths = internal::BitsPerKeyEighths(options.kind, options.bits_per_key);
  if (!eighths.ok()) return eighths.status();
  switch (options.kind) {
    case FilterKind::kBlockedBloom:
      return std::make_unique<internal::BlockedBloomBuilder>(options, *eighths);
    case FilterKind::kSplitBlockBloom:
      return std::make_unique<internal::SplitBlockBloomBuilder>(options, *eighths);
    case FilterKind::kClassicBloom:
      return std::make_unique<internal::ClassicBloomBuilder>(options, *eighths);
    case FilterKind::kRibbon:
      return std::make_unique<internal::RibbonBuilder>(options, *eighths);
    case FilterKind::kBinaryFuse:
      return std::make_unique<internal::BinaryFuseBuilder>(options, *eighths);
    case FilterKind::kNone:
      break;
  }
  return absl::InternalError("a filter kind passed the checks that has no builder");
}

}  // namespace tamis
