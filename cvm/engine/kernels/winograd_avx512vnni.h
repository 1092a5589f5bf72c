// What Winograd's transforms (winograd.h) are made of with AVX-512.
#pragma once

#include "kernels/products_avx512.h"
#include "kernels/winograd.h"

namespace cvm {
namespace {

inline __mmask32 short_mask_of(int64_t count) { return count >= 32 ? 0xFFFFFFFFu : (1u << count) - 1; }

struct ShortVectors {
  using Vector = __m512i;
  static constexpr int64_t kLanes = 32;
  static Vector all(int16_t x) { return _mm512_set1_epi16(x); }
  static Vector pixels(const uint8_t* from, int64_t left) { return _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(short_mask_of(left), from)); }
  static void store(Vector x, int64_t left, int16_t* to) { _mm512_mask_storeu_epi16(to, short_mask_of((left + 15) / 16 * 16), x); }
  static Vector add(Vector x, Vector y) { return _mm512_add_epi16(x, y); }
  static Vector subtract(Vector x, Vector y) { return _mm512_sub_epi16(x, y); }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return _mm512_slli_epi16(x, kBits);
  }
};

struct IntegerVectors {
  using Vector = __m512i;
  static constexpr int64_t kLanes = 16;
  static Vector load(const int32_t* from) { return cvm::load(from); }
  static void store(Vector x, int64_t left, int32_t* to) { _mm512_mask_storeu_epi32(to, mask_of(left), x); }
  static Vector add(Vector x, Vector y) { return _mm512_add_epi32(x, y); }
  static Vector subtract(Vector x, Vector y) { return _mm512_sub_epi32(x, y); }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return _mm512_slli_epi32(x, kBits);
  }
  static Vector divide_by_576(Vector x) {
    return _mm512_srai_epi32(_mm512_mullo_epi32(x, _mm512_set1_epi32(static_cast<int32_t>(kNinth))), 6);
  }
};

}  // namespace
}  // namespace cvm
