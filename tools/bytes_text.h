// Keys and values as text on one line: the form in which the `tamis` command prints and reads them.
//
// Escaped form: printable ASCII stands for itself, except the backslash, which is \\ ; \t \n \r \0 as in C; every other byte is \xHH. When
// reading, bytes outside ASCII stand for themselves too (so UTF-8 may be typed), and any other escape is an error.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tamis::tools {

std::string EscapeBytes(std::string_view bytes);
absl::StatusOr<std::string> UnescapeBytes(std::string_view text);

std::string HexBytes(std::string_view bytes);                   // lower case, no separators
absl::StatusOr<std::string> UnhexBytes(std::string_view text);  // either case; an odd number of digits is an error

// One of the two forms, as --hex says.
class BytesText {
 public:
  explicit BytesText(bool hex) : hex_(hex) {}
  std::string Print(std::string_view bytes) const { return hex_ ? HexBytes(bytes) : EscapeBytes(bytes); }
  absl::StatusOr<std::string> Parse(std::string_view text) const { return hex_ ? UnhexBytes(text) : UnescapeBytes(text); }

 private:
  bool hex_;
};

}  // namespace tamis::tools
