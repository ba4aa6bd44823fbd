// Status macros, and the bridge between std::string_view and Abseil.
//
// On Debian 12 absl::string_view is a type of its own and does not convert from or to std::string_view, so StrCat and the error
// constructors do not take one. Text for errors is made with Concat below; nothing else in Tamis names absl::string_view.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tamis::internal {

inline absl::string_view ToAbsl(std::string_view s) { return absl::string_view(s.data(), s.size()); }
inline std::string_view ToStd(absl::string_view s) { return std::string_view(s.data(), s.size()); }

namespace status_util {
template <typename T>
const T& Piece(const T& value) {
  return value;
}
inline absl::string_view Piece(std::string_view s) { return ToAbsl(s); }
inline absl::string_view Piece(const std::string& s) { return absl::string_view(s); }
inline absl::string_view Piece(const char* s) { return absl::string_view(s); }
}  // namespace status_util

// absl::StrCat that also takes std::string_view.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  return absl::StrCat(status_util::Piece(parts)...);
}

// The same status with `context` and ": " before its text.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), Concat(context, ": ", ToStd(status.message())));
}

}  // namespace tamis::internal

#define TAMIS_CONCAT_INNER(a, b) a##b
#define TAMIS_CONCAT(a, b) TAMIS_CONCAT_INNER(a, b)

#define TAMIS_RETURN_IF_ERROR(expression)                                 \
  do {                                                                    \
    if (absl::Status tamis_status_ = (expression); !tamis_status_.ok()) { \
      return tamis_status_;                                               \
    }                                                                     \
  } while (false)

// TAMIS_ASSIGN_OR_RETURN(auto x, F()): x is what F returned, or the function returns F's error.
#define TAMIS_ASSIGN_OR_RETURN(target, expression) \
  TAMIS_ASSIGN_OR_RETURN_INNER(TAMIS_CONCAT(tamis_or_, __LINE__), target, expression)
#define TAMIS_ASSIGN_OR_RETURN_INNER(name, target, expression) \
  auto name = (expression);                                    \
  if (!name.ok()) return std::move(name).status();             \
  target = *std::move(name)
