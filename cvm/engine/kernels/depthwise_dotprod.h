// Depthwise sums of bytes by dot products, for the AArch64 files that include this. Four taps of a channel lie side by side after
// two rounds of zips; of a square, the three taps of a column and a zero, which up to three output pixels share.
#pragma once

#include "kernels/depthwise_neon.h"

namespace cvm {
namespace {

// Four taps of 16 channels: four channels in each register.
struct Taps {
  uint8x16_t parts[4];
};

inline Taps side_by_side(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
  const uint16x8_t front_ab = vreinterpretq_u16_u8(vzip1q_u8(a, b)), back_ab = vreinterpretq_u16_u8(vzip2q_u8(a, b));
  const uint16x8_t front_cd = vreinterpretq_u16_u8(vzip1q_u8(c, d)), back_cd = vreinterpretq_u16_u8(vzip2q_u8(c, d));
  return {{vreinterpretq_u8_u16(vzip1q_u16(front_ab, front_cd)), vreinterpretq_u8_u16(vzip2q_u16(front_ab, front_cd)),
           vreinterpretq_u8_u16(vzip1q_u16(back_ab, back_cd)), vreinterpretq_u8_u16(vzip2q_u16(back_ab, back_cd))}};
}

// Dot: `taken` is what it makes of stored bytes, dot(sums, taken, weights) adds products, start(bias, weights...) undoes `taken`.
template <typename Dot>
class ByDots {
 public:
  explicit ByDots(const DepthwiseTask& task) : task_(task), weights_(static_cast<const int8_t*>(task.weights)) {}

  template <typename Finish>
  void run(const int32_t* bias, const Finish& finish) const {
    Sums first;
    for (int q = 0; q < 4; ++q) first[q] = started(quarter(bias, q), q);
    if (task_.stride == 1) return squares<1>(first, finish);
    if (task_.stride == 2) return squares<2>(first, finish);
    for (int64_t pixel = 0; pixel < task_.count; ++pixel) {
      Sums sums = {first[0], first[1], first[2], first[3]};
      for (int64_t slot = 0; slot < task_.slots; slot += 4) add(slots_at(pixel, slot), weights_ + slot * kChannels, sums);
      finish(sums, pixel);
    }
  }

 private:
  inline uint8x16_t bytes_at(const void* pixel) const { return Dot::taken(vld1q_u8(static_cast<const uint8_t*>(pixel) + task_.channel)); }

  inline Taps slots_at(int64_t pixel, int64_t slot) const {
    const void* const* at = task_.pixels + pixel * task_.slots + slot;
    return side_by_side(bytes_at(at[0]), bytes_at(at[1]), bytes_at(at[2]), bytes_at(at[3]));
  }

  inline Taps column_at(int64_t column) const {
    const void* const* at = task_.pixels + column;
    return side_by_side(bytes_at(at[0]), bytes_at(at[task_.columns]), bytes_at(at[2 * task_.columns]), vdupq_n_u8(0));
  }

  static inline void add(const Taps& x, const int8_t* weights, Sums& sums) {
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) sums[q] = Dot::dot(sums[q], x.parts[q], vld1q_s8(weights + 16 * q));
  }

  inline int32x4_t started(int32x4_t bias, int q) const {
    for (int64_t slot = 0; slot < task_.slots; slot += 4) bias = Dot::started(bias, vld1q_s8(weights_ + slot * kChannels + 16 * q));
    return bias;
  }

  // One output pixel from three columns.
  template <typename Finish>
  inline void pixel(const Sums& first, const Taps& a, const Taps& b, const Taps& c, int64_t number, const Finish& finish) const {
    Sums sums = {first[0], first[1], first[2], first[3]};
    add(a, weights_, sums);
    add(b, weights_ + 4 * kChannels, sums);
    add(c, weights_ + 8 * kChannels, sums);
    finish(sums, number);
  }

  // Columns that the next pixels see, too, stay in registers: three pixels, or two, until the same registers are their first.
  template <int kStride, typename Finish>
  void squares(const Sums& first, const Finish& finish) const {
    Taps a = column_at(0), b, c;
    if constexpr (kStride == 1) b = column_at(1);
    for (int64_t number = 0; number < task_.count;) {
      if constexpr (kStride == 1) {
        c = column_at(number + 2);
        pixel(first, a, b, c, number++, finish);
        if (number == task_.count) return;
        a = column_at(number + 2);
        pixel(first, b, c, a, number++, finish);
        if (number == task_.count) return;
        b = column_at(number + 2);
        pixel(first, c, a, b, number++, finish);
      } else {
        b = column_at(2 * number + 1), c = column_at(2 * number + 2);
        pixel(first, a, b, c, number++, finish);
        if (number == task_.count) return;
        b = column_at(2 * number + 1), a = column_at(2 * number + 2);
        pixel(first, c, b, a, number++, finish);
      }
    }
  }

  const DepthwiseTask& task_;
  const int8_t* weights_;
};

template <typename Dot>
void dot_sums(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  ByDots<Dot>(task).run(bias, ToSums(columns, to, pitch));
}

template <typename Dot>
void dot_bytes(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  ByDots<Dot>(task).run(scale.bias, ToBytes(scale, columns, to, pitch));
}

}  // namespace
}  // namespace cvm
