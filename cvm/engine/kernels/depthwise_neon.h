// Sums of one channel each, 16 channels at once, and what follows them, for the AArch64 files that include this.
#pragma once

#include <arm_neon.h>

#include "kernels/depthwise.h"

namespace cvm {
namespace {

constexpr int kChannels = 16;

using Sums = int32x4_t[4];  // of 16 channels

// Four integers for each register of sums, in memory.
inline int32x4_t quarter(const int32_t* from, int q) { return vld1q_s32(from + 4 * q); }

// Adds a slot's products of 16-bit integers.
inline void add(int16x8_t x, int16x8_t w, int32x4_t& front, int32x4_t& back) {
  front = vmlal_s16(front, vget_low_s16(x), vget_low_s16(w));
  back = vmlal_high_s16(back, x, w);
}

struct Words {
  int16x8_t front, back;
};

inline Words words_at(const uint8_t* from, int64_t) {
  const uint8x16_t bytes = vld1q_u8(from);
  return {vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))), vreinterpretq_s16_u16(vmovl_high_u8(bytes))};
}

// No more than `columns` of them are read.
inline Words words_at(const int16_t* from, int64_t columns) {
  int16_t spare[kChannels] = {};
  if (columns < kChannels) {
    for (int64_t i = 0; i < columns; ++i) spare[i] = from[i];
    from = spare;
  }
  return {vld1q_s16(from), vld1q_s16(from + 8)};
}

template <typename X>
inline void add_slot(const DepthwiseTask& task, const void* pixel, int64_t slot, int64_t columns, Sums& sums) {
  const int16_t* weights = static_cast<const int16_t*>(task.weights) + slot * kChannels;
  const Words x = words_at(static_cast<const X*>(pixel) + task.channel, columns);
  add(x.front, vld1q_s16(weights), sums[0], sums[1]);
  add(x.back, vld1q_s16(weights + 8), sums[2], sums[3]);
}

constexpr int8_t kSquare[] = {0, 3, 6, -1, 1, 4, 7, -1, 2, 5, 8, -1};  // the tap in each slot: columns, and a spare slot for each

template <typename X>
inline void add_words(const DepthwiseTask& task, int64_t pixel, int64_t columns, Sums& sums) {
  if (task.stride == 0) {
    const void* const* slots = task.pixels + pixel * task.slots;
    for (int64_t slot = 0; slot < task.slots; ++slot) add_slot<X>(task, slots[slot], slot, columns, sums);
    return;
  }
  for (int64_t q = 0; q < 3; ++q) {
    const void* const* column = task.pixels + pixel * task.stride + q;
    for (int64_t p = 0; p < 3; ++p) add_slot<X>(task, column[p * task.columns], 4 * q + p, columns, sums);
  }
}

// Rescales in 32 bits (scales_neon.h), to the bytes of neighbouring pixels, which share what is read of the scale.
class ToBytes {
 public:
  ToBytes(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch)
      : multiplier_(scale.multiplier), zero_point_(vdupq_n_s16(scale.zero_point)), low_(vdupq_n_u8(static_cast<uint8_t>(scale.low))),
        high_(vdupq_n_u8(static_cast<uint8_t>(scale.high))), count_(task.count), columns_(columns), to_(to), pitch_(pitch) {
    for (int q = 0; q < 4; ++q) shift_[q] = vmvnq_s32(quarter(scale.shift, q));  // -(shift + 1)
  }

  template <int N>
  inline void operator()(const Sums (&sums)[N], int64_t pixel) const {
    int16x8_t words[N][2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int32x4_t front = quarter(multiplier_, 2 * half), back = quarter(multiplier_, 2 * half + 1);
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) {
        const int32x4_t first = vrshlq_s32(vqdmulhq_s32(sums[n][2 * half], front), shift_[2 * half]);
        const int32x4_t second = vrshlq_s32(vqdmulhq_s32(sums[n][2 * half + 1], back), shift_[2 * half + 1]);
        words[n][half] = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(first), second), zero_point_);
      }
    }
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
      const uint8x16_t bytes = vqmovun_high_s16(vqmovun_s16(words[n][0]), words[n][1]);
      if (pixel + n < count_) store(vminq_u8(vmaxq_u8(bytes, low_), high_), to_ + (pixel + n) * pitch_);
    }
  }

 private:
  inline void store(uint8x16_t bytes, uint8_t* to) const {
    if (columns_ == kChannels) return vst1q_u8(to, bytes);
    uint8_t spare[kChannels];
    vst1q_u8(spare, bytes);
    for (int64_t i = 0; i < columns_; ++i) to[i] = spare[i];
  }

  const int32_t* multiplier_;
  int32x4_t shift_[4];
  int16x8_t zero_point_;
  uint8x16_t low_, high_;
  int64_t count_, columns_;
  uint8_t* to_;
  int64_t pitch_;
};

// To int32, `columns` of them in each row.
class ToSums {
 public:
  ToSums(const DepthwiseTask& task, int64_t columns, int32_t* to, int64_t pitch)
      : count_(task.count), columns_(columns), to_(to), pitch_(pitch) {}

  template <int N>
  inline void operator()(const Sums (&sums)[N], int64_t pixel) const {
    for (int n = 0; n < N && pixel + n < count_; ++n) store(sums[n], to_ + (pixel + n) * pitch_);
  }

 private:
  inline void store(const Sums& sums, int32_t* to) const {
    int32_t spare[kChannels];
    int32_t* target = columns_ == kChannels ? to : spare;
    for (int q = 0; q < 4; ++q) vst1q_s32(target + 4 * q, sums[q]);
    if (columns_ == kChannels) return;
    for (int64_t i = 0; i < columns_; ++i) to[i] = spare[i];
  }

  int64_t count_, columns_;
  int32_t* to_;
  int64_t pitch_;
};

template <typename X, typename Finish>
inline void each_pixel(const DepthwiseTask& task, const int32_t* bias, int64_t columns, const Finish& finish) {
  for (int64_t pixel = 0; pixel < task.count; ++pixel) {
    Sums sums[1];
    for (int q = 0; q < 4; ++q) sums[0][q] = quarter(bias, q);
    add_words<X>(task, pixel, columns, sums[0]);
    finish(sums, pixel);
  }
}

template <typename X>
void word_sums(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  each_pixel<X>(task, bias, columns, ToSums(task, columns, to, pitch));
}

template <typename X>
void word_bytes(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  each_pixel<X>(task, scale.bias, columns, ToBytes(task, scale, columns, to, pitch));
}

// The table of kernels that multiply 16-bit integers.
constexpr DepthwiseKernels word_kernels() {
  return {
      .lanes = kChannels,
      .order = nullptr,
      .step8 = 1,
      .step16 = 1,
      .wide_weights = true,
      .square = nullptr,
      .square_slots = 0,
      .sums8 = word_sums<uint8_t>,
      .sums16 = word_sums<int16_t>,
      .bytes8 = word_bytes<uint8_t>,
      .bytes16 = word_bytes<int16_t>,
      .adds_bias = true,
  };
}

}  // namespace
}  // namespace cvm
