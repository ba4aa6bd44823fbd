// gtest helpers for absl::Status (the packaged Abseil has none).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tamis::testing_support {
inline absl::Status StatusOf(const absl::Status& s) { return s; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& s) {
  return s.status();
}
}  // namespace tamis::testing_support

#define EXPECT_OK(expression)                                                            \
  do {                                                                                   \
    const absl::Status tamis_s_ = ::tamis::testing_support::StatusOf((expression));      \
    EXPECT_TRUE(tamis_s_.ok()) << #expression << ": " << tamis_s_.ToString();            \
  } while (false)
#define ASSERT_OK(expression)                                                            \
  do {                                                                                   \
    const absl::Status tamis_s_ = ::tamis::testing_support::StatusOf((expression));      \
    ASSERT_TRUE(tamis_s_.ok()) << #expression << ": " << tamis_s_.ToString();            \
  } while (false)
#define EXPECT_CODE(expression, expected)                                                \
  do {                                                                                   \
    const absl::Status tamis_s_ = ::tamis::testing_support::StatusOf((expression));      \
    EXPECT_EQ(tamis_s_.code(), (expected)) << #expression << ": " << tamis_s_.ToString(); \
  } while (false)
#define TAMIS_TEST_CONCAT_INNER(a, b) a##b
#define TAMIS_TEST_CONCAT(a, b) TAMIS_TEST_CONCAT_INNER(a, b)
#define ASSERT_OK_AND_ASSIGN(target, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(TAMIS_TEST_CONCAT(tamis_value_, __LINE__), target, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(name, target, expression)           \
  auto name = (expression);                                            \
  ASSERT_TRUE(name.ok()) << #expression << ": " << name.status().ToString(); \
  target = *std::move(name)
