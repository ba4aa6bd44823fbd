// The steps of bench/peers: the same keys, values and order for every store, every answer checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/peers_engine.h"

namespace tamis::bench {

struct StepSizes {
  uint64_t keys = 0;   // in the database: HashedKey(0) to HashedKey(keys - 1)
  uint64_t reads = 0;  // single and multi gets, in keys
  uint64_t seeks = 0;
  uint64_t seed = 1;
};

struct FillResult {
  double ops_per_second = 0;   // of the puts alone
  double settle_seconds = 0;   // after the last put
  uint64_t bytes_written = 0;  // by this process, until settled
  uint64_t directory_bytes = 0;
};

// Writes all keys in an order that is random as to their bytes, one put each, on an open and empty database, and settles it.
FillResult Fill(PeerEngine* engine, const std::string& path, const StepSizes& sizes);

const std::vector<std::string>& ReadSteps();  // names, in the order of a round
// Operations (keys, seeks, entries) a second. Ends the program if an answer is wrong.
double RunStep(PeerEngine* engine, const char* engine_name, const std::string& step, const StepSizes& sizes, uint64_t round);

}  // namespace tamis::bench
