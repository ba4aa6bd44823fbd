// The results of a study as figures, as tables to read, and as CSV.
#pragma once

#include <string>

#include "tools/study/study.h"

namespace tamis::tools {

// The middle value, and the least and greatest of the runs.
struct Spread {
  double value = 0;
  double least = 0;
  double greatest = 0;
};

// All runs of a cell together: counts are summed and histograms merged before anything is divided, so that joined parts give what one run
// would have given. Spreads are over the runs.
struct CellSummary {
  uint64_t runs = 0;
  uint64_t lookups = 0;
  uint64_t wasted = 0;
  double predicted_wasted = 0;  // for each lookup, as the next five
  Spread observed_wasted;
  double considered = 0;
  double skipped = 0;
  double blocks_read = 0;
  // Reads for nothing that filters spared, as a share of those that there would have been. 0 if there would have been none.
  double saved = 0;
  double filter_bytes = 0;  // mean of the runs, as the next two
  double bits_per_key = 0;  // headers included, over all keys of the tree
  double build_nanos_per_key = 0;
  Spread median_micros;
  Spread p99_micros;
};
CellSummary Summarise(const CellResult& cell);

// The flags that give this plan and no more than one of its sections: "--keys 1000 --levels 2,3".
std::string FlagsOfSection(const StudyPlan& plan, size_t section);

// A table for each section, under the command that gives it. Cells that were not measured are left out.
void PrintTables(const StudyResult& result);
// One line for each measured cell: section, all axes, all figures.
std::string CsvText(const StudyResult& result);

}  // namespace tamis::tools
