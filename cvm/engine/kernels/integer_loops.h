// Arithmetic on 32-bit integers as plain loops: each file that includes this compiles them for its own instruction set, and
// compilers make vectors of them. What a proven program excludes wraps.
#pragma once

#include "kernels/elements.h"

namespace cvm {
namespace {

inline int32_t wrapped(uint32_t x) { return static_cast<int32_t>(x); }

// Calls row(count, x, y, out) for every row; a tile whose rows follow one another is a single one.
template <typename Row>
void for_rows(const Tile& tile, const int32_t* x, const Second& y, int32_t* out, const Row& row) {
  const bool whole = y.pitch == (y.repeated ? 0 : tile.width);
  const int64_t rows = whole ? 1 : tile.rows, width = whole ? tile.rows * tile.width : tile.width;
  for (int64_t i = 0; i < rows; ++i) row(width, x + i * width, y.data + i * y.pitch, out + i * width);
}

template <typename Operation>
void pairs(const Tile& tile, const int32_t* x, const Second& y, int32_t* out, const Operation& operation) {
  for_rows(tile, x, y, out, [&](int64_t count, const int32_t* a, const int32_t* b, int32_t* to) {
    if (y.repeated) {
      const int32_t same = *b;
      for (int64_t i = 0; i < count; ++i) to[i] = operation(a[i], same);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = operation(a[i], b[i]);
    }
  });
}

void add(const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [](int32_t a, int32_t b) { return wrapped(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); });
}

void sub(const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [](int32_t a, int32_t b) { return wrapped(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)); });
}

void mul(const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [](int32_t a, int32_t b) { return wrapped(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)); });
}

// The number of bits up to the highest that is set.
inline int bit_length(uint32_t x) {
  int length = 0;
  for (int half = 16; half > 0; half /= 2) {
    const bool upper = x >> half != 0;
    x = upper ? x >> half : x;
    length += upper ? half : 0;
  }
  return length + static_cast<int>(x);
}

// By a product with m = floor(2^k / divisor) + 1, k = 31 + ceil(log2 divisor) (Granlund and Montgomery, 1994): exact for every
// |x| <= 2^31, because m exceeds 2^k / divisor by no more than 2^(k - 31) / divisor. m fits 32 bits, so the product fits 64.
void divide(int32_t divisor, int64_t count, const int32_t* x, int32_t* out) {
  const int k = 31 + bit_length(static_cast<uint32_t>(divisor) - 1);
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

void shift_left(const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [](int32_t a, int32_t b) { return wrapped(static_cast<uint32_t>(a) << (b & 31)); });
}

void shift_right(const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [](int32_t a, int32_t b) { return a >> (b & 31); });
}

// Adds bit s-1 after shifting, so that nothing can overflow; a shift by 0 has no such bit.
void shift_right_rounded(const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [](int32_t a, int32_t b) {
    const int32_t amount = b & 31, bit = amount > 0 ? 1 : 0;
    return (a >> amount) + ((a >> (amount - bit)) & bit);
  });
}

void wrap8(int64_t count, const int32_t* x, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(x[i]);
}

void wrap16(int64_t count, const int32_t* x, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(x[i]);
}

int32_t sum(int64_t count, const int32_t* x) {
  uint32_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += static_cast<uint32_t>(x[i]);
  return wrapped(total);
}

int32_t greatest(int64_t count, const int32_t* x) {
  int32_t greatest = x[0];
  for (int64_t i = 1; i < count; ++i) greatest = x[i] > greatest ? x[i] : greatest;
  return greatest;
}

int32_t least(int64_t count, const int32_t* x) {
  int32_t least = x[0];
  for (int64_t i = 1; i < count; ++i) least = x[i] < least ? x[i] : least;
  return least;
}

void fill(int32_t value, int64_t count, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = value;
}

void centre8(int32_t zero_point, int64_t count, const uint8_t* from, int16_t* to) {
  const auto zero = static_cast<int16_t>(zero_point);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
}

void pair8(int32_t zero_point, int64_t count, const uint8_t* first, const uint8_t* second, int16_t* to) {
  const auto zero = static_cast<int16_t>(zero_point);
  for (int64_t i = 0; i < count; ++i) {
    to[2 * i] = static_cast<int16_t>(first[i] - zero);
    to[2 * i + 1] = static_cast<int16_t>(second[i] - zero);
  }
}

void pair16(int64_t count, const int16_t* first, const int16_t* second, int16_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[2 * i] = first[i];
    to[2 * i + 1] = second[i];
  }
}

// Only 16 bits of x count, so the place is at most 511, whatever they are. Points of 16 bits cannot overflow.
inline int32_t interpolated(const int16_t* points, int32_t x) {
  const uint32_t place = (static_cast<uint32_t>(x) + 32768u) & 0xffff;
  const int16_t* from = points + place / 128;
  return 128 * from[0] + static_cast<int32_t>(place % 128) * (from[1] - from[0]);
}

// floor(x y / 2^amount + 1/2), 1 <= amount <= 63, without ever adding to the product.
inline int32_t product_shifted(int32_t x, int32_t y, int amount) {
  const int64_t product = int64_t{x} * y >> (amount - 1);
  return static_cast<int32_t>((product >> 1) + (product & 1));
}

}  // namespace
}  // namespace cvm
