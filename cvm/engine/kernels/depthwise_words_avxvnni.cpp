// Depthwise sums of 16-bit pixels with AVX-VNNI that finish in registers: squares 16 channels at once, any taps 8.
#include "kernels/depthwise_avxvnni.h"
#include "kernels/depthwise_word_runs.h"

namespace cvm {
namespace {

struct Eight : Words {
  using Half = __m128i;
  static constexpr int kLanes = cvm::kLanes;

  static Vector load(const void* from) { return cvm::load(from); }
  static Vector of_words(int16_t x) { return _mm256_set1_epi16(x); }
  static Vector of_bytes(char x) { return _mm256_set1_epi8(x); }
  static Vector low(Vector a, Vector b) { return _mm256_unpacklo_epi16(a, b); }
  static Vector high(Vector a, Vector b) { return _mm256_unpackhi_epi16(a, b); }
  static Vector dot_words(Vector sums, Vector x, Vector w) { return cvm::dot_words(sums, x, w); }
  static Vector pack_words(Vector a, Vector b) { return _mm256_packs_epi32(a, b); }
  static Vector pack_bytes(Vector a, Vector b) { return _mm256_packus_epi16(a, b); }
  static Vector in_order(Vector packed) { return _mm256_permute4x64_epi64(packed, 0xD8); }
  static Vector hold_words(Vector x, Vector low, Vector high) { return _mm256_min_epi16(_mm256_max_epi16(x, low), high); }
  static Vector hold_bytes(Vector x, Vector low, Vector high) { return _mm256_min_epu8(_mm256_max_epu8(x, low), high); }
  static Half first(Vector x) { return _mm256_castsi256_si128(x); }
  static Half second(Vector x) { return _mm256_extracti128_si256(x, 1); }
  static void store(Vector x, void* to) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  static void store(Half x, void* to) { _mm_storeu_si128(static_cast<__m128i*>(to), x); }
  static void store(Half words, int16_t* to, Channels count) {
    if (count == kLanes) return store(words, to);
    alignas(16) int16_t spare[kLanes];
    _mm_store_si128(reinterpret_cast<__m128i*>(spare), words);
    memcpy(to, spare, static_cast<size_t>(count) * 2);
  }
};

}  // namespace

void word_run_to_bytes_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch) {
  by_scale(scale, [&]<typename Scale>() { word_run<Eight>(task, WordRunToBytes<Eight, Scale>(task, scale, to, pitch)); });
}

void word_run_to_words_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch) {
  by_long_scale(scale, [&]<typename Scale>() { word_run<Eight>(task, WordRunToWords<Eight, Scale>(task, scale, to, pitch)); });
}

void words_to_words_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, int16_t* to, int64_t pitch) {
  block_to_words<Eight>(task, scale, columns, to, pitch);
}

}  // namespace cvm
