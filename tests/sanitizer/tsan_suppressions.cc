// What ThreadSanitizer must not report; linked into every test binary of that build. (Not part of a library: from an archive the runtime's
// own weak definition would win.)
//
// absl::Status counts its references in inline code, which is instrumented, and in the packaged library, which is not: when one thread
// copies a status and another drops the last copy, ThreadSanitizer sees the free but not the decrement that orders it. Named by file,
// since the frames of inlined functions carry no namespace.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:absl/status/status.h\n"; }
