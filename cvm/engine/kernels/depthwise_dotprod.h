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
      Sums sums[1] = {{first[0], first[1], first[2], first[3]}};
      for (int64_t slot = 0; slot < task_.slots; slot += 4) add(slots_at(pixel, slot), weights_ + slot * kChannels, sums[0]);
      finish(sums, pixel);
    }
  }

 private:
  inline uint8x16_t bytes_at(const void* pixel) const { return Dot::taken(vld1q_u8(static_cast<const uint8_t*>(pixel) + task_.channel)); }

  inline Taps slots_at(int64_t pixel, int64_t slot) const {
    const void* const* at = task_.pixels + pixel * task_.slots + slot;
    return side_by_side(bytes_at(at[0]), bytes_at(at[1]), bytes_at(at[2]), bytes_at(at[3]));
  }

  using Lines = const void* const* [3];  // of the table, from one output pixel on

  inline Taps column_at(const Lines& lines, int64_t column) const {
    return side_by_side(bytes_at(lines[0][column]), bytes_at(lines[1][column]), bytes_at(lines[2][column]), vdupq_n_u8(0));
  }

  static inline void add(const Taps& x, const int8_t* weights, Sums& sums) {
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) sums[q] = Dot::dot(sums[q], x.parts[q], vld1q_s8(weights + 16 * q));
  }

  inline int32x4_t started(int32x4_t bias, int q) const {
    for (int64_t slot = 0; slot < task_.slots; slot += 4) bias = Dot::started(bias, vld1q_s8(weights_ + slot * kChannels + 16 * q));
    return bias;
  }

  // Two output pixels, the second of which begins kStride columns behind the first; it may be one too many. Columns that the
  // next two see, too, stay in registers.
  template <int kStride, typename Finish>
  void squares(const Sums& first, const Finish& finish) const {
    constexpr int kKept = 3 - kStride;
    Lines lines = {task_.pixels, task_.pixels + task_.columns, task_.pixels + 2 * task_.columns};
    Taps columns[3 + kStride];
    for (int i = 0; i < kKept; ++i) columns[2 * kStride + i] = column_at(lines, i);
    for (int64_t pixel = 0; pixel < task_.count; pixel += 2) {
      for (int i = 0; i < kKept; ++i) columns[i] = columns[2 * kStride + i];
#pragma GCC unroll 4
      for (int i = kKept; i < 3 + kStride; ++i) columns[i] = column_at(lines, i);
      finish_two<kStride>(columns, first, pixel, finish);
      for (auto& line : lines) line += 2 * kStride;
    }
  }

  template <int kStride, typename Finish>
  inline void finish_two(const Taps (&columns)[3 + kStride], const Sums& first, int64_t pixel, const Finish& finish) const {
    Sums sums[2];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      sums[0][q] = sums[1][q] = first[q];
#pragma GCC unroll 3
      for (int column = 0; column < 3; ++column) {
        const int8x16_t w = vld1q_s8(weights_ + 4 * kChannels * column + 16 * q);
        sums[0][q] = Dot::dot(sums[0][q], columns[column].parts[q], w);
        sums[1][q] = Dot::dot(sums[1][q], columns[column + kStride].parts[q], w);
      }
    }
    finish(sums, pixel);
  }

  const DepthwiseTask& task_;
  const int8_t* weights_;
};

template <typename Dot>
void dot_sums(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  ByDots<Dot>(task).run(bias, ToSums(task, columns, to, pitch));
}

template <typename Dot>
void dot_bytes(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  ByDots<Dot>(task).run(scale.bias, ToBytes(task, scale, columns, to, pitch));
}

// The table of kernels that multiply bytes by Dot, and 16-bit integers as every processor does.
template <typename Dot>
constexpr DepthwiseKernels dot_kernels() {
  DepthwiseKernels kernels = word_kernels();
  kernels.step8 = 4;
  kernels.wide_weights = false;
  kernels.square = kSquare;
  kernels.square_slots = 12;
  kernels.sums8 = dot_sums<Dot>;
  kernels.bytes8 = dot_bytes<Dot>;
  return kernels;
}

}  // namespace
}  // namespace cvm
