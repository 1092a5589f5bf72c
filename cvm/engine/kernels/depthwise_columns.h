// Depthwise sums of kernels that take several taps of a channel at once: any slots in their order, squares column by column. What
// differs is a type X, of how pixels and weights of one width are read:
//   Vector, zero(), vector_at    the sums of a block of channels, and a vector of weights
//   Channels                     which of the channels may be read
//   kStep, kWeightBytes          slots taken at once, and the bytes of their weights
//   taps, add_product            the taps of kStep slots, and the sums with their products
//   Column, column_at, Weights, weights_at, add_column    the same of the three taps of a column of a square
#pragma once

#include "kernels/depthwise.h"

#if defined(__GNUC__)
#define CVM_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define CVM_ALWAYS_INLINE inline
#endif

namespace cvm {
namespace {

constexpr int kGroup = static_cast<int>(kPixelGroup);
constexpr int kWordRun = 2;  // blocks of 16-bit pixels that are taken at once

// A square by its columns, in fours of bytes or twos of words; the fourth slot of each has weight 0.
constexpr int8_t kSquare[] = {0, 3, 6, -1, 1, 4, 7, -1, 2, 5, 8, -1};

// Any taps, each through its own pointer. finish(sums of kGroup pixels, first of them) gets every group in turn.
template <typename X, typename Finish>
inline void general(const DepthwiseTask& task, typename X::Channels channels, const Finish& finish) {
  for (int64_t first = 0; first < task.count; first += kGroup) {
    const void* const* slots = task.pixels + first * task.slots;
    const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
    typename X::Vector sums[kGroup];
    for (int i = 0; i < kGroup; ++i) sums[i] = X::zero();
    for (int64_t slot = 0; slot < task.slots; slot += X::kStep, weights += X::kWeightBytes) {
      const typename X::Vector w = X::vector_at(weights);
      for (int i = 0; i < kGroup; ++i) {
        sums[i] = X::add_product(sums[i], X::taps(slots + i * task.slots + slot, task.channel, channels), w);
      }
    }
    finish(sums, first);
  }
}

// Every column is spread once and serves the output pixels that see it: three, or the outer ones two with a stride
// of 2.
template <typename X, int kStride, typename Finish>
inline void square(const DepthwiseTask& task, typename X::Channels channels, const Finish& finish) {
  const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
  const typename X::Weights left = X::weights_at(weights, 0), middle = X::weights_at(weights, 1), right = X::weights_at(weights, 2);
  const void* const* pixels = task.pixels;  // in registers: what is stored might change the task
  const int64_t line = task.columns, channel = task.channel, count = task.count;
  const auto column_at = [=](int64_t column) { return X::column_at(pixels + column, line, channel, channels); };
  typename X::Column before = column_at(0), centre = column_at(1);
  for (int64_t first = 0; first < count; first += kGroup) {
    typename X::Vector sums[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      const int64_t column = kStride * (first + i);
      if (kStride == 2) centre = column_at(column + 1);
      const typename X::Column after = column_at(column + 2);
      sums[i] = X::add_column(X::add_column(X::zero(), before, left), centre, middle);
      sums[i] = X::add_column(sums[i], after, right);
      before = kStride == 2 ? after : centre;
      centre = after;
    }
    finish(sums, first);
  }
}

template <typename X, typename Finish>
inline void for_groups(const DepthwiseTask& task, typename X::Channels channels, const Finish& finish) {
  if (task.stride == 1) return square<X, 1>(task, channels, finish);
  if (task.stride == 2) return square<X, 2>(task, channels, finish);
  general<X>(task, channels, finish);
}

// Two output pixels at a time, from the columns that they see, for a run of blocks. `Run::Column` is what a column holds, `Run::column_at`
// reads it, and finish<stride>(columns, pixel) gets those of a pixel and the next one.
template <int kStride, typename Run, typename Finish>
inline void run_squares(const DepthwiseTask& task, const Finish& finish) {
  typename Run::Column columns[3 + kStride];
  constexpr int kKept = 3 - kStride;  // columns that the next two pixels see, too
#pragma GCC unroll 2
  for (int i = 0; i < kKept; ++i) columns[2 * kStride + i] = Run::column_at(task, i);
  for (int64_t pixel = 0; pixel < task.count; pixel += 2) {
#pragma GCC unroll 2
    for (int i = 0; i < kKept; ++i) columns[i] = columns[2 * kStride + i];
#pragma GCC unroll 5
    for (int i = kKept; i < 3 + kStride; ++i) columns[i] = Run::column_at(task, kStride * pixel + i);
    finish.template operator()<kStride>(columns, pixel);
  }
}

}  // namespace
}  // namespace cvm
