// Rescales of 4 sums at once, for the AArch64 files that include this. Multipliers of 31 bits need no 64-bit sums here: sqdmulh
// gives floor(x m / 2^31), and a rounding shift by one less than the scale's finds the nearest integer of that, exactly.
#pragma once

#include <arm_neon.h>
#include <stdint.h>

#include "kernels/scales.h"

namespace cvm {
namespace {

constexpr int kLanes = 8;  // channels of a block, in two registers

inline int32x4_t integers(const void* from) { return vld1q_s32(static_cast<const int32_t*>(from)); }

// What a block of ScaleBlocks holds for 4 of its channels; `quarter` counts them from the first block on.
struct Block {
  const int32_t *multiplier, *last;
  const int64_t *half_even, *shift_even, *shift_odd;
};

inline Block block_of(const ScaleBlocks& scale, int64_t quarter) {
  const uint8_t* data = scale.data + quarter / 2 * scale.stride;
  const int32_t* narrow = reinterpret_cast<const int32_t*>(data) + quarter % 2 * 4;
  const int64_t* wide = reinterpret_cast<const int64_t*>(data + 8 * kLanes) + quarter % 2 * 2;
  return {narrow, narrow + kLanes, wide, wide + kLanes, wide + kLanes + kLanes / 2};
}

// Of the forms bytes and words, without the zero point.
struct HighScale {
  int32x4_t multiplier, shift;

  static inline HighScale of(const ScaleBlocks& scale, int64_t quarter) {
    const Block block = block_of(scale, quarter);
    return {integers(block.multiplier), vmvnq_s32(integers(block.last))};  // -(last + 1)
  }
  inline int32x4_t operator()(int32x4_t x) const { return vrshlq_s32(vqdmulhq_s32(x, multiplier), shift); }
};

// Of the forms left and integers: the low 32 bits of a 64-bit result.
struct LongScale {
  int32x4_t multiplier;
  int64x2_t front, back;

  static inline LongScale of(const ScaleBlocks& scale, int64_t quarter) {
    const Block block = block_of(scale, quarter);
    const int64x2_t even = vld1q_s64(block.shift_even), odd = vld1q_s64(block.shift_odd);
    const int64x2_t front = vzip1q_s64(even, odd), back = vzip2q_s64(even, odd), most = vdupq_n_s64(32);
    if (scale.form == ScaleForm::left) return {integers(block.multiplier), vsubq_s64(front, most), vsubq_s64(back, most)};
    return {integers(block.multiplier), vnegq_s64(front), vnegq_s64(back)};
  }
  inline int32x4_t operator()(int32x4_t x) const {
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

struct ShiftScale {
  int32x4_t shift, constant;
  int16x4_t factor;

  static inline ShiftScale of(const ShiftBlocks& scale, int64_t quarter) {
    const uint8_t* block = scale.data + quarter / 2 * scale.stride + quarter % 2 * 16;
    return {integers(block), integers(block + 4 * kLanes), vmovn_s32(integers(block + 8 * kLanes))};
  }
  // Sums and four stored bytes, widened; or sums alone.
  inline int32x4_t operator()(int32x4_t sums, int16x4_t bytes) const {
    return vmlal_s16(vaddq_s32(vshlq_s32(sums, shift), constant), bytes, factor);
  }
  inline int32x4_t operator()(int32x4_t sums) const { return vshlq_s32(sums, shift); }
};

struct ByteScale {
  int16x4_t low, high;
  int32x4_t low_add, high_add, shift;

  static inline ByteScale of(const ByteBlocks& scale, int64_t quarter) {
    const uint8_t* block = scale.data + quarter / 2 * scale.stride + quarter % 2 * 16;
    const auto part = [block](int number) { return integers(block + number * 4 * kLanes); };
    return {vmovn_s32(part(0)), vmovn_s32(part(1)), part(2), part(3), vnegq_s32(part(4))};
  }
  inline int32x4_t operator()(int16x4_t bytes) const {
    return vshlq_s32(vsraq_n_s32(vmlal_s16(high_add, bytes, high), vmlal_s16(low_add, bytes, low), 16), shift);
  }
};

// Four elements, or the first `count` of them and zeros.
template <typename T>
inline const T* whole(const T* from, int64_t count, T (&spare)[4]) {
  if (count >= 4) return from;
  for (int64_t i = 0; i < 4; ++i) spare[i] = i < count ? from[i] : T{0};
  return spare;
}

inline int32x4_t integers_at(const int32_t* from, int64_t count) {
  int32_t spare[4];
  return vld1q_s32(whole(from, count, spare));
}

inline int16x4_t words_at(const int16_t* from, int64_t count) {
  int16_t spare[4];
  return vld1_s16(whole(from, count, spare));
}

inline int16x4_t bytes_at(const uint8_t* from, int64_t count) {
  uint8_t spare[4];
  const auto* four = reinterpret_cast<const uint32_t*>(whole(from, count, spare));
  const uint8x8_t bytes = vreinterpret_u8_u32(vld1_dup_u32(four));
  return vget_low_s16(vreinterpretq_s16_u16(vmovl_u8(bytes)));
}

inline void store_integers(int32x4_t x, int64_t count, int32_t* to) {
  if (count >= 4) return vst1q_s32(to, x);
  int32_t spare[4];
  vst1q_s32(spare, x);
  for (int64_t i = 0; i < count; ++i) to[i] = spare[i];
}

}  // namespace
}  // namespace cvm
