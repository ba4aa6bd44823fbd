// The results of a study as JSON: what `tamis study --json` prints and --merge reads.
//
//   {"tamis_study": 1, "keys": , "lookups": , "ratio": ,
//    "sections": [{"title": , "by_level": , "axes": {"kind": ["none", ...], ...}}],
//    "cells": [{"section": 0, "kind": "none", ..., "summary": {...}, "runs": [{"seed": , "repeat": , counters..., "levels": [...],
//               "latency_ns": [[bucket, count], ...]}]}]}
//
// Buckets are those of latency.h. The summary is for readers; merging goes by the runs. Cells without runs are left out.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/study/study.h"

namespace tamis::tools {

std::string JsonText(const StudyResult& result);
// InvalidArgument, with the reason, for text that is not such results, or of a newer form.
absl::StatusOr<StudyResult> ParseResults(const std::string& text);

}  // namespace tamis::tools
