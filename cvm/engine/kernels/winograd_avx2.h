// What Winograd's transforms (winograd.h) are made of with AVX2.
#pragma once

#include "kernels/products_avx2.h"
#include "kernels/winograd.h"

namespace cvm {
namespace {

struct ShortVectors {
  using Vector = __m256i;
  static constexpr int64_t kLanes = 16;
  static Vector all(int16_t x) { return _mm256_set1_epi16(x); }
  // May read up to 15 bytes further than `left`.
  static Vector pixels(const uint8_t* from, int64_t) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static void store(Vector x, int64_t, int16_t* to) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
  static Vector add(Vector x, Vector y) { return _mm256_add_epi16(x, y); }
  static Vector subtract(Vector x, Vector y) { return _mm256_sub_epi16(x, y); }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return _mm256_slli_epi16(x, kBits);
  }
};

struct IntegerVectors {
  using Vector = __m256i;
  static constexpr int64_t kLanes = 8;
  static Vector load(const int32_t* from) { return cvm::load(from); }
  static void store(Vector x, int64_t left, int32_t* to) { store_integers(x, left, to); }
  static Vector add(Vector x, Vector y) { return _mm256_add_epi32(x, y); }
  static Vector subtract(Vector x, Vector y) { return _mm256_sub_epi32(x, y); }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return _mm256_slli_epi32(x, kBits);
  }
  static Vector divide_by_576(Vector x) {
    return _mm256_srai_epi32(_mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int32_t>(kNinth))), 6);
  }
};

}  // namespace
}  // namespace cvm
