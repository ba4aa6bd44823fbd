// Are the settings legal? InvalidArgument naming the first that is not.
#pragma once

#include "absl/status/status.h"
#include "tamis/options.h"

namespace tamis::internal {

absl::Status CheckOptions(const Options& options);

}  // namespace tamis::internal
