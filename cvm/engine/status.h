// Results that carry a sentence instead of an exception.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace cvm {

// Empty if all is well, else what was found, where, and what was expected.
using Problem = std::string;

template <typename T>
class Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor): reads as a return
  Expected(Problem problem) : problem_(std::move(problem)) {}  // NOLINT(google-explicit-constructor)
  Expected(const char* problem) : problem_(problem) {}         // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  const Problem& problem() const { return problem_; }

 private:
  std::optional<T> value_;
  Problem problem_;
};

}  // namespace cvm

// Leaves the function with a sentence unless the condition holds.
#define CVM_REQUIRE(condition, sentence)        \
  do {                                          \
    if (!(condition)) return Problem(sentence); \
  } while (false)
