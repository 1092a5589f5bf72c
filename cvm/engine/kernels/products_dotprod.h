// Rows of bytes by sdot, for the AArch64 files that include this: four products added in 32 bits, 16 in an instruction.
#pragma once

#include "kernels/products_neon.h"

namespace cvm {
namespace {

// sdot takes signed bytes: stored ones less 128, which biases make up for (ProductKernels::less_128).
struct Dots {
  static constexpr int kRows = 6, kGrain = 1;

  template <int kStep, int R, int V>
  CVM_ALWAYS_INLINE static const int8_t* add(const int8x16_t (&x)[R], const int8_t* weights, Sums<R, V>& sums) {
#pragma GCC unroll 4
    for (int q = 0; q < 2 * V; ++q, weights += 16) {
      const int8x16_t w = vld1q_s8(weights);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r][q] = vdotq_laneq_s32(sums[r][q], w, x[r], kStep);
    }
    return weights;
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void accumulate(const ProductTask& task, int64_t row, Sums<R, V>& sums) {
    start<R, V>(task, sums);
    const int8_t* weights = static_cast<const int8_t*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap) {
      const int8_t* from[R];
      for (int r = 0; r < R; ++r) from[r] = static_cast<const int8_t*>(task.rows[tap * kMaxTileRows + row + r]);
      const int8x16_t sign = vdupq_n_s8(-128);
      int64_t k = 0;
      for (; k + 16 <= task.depth; k += 16) {
        int8x16_t x[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) x[r] = veorq_s8(vld1q_s8(from[r] + k), sign);
        weights = add<0, R, V>(x, weights, sums);
        weights = add<1, R, V>(x, weights, sums);
        weights = add<2, R, V>(x, weights, sums);
        weights = add<3, R, V>(x, weights, sums);
      }
      for (; k < task.depth; k += 4) {
        int8x16_t x[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) x[r] = veorq_s8(vreinterpretq_s8_s32(repeated(from[r] + k)), sign);
        weights = add<0, R, V>(x, weights, sums);
      }
    }
  }
};

}  // namespace
}  // namespace cvm
