// Arithmetic on 32-bit integers as plain loops: each file that includes this compiles them for its own instruction set, and
// compilers make vectors of them. What a proven program excludes wraps.
#pragma once

#include <stdint.h>

namespace cvm {
namespace {

inline int32_t wrapped(uint32_t x) { return static_cast<int32_t>(x); }

void sub(int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = wrapped(static_cast<uint32_t>(x[i]) - static_cast<uint32_t>(y[i]));
}

void mul(int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = wrapped(static_cast<uint32_t>(x[i]) * static_cast<uint32_t>(y[i]));
}

// By a product with m = floor(2^k / divisor) + 1, k = 31 + ceil(log2 divisor) (Granlund and Montgomery, 1994): exact for every
// |x| <= 2^31, because m exceeds 2^k / divisor by no more than 2^(k - 31) / divisor. m fits 32 bits, so the product fits 64.
void divide(int32_t divisor, int64_t count, const int32_t* x, int32_t* out) {
  int k = 31;
  while ((int64_t{1} << (k - 31)) < divisor) ++k;
  const auto m = static_cast<uint32_t>((uint64_t{1} << k) / static_cast<uint32_t>(divisor) + 1);
  for (int64_t i = 0; i < count; ++i) {
    const auto sign = static_cast<uint32_t>(x[i] >> 31);
    const uint32_t size = (static_cast<uint32_t>(x[i]) ^ sign) - sign;
    const auto quotient = static_cast<uint32_t>(uint64_t{size} * m >> k);
    out[i] = wrapped((quotient ^ sign) - sign);
  }
}

void maximum(int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] > y[i] ? x[i] : y[i];
}

void minimum(int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] < y[i] ? x[i] : y[i];
}

void abs(int64_t count, const int32_t* x, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] < 0 ? wrapped(0u - static_cast<uint32_t>(x[i])) : x[i];
}

void shift_left(int64_t count, const int32_t* x, const int32_t* s, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = wrapped(static_cast<uint32_t>(x[i]) << (s[i] & 31));
}

void shift_right(int64_t count, const int32_t* x, const int32_t* s, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] >> (s[i] & 31);
}

// Adds bit s-1 after shifting, so that nothing can overflow; a shift by 0 has no such bit.
void shift_right_rounded(int64_t count, const int32_t* x, const int32_t* s, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t amount = s[i] & 31, bit = amount > 0 ? 1 : 0;
    out[i] = (x[i] >> amount) + ((x[i] >> (amount - bit)) & bit);
  }
}

// floor(x y / 2^amount + 1/2), 1 <= amount <= 63, without ever adding to the product.
inline int32_t product_shifted(int32_t x, int32_t y, int amount) {
  const int64_t product = int64_t{x} * y >> (amount - 1);
  return static_cast<int32_t>((product >> 1) + (product & 1));
}

}  // namespace
}  // namespace cvm
