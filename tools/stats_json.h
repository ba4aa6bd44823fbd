// Statistics as JSON, for the commands that print them.
#pragma once

#include <nlohmann/json.hpp>

#include "tamis/stats.h"

namespace tamis::tools {

using Json = nlohmann::ordered_json;

Json LevelJson(const LevelStats& level);
Json LevelsJson(const Stats& stats);

}  // namespace tamis::tools
