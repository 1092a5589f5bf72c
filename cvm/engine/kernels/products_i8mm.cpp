// Products of AArch64 processors with matrix products of bytes (FEAT_I8MM): usmmla multiplies two rows by two columns, eight deep,
// 32 products in an instruction, and takes stored bytes as they are.
#include "kernels/products_neon.h"

namespace cvm {

extern const ProductKernels kProductsDotprod;

namespace {

struct Matrices {
  static constexpr int kRows = 6, kGrain = 2;

  // Rows in twos, an odd last one with itself. Columns in twos: sums of both rows in one register.
  template <int R, int V>
  using Tiles = int32x4_t[(R + 1) / 2][4 * V];

  template <int R, int V>
  CVM_ALWAYS_INLINE static const int8_t* add(const uint8x16_t (&x)[(R + 1) / 2], const int8_t* weights, Tiles<R, V>& tiles) {
#pragma GCC unroll 8
    for (int c = 0; c < 4 * V; ++c, weights += 16) {
      const int8x16_t w = vld1q_s8(weights);
#pragma GCC unroll 4
      for (int p = 0; p < (R + 1) / 2; ++p) tiles[p][c] = vusmmlaq_s32(tiles[p][c], x[p], w);
    }
    return weights;
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void start(const ProductTask& task, Tiles<R, V>& tiles) {
#pragma GCC unroll 8
    for (int c = 0; c < 4 * V; ++c) {
      int64_t two;
      memcpy(&two, task.bias + 2 * c, 8);
      const int32x4_t bias = vreinterpretq_s32_s64(vdupq_n_s64(two));
#pragma GCC unroll 4
      for (int p = 0; p < (R + 1) / 2; ++p) tiles[p][c] = bias;
    }
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void add_all(const ProductTask& task, int64_t row, Tiles<R, V>& tiles) {
    constexpr int kPairs = (R + 1) / 2;
    const int8_t* weights = static_cast<const int8_t*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap) {
      const uint8_t* from[2 * kPairs];
      for (int r = 0; r < 2 * kPairs; ++r) {
        from[r] = static_cast<const uint8_t*>(task.rows[tap * kMaxTileRows + row + (r < R ? r : R - 1)]);
      }
      int64_t k = 0;
      for (; k + 16 <= task.depth; k += 16) {
        uint8x16_t front[kPairs], back[kPairs];
#pragma GCC unroll 4
        for (int p = 0; p < kPairs; ++p) {
          const uint64x2_t a = vreinterpretq_u64_u8(vld1q_u8(from[2 * p] + k)), b = vreinterpretq_u64_u8(vld1q_u8(from[2 * p + 1] + k));
          front[p] = vreinterpretq_u8_u64(vzip1q_u64(a, b));
          back[p] = vreinterpretq_u8_u64(vzip2q_u64(a, b));
        }
        weights = add<R, V>(front, weights, tiles);
        weights = add<R, V>(back, weights, tiles);
      }
      if (k < task.depth) {
        uint8x16_t x[kPairs];
#pragma GCC unroll 4
        for (int p = 0; p < kPairs; ++p) x[p] = vcombine_u8(vld1_u8(from[2 * p] + k), vld1_u8(from[2 * p + 1] + k));
        weights = add<R, V>(x, weights, tiles);
      }
    }
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void accumulate(const ProductTask& task, int64_t row, Sums<R, V>& sums) {
    Tiles<R, V> tiles;
    start<R, V>(task, tiles);
    add_all<R, V>(task, row, tiles);
#pragma GCC unroll 4
    for (int q = 0; q < 2 * V; ++q) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const int64x2_t a = vreinterpretq_s64_s32(tiles[r / 2][2 * q]), b = vreinterpretq_s64_s32(tiles[r / 2][2 * q + 1]);
        sums[r][q] = vreinterpretq_s32_s64(r % 2 == 0 ? vzip1q_s64(a, b) : vzip2q_s64(a, b));
      }
    }
  }
};

int64_t peak(int64_t rounds) {
  return peak_of(rounds, 32, [](int32x4_t sums, int8x16_t x) { return vusmmlaq_s32(sums, vreinterpretq_u8_s8(x), x); });
}

constexpr ProductKernels kernels() {
  ProductKernels kernels = product_kernels<Matrices>(8, peak);
  kernels.by_quads = &kProductsDotprod;
  return kernels;
}

}  // namespace

extern const ProductKernels kProductsI8mm;
constinit const ProductKernels kProductsI8mm = kernels();

}  // namespace cvm
