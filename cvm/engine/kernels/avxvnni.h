// The instructions of AVX-VNNI: the compiler's own or, in a build with CVM_EMULATE_AVXVNNI, the same sums by those of AVX2.
#pragma once

#include <immintrin.h>

namespace cvm {
namespace {

#if defined(CVM_EMULATE_AVXVNNI)

// Adds four products of a byte and a signed byte to each sum, without saturating.
inline __m256i dot_bytes(__m256i sums, __m256i x, __m256i w) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0xFF)), _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
  return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}

// Adds two products of 16-bit integers to each sum.
inline __m256i dot_words(__m256i sums, __m256i x, __m256i w) { return _mm256_add_epi32(sums, _mm256_madd_epi16(x, w)); }

#else

inline __m256i dot_bytes(__m256i sums, __m256i x, __m256i w) { return _mm256_dpbusd_avx_epi32(sums, x, w); }

inline __m256i dot_words(__m256i sums, __m256i x, __m256i w) { return _mm256_dpwssd_avx_epi32(sums, x, w); }

#endif

}  // namespace
}  // namespace cvm
