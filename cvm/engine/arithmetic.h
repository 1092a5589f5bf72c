// The arithmetic of SPEC.md on single integers, each named and written once. Nothing here can overflow or trap,
// whatever the operands: what a proven program excludes wraps or stops at an end.
#pragma once

#include <cstdint>

namespace cvm {

constexpr std::int32_t wrap_add(std::int32_t x, std::int32_t y) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) + static_cast<std::uint32_t>(y));
}

constexpr std::int32_t wrap_sub(std::int32_t x, std::int32_t y) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) - static_cast<std::uint32_t>(y));
}

constexpr std::int32_t wrap_mul(std::int32_t x, std::int32_t y) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y));
}

constexpr std::int64_t clamp64(std::int64_t x, std::int64_t low, std::int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// floor((x * multiplier + 2^(shift-1)) / 2^shift), 2 <= shift <= 62, |x| <= 2^32, 0 <= multiplier < 2^31: fits 64 bits
// because |x| * multiplier < 2^62 for the x - zero_point that a program can form.
constexpr std::int64_t multiply_shift(std::int64_t x, std::int64_t multiplier, int shift) {
  return (x * multiplier + (std::int64_t{1} << (shift - 1))) >> shift;
}

// floor(value / 2^shift + 1/2) without ever adding: exact for every value and 0 <= shift <= 63.
constexpr std::int64_t shift_half_up(std::int64_t value, int shift) {
  return shift == 0 ? value : ((value >> (shift - 1)) >> 1) + ((value >> (shift - 1)) & 1);
}

}  // namespace cvm
