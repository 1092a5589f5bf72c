// Depthwise sums of 16-bit pixels with AVX-512 VNNI that finish in registers: squares 32 channels at once, any taps 16.
#include "kernels/depthwise_avx512.h"
#include "kernels/depthwise_word_runs.h"

namespace cvm {
namespace {

struct Sixteen : Words {
  using Half = __m256i;
  static constexpr int kLanes = cvm::kLanes;

  static Vector load(const void* from) { return cvm::load(from); }
  static Vector of_words(int16_t x) { return _mm512_set1_epi16(x); }
  static Vector of_bytes(char x) { return _mm512_set1_epi8(x); }
  static Vector low(Vector a, Vector b) { return _mm512_unpacklo_epi16(a, b); }
  static Vector high(Vector a, Vector b) { return _mm512_unpackhi_epi16(a, b); }
  static Vector dot_words(Vector sums, Vector x, Vector w) { return _mm512_dpwssd_epi32(sums, x, w); }
  static Vector pack_words(Vector a, Vector b) { return _mm512_packs_epi32(a, b); }
  static Vector pack_bytes(Vector a, Vector b) { return _mm512_packus_epi16(a, b); }
  static Vector in_order(Vector packed) { return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), packed); }
  static Vector hold_words(Vector x, Vector low, Vector high) { return _mm512_min_epi16(_mm512_max_epi16(x, low), high); }
  static Vector hold_bytes(Vector x, Vector low, Vector high) { return _mm512_min_epu8(_mm512_max_epu8(x, low), high); }
  static Half first(Vector x) { return _mm512_castsi512_si256(x); }
  static Half second(Vector x) { return _mm512_extracti64x4_epi64(x, 1); }
  static void store(Vector x, void* to) { _mm512_storeu_si512(to, x); }
  static void store(Half x, void* to) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  static void store(Half words, int16_t* to, Channels mask) { _mm256_mask_storeu_epi16(to, mask, words); }
};

}  // namespace

void word_run_to_bytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { word_run<Sixteen>(task, WordRunToBytes<Sixteen, Scale>(task, scale, to, pitch)); });
}

void word_run_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch) {
  by_long_scale(scale, [&]<typename Scale>() { word_run<Sixteen>(task, WordRunToWords<Sixteen, Scale>(task, scale, to, pitch)); });
}

void words_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, int16_t* to, int64_t pitch) {
  block_to_words<Sixteen>(task, scale, first_lanes(columns), to, pitch);
}

}  // namespace cvm
