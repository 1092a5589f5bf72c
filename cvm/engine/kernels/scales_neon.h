// Rescales of 8 sums at once, for the AArch64 files that include this. Multipliers of 31 bits need no 64-bit sums here: sqdmulh
// gives floor(x m / 2^31), and a rounding shift by one less than the scale's finds the nearest integer of that, exactly.
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "kernels/scales.h"

namespace cvm {
namespace {

constexpr int kLanes = 8;  // channels of a block, in two registers

// Four bytes of any address, as often as a register has room.
inline int32x4_t repeated(const void* from) {
  int32_t bytes;
  memcpy(&bytes, from, 4);
  return vdupq_n_s32(bytes);
}

// Integers of 8 columns.
struct Eight {
  int32x4_t front, back;
};

inline Eight integers(const void* from) {
  const int32_t* eight = static_cast<const int32_t*>(from);
  return {vld1q_s32(eight), vld1q_s32(eight + 4)};
}

// Sums that wrap; compilers may take a signed one that does not fit for impossible.
inline int32x4_t sum(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_u32(vaddq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}
inline Eight sum(Eight a, Eight b) { return {sum(a.front, b.front), sum(a.back, b.back)}; }

inline Eight held(Eight x, int32x4_t low, int32x4_t high) {
  return {vminq_s32(vmaxq_s32(x.front, low), high), vminq_s32(vmaxq_s32(x.back, low), high)};
}

inline int16x8_t saturated(Eight x) { return vqmovn_high_s32(vqmovn_s32(x.front), x.back); }
inline int16x8_t low_words(Eight x) { return vuzp1q_s16(vreinterpretq_s16_s32(x.front), vreinterpretq_s16_s32(x.back)); }

// What a block of ScaleBlocks holds.
struct Block {
  const int32_t *multiplier, *last;
  const int64_t *half_even, *shift_even, *shift_odd;
};

inline Block block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  const int32_t* narrow = reinterpret_cast<const int32_t*>(data);
  const int64_t* wide = reinterpret_cast<const int64_t*>(data + 8 * kLanes);
  return {narrow, narrow + kLanes, wide, wide + kLanes, wide + kLanes + kLanes / 2};
}

// Of the forms bytes and words, without the zero point.
struct HighScale {
  Eight multiplier, shift;

  static inline HighScale of(const ScaleBlocks& scale, int64_t number) {
    const Block block = block_of(scale, number);
    const Eight last = integers(block.last);
    return {integers(block.multiplier), {vmvnq_s32(last.front), vmvnq_s32(last.back)}};  // -(last + 1)
  }
  inline Eight operator()(Eight x) const {
    return {vrshlq_s32(vqdmulhq_s32(x.front, multiplier.front), shift.front),
            vrshlq_s32(vqdmulhq_s32(x.back, multiplier.back), shift.back)};
  }
};

// Of the forms left and integers: the low 32 bits of 64-bit results.
struct LongScale {
  Eight multiplier;
  int64x2_t shift[4];

  static inline LongScale of(const ScaleBlocks& scale, int64_t number) {
    const Block block = block_of(scale, number);
    LongScale factors{integers(block.multiplier), {}};
    for (int pair = 0; pair < 4; pair += 2) {
      const int64x2_t even = vld1q_s64(block.shift_even + pair), odd = vld1q_s64(block.shift_odd + pair);
      factors.shift[pair] = right(vzip1q_s64(even, odd), scale.form);
      factors.shift[pair + 1] = right(vzip2q_s64(even, odd), scale.form);
    }
    return factors;
  }
  inline Eight operator()(Eight x) const {
    return {four(x.front, multiplier.front, shift[0], shift[1]), four(x.back, multiplier.back, shift[2], shift[3])};
  }

 private:
  // The form left shifts the other way, to the high half.
  static inline int64x2_t right(int64x2_t shift, ScaleForm form) {
    return form == ScaleForm::left ? vsubq_s64(shift, vdupq_n_s64(32)) : vnegq_s64(shift);
  }
  static inline int32x4_t four(int32x4_t x, int32x4_t multiplier, int64x2_t front, int64x2_t back) {
    const int64x2_t low = vrshlq_s64(vmull_s32(vget_low_s32(x), vget_low_s32(multiplier)), front);
    const int64x2_t high = vrshlq_s64(vmull_high_s32(x, multiplier), back);
    return vuzp1q_s32(vreinterpretq_s32_s64(low), vreinterpretq_s32_s64(high));
  }
};

// What the form bytes adds to its results: it is in the first channel's half, above half a unit.
inline int32_t zero_point_of(const ScaleBlocks& scale) {
  if (scale.form != ScaleForm::bytes) return 0;
  const Block block = block_of(scale, 0);
  return static_cast<int32_t>(*block.half_even >> (32 + *block.last));
}

inline Eight products(int16x8_t x, int16x8_t factor, Eight add) {
  return {vmlal_s16(add.front, vget_low_s16(x), vget_low_s16(factor)), vmlal_high_s16(add.back, x, factor)};
}

struct ShiftScale {
  Eight shift, constant;
  int16x8_t factor;

  static inline ShiftScale of(const ShiftBlocks& scale, int64_t number) {
    const uint8_t* block = scale.data + number * scale.stride;
    return {integers(block), integers(block + 4 * kLanes), low_words(integers(block + 8 * kLanes))};
  }
  inline Eight operator()(Eight sums) const { return {vshlq_s32(sums.front, shift.front), vshlq_s32(sums.back, shift.back)}; }
  // Sums and stored bytes, widened.
  inline Eight operator()(Eight sums, int16x8_t bytes) const { return products(bytes, factor, sum((*this)(sums), constant)); }
};

struct ByteScale {
  int16x8_t low, high;
  Eight low_add, high_add, shift;

  static inline ByteScale of(const ByteBlocks& scale, int64_t number) {
    const uint8_t* block = scale.data + number * scale.stride;
    const auto at = [block](int place) { return integers(block + place * 4 * kLanes); };
    const Eight shift = at(4);
    return {low_words(at(0)), low_words(at(1)), at(2), at(3), {vnegq_s32(shift.front), vnegq_s32(shift.back)}};
  }
  inline Eight operator()(int16x8_t bytes) const {
    const Eight lower = products(bytes, low, low_add), higher = products(bytes, high, high_add);
    return {vshlq_s32(vsraq_n_s32(higher.front, lower.front, 16), shift.front),
            vshlq_s32(vsraq_n_s32(higher.back, lower.back, 16), shift.back)};
  }
};

inline int16x8_t words_of_bytes(const uint8_t* from) { return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from))); }

// Eight elements, or the first `count` of them and zeros.
template <typename T>
inline const T* whole(const T* from, int64_t count, T (&spare)[kLanes]) {
  if (count >= kLanes) return from;
  for (int64_t i = 0; i < kLanes; ++i) spare[i] = i < count ? from[i] : T{0};
  return spare;
}

// The first `count` of eight elements, or all.
template <typename T>
inline void store_some(const T (&eight)[kLanes], int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = eight[i];
}

inline void store_integers(Eight x, int64_t count, int32_t* to) {
  int32_t spare[kLanes];
  int32_t* target = count >= kLanes ? to : spare;
  vst1q_s32(target, x.front);
  vst1q_s32(target + 4, x.back);
  if (count < kLanes) store_some(spare, count, to);
}

}  // namespace
}  // namespace cvm
