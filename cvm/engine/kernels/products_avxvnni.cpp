// Sums of products with AVX-VNNI, of processors without AVX-512: vpdpbusd adds four products of a byte and a signed byte to 32 bits
// without saturating, vpdpwssd two of 16-bit integers.
#include "kernels/avxvnni.h"
#include "kernels/winograd_avx2.h"

namespace cvm {
namespace {

// Prefetches the cache line so many bytes behind this one: panels lie one behind the other, and with few rows the next one would come too
// late. Always inlined: gcc drops calls that it finds to have no effect.
CVM_ALWAYS_INLINE void fetch_panel(const uint8_t* from, int64_t bytes) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(bytes);
  _mm_prefetch(reinterpret_cast<const char*>(place), _MM_HINT_T1);
}

// Four bytes of depth at once: four 8-bit elements, or two of 16 bits.
template <bool kBytes>
struct Quads {
  static constexpr int kRows = 6;  // 6 x 2 sums, 2 vectors of weights and 1 of x leave one of the 16 registers
  static constexpr bool kSettles = true;

  template <int R, int V>
  CVM_ALWAYS_INLINE static void accumulate(const ProductTask& task, int64_t row, __m256i (&sums)[R][V]) {
    const int64_t bytes = kBytes ? task.depth : 2 * task.depth;
    const int64_t panel = task.taps * bytes * V * kLanes;
    const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap) {
      const uint8_t* x[R];
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) x[r] = static_cast<const uint8_t*>(task.rows[tap * kMaxTileRows + row + r]);
      for (int64_t k = 0; k < bytes; k += 4, weights += V * 32) {
        __m256i w[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) w[v] = load(weights + v * 32);
        fetch_panel(weights, panel);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          const __m256i four = broadcast(x[r] + k);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sums[r][v] = kBytes ? dot_bytes(sums[r][v], four, w[v]) : dot_words(sums[r][v], four, w[v]);
        }
      }
    }
  }
};

// Twelve independent sums hide the latency of vpdpbusd.
int64_t peak(int64_t rounds) {
  constexpr int kSums = 12;
  __m256i sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_epi32(i + 1);
  const __m256i x = _mm256_set1_epi32(0x01020304), w = _mm256_set1_epi32(0x04030201);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = settled(dot_bytes(sums[i], x, w));  // in its register
    }
  }
  __m256i mix = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kSums; ++i) mix = _mm256_xor_si256(mix, sums[i]);
  volatile int32_t sink = _mm256_extract_epi32(mix, 0);
  (void)sink;
  return rounds * kSums * kLanes * 4;
}

using Bytes = Quads<true>;
using Words = Quads<false>;

}  // namespace

extern const ProductKernels kProductsAvxvnni;
const ProductKernels kProductsAvxvnni = {
    kLanes, Bytes::kRows, 4, 2, false, sums_of<Bytes>, sums_of<Words>, bytes_of<Bytes>, residual_of<Bytes>, wide_of<Bytes>, words_of<Bytes>,
    bytes_of<Words>, words_of<Words>, widen, transform_tile<ShortVectors>, untransform_tiles<IntegerVectors>, peak, false, nullptr, false, false, nullptr, nullptr, true, true};

}  // namespace cvm
