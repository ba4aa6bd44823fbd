// What ThreadSanitizer must not report. Include in one file of a test binary (a strong definition, or the runtime's own weak one stays).
//
// absl::Status counts its references in inline code, which is instrumented, and in the packaged library, which is not: when one thread
// copies a status and another drops the last copy, ThreadSanitizer sees the free but not the decrement that orders it.
#pragma once

extern "C" const char* __tsan_default_suppressions() { return "race:absl::*Status::Unref\n"; }
