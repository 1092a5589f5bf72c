// Sums of products with vpmaddwd: pairs of 16-bit products added exactly in 32 bits. vpmaddubsw takes bytes, but saturates at
// 16 bits, which makes other engines' results differ between machines: it is used where no sum of these weights can.
#include "kernels/winograd_avx2.h"

namespace cvm {
namespace {

// Rows of 16-bit integers, weights of 8 or 16 bits.
template <typename Weight>
struct Words {
  static constexpr int kRows = 6;  // 6 x 2 sums, 2 vectors of weights and 1 of x fill the 16 registers
  static constexpr bool kSettles = true;

  // Weights of one step for 8 columns as 16-bit integers.
  static __m256i weights_at(const Weight* from) {
    if constexpr (sizeof(Weight) == 1) {
      return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    } else {
      return load(from);
    }
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void accumulate(const ProductTask& task, int64_t row, __m256i (&sums)[R][V]) {
    const Weight* weights = static_cast<const Weight*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap) {
      const int16_t* x[R];
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) x[r] = static_cast<const int16_t*>(task.rows[tap * kMaxTileRows + row + r]);
      for (int64_t k = 0; k < task.depth; k += 2) {
        __m256i w[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) w[v] = weights_at(weights + v * kLanes * 2);
        weights += V * kLanes * 2;
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          const __m256i pair = broadcast(x[r] + k);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(pair, w[v]));
        }
      }
    }
  }
};

// Rows of bytes, weights in byte steps. The products of a step, or of both steps of a double, are added in 16 bits.
struct Bytes {
  static constexpr int kRows = 4;  // 4 x 2 sums, 2 steps of x for 2 rows, 2 sums of 16 bits and the ones
  static constexpr bool kSettles = false;  // settled sums of few steps would take up to 1.1 times as long

  // kCount rows from kFirst on: a vector of weights is loaded once for them.
  template <int kSteps, int kFirst, int kCount, int R, int V>
  CVM_ALWAYS_INLINE static void add(const uint8_t* const (&x)[R], const int32_t* offsets, const int8_t* weights,
                         __m256i (&sums)[R][V]) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i quads[kCount][kSteps];
#pragma GCC unroll 2
    for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 2
      for (int s = 0; s < kSteps; ++s) quads[i][s] = broadcast(x[kFirst + i] + offsets[s]);
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      __m256i sums16[kCount];
#pragma GCC unroll 2
      for (int s = 0; s < kSteps; ++s) {
        const __m256i w = load(weights + (s * V + v) * kLanes * 4);
#pragma GCC unroll 2
        for (int i = 0; i < kCount; ++i) {
          const __m256i products = _mm256_maddubs_epi16(quads[i][s], w);
          sums16[i] = s == 0 ? products : _mm256_add_epi16(sums16[i], products);
        }
      }
#pragma GCC unroll 2
      for (int i = 0; i < kCount; ++i) {
        sums[kFirst + i][v] = _mm256_add_epi32(sums[kFirst + i][v], _mm256_madd_epi16(sums16[i], ones));
      }
    }
  }

  template <int kSteps, int R, int V>
  CVM_ALWAYS_INLINE static void add_all(const uint8_t* const (&x)[R], const int32_t* offsets, const int8_t* weights,
                             __m256i (&sums)[R][V]) {
    if constexpr (R >= 2) add<kSteps, 0, 2>(x, offsets, weights, sums);
    if constexpr (R >= 4) add<kSteps, 2, 2>(x, offsets, weights, sums);
    if constexpr (R % 2 == 1) add<kSteps, R - 1, 1>(x, offsets, weights, sums);
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void accumulate(const ProductTask& task, int64_t row, __m256i (&sums)[R][V]) {
    const uint8_t* x[R];
    for (int r = 0; r < R; ++r) x[r] = static_cast<const uint8_t*>(task.rows[row + r]);
    const int8_t* weights = static_cast<const int8_t*>(task.weights);
    const int32_t* offsets = task.offsets;
    for (int64_t i = 0; i < task.doubles; ++i, offsets += 2, weights += 2 * V * kLanes * 4) {
      add_all<2>(x, offsets, weights, sums);
    }
    for (int64_t i = 0; i < task.singles; ++i, ++offsets, weights += V * kLanes * 4) {
      add_all<1>(x, offsets, weights, sums);
    }
  }
};

// Six independent sums hide the latency of vpaddd.
int64_t peak(int64_t rounds) {
  constexpr int kSums = 6;
  __m256i sums[kSums], x[kSums];
#pragma GCC unroll 6
  for (int i = 0; i < kSums; ++i) sums[i] = x[i] = _mm256_set1_epi32(i + 1);
  __m256i w = _mm256_set1_epi16(-5);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 6
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(x[i], w));
#if defined(__GNUC__)
    asm volatile("" : "+x"(w));  // otherwise the products are computed once for all rounds
#endif
  }
  __m256i mix = sums[0];
  for (int i = 1; i < kSums; ++i) mix = _mm256_xor_si256(mix, sums[i]);
  volatile int32_t sink = _mm256_extract_epi32(mix, 0);
  (void)sink;
  return rounds * kSums * kLanes * 2;
}

using Words8 = Words<int8_t>;
using Words16 = Words<int16_t>;

// Only sums: an epilogue in the same function spills the registers of this loop, and a pass over the tile takes less.
const ProductKernels kByBytes = {kLanes,  Bytes::kRows, 4,       2,       false,   sums_of<Bytes>, sums_of<Words16>,
                                 nullptr, nullptr,      nullptr, nullptr, nullptr, nullptr,        widen,
                                 nullptr, nullptr,      peak,    true,    nullptr};

}  // namespace

extern const ProductKernels kProductsAvx2;
const ProductKernels kProductsAvx2 = {kLanes,          Words8::kRows,    2,                2,
                                      true,            sums_of<Words8>,  sums_of<Words16>, bytes_of<Words8>,
                                      residual_of<Words8>, wide_of<Words8>, words_of<Words8>, bytes_of<Words16>, words_of<Words16>, widen,
                                      transform_tile<ShortVectors>, untransform_tiles<IntegerVectors>, peak,             false,
                                      &kByBytes,       false,               false,               nullptr,
                                      nullptr,         true,                true};

}  // namespace cvm
