// Depthwise sums and their rescales with AVX-512 VNNI, for the files that include this.
#pragma once

#include "kernels/avx512.h"
#include "kernels/depthwise_columns.h"

namespace cvm {

// Of 16-bit pixels, in a file of their own.
void word_run_to_bytes(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch);
void word_run_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch);
void words_to_words(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, int16_t* to, int64_t pitch);

namespace {

constexpr int kLanes = 16;

// Of two blocks of 16-bit pixels: where interleaving lines of 64 bytes leaves the channels.
constexpr int8_t kWordRunOrder[] = {0, 1, 2, 3, 8,  9,  10, 11, 16, 17, 18, 19, 24, 25, 26, 27,
                                    4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31};

inline __m512i load(const void* from) { return _mm512_loadu_si512(from); }

inline __mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1u << count) - 1); }

struct SixteenSums {
  using Vector = __m512i;
  using Channels = __mmask16;
  static constexpr int kWeightBytes = 64;
  static __m512i zero() { return _mm512_setzero_si512(); }
  static __m512i vector_at(const void* from) { return load(from); }
};

struct Words : SixteenSums {
  static constexpr int kStep = 2;
  struct Column {
    __m512i upper, lower;  // two taps; the third one and a zero
  };
  using Weights = Column;

  static __m256i at(const void* pixel, int64_t channel, __mmask16 mask) {
    return _mm256_maskz_loadu_epi16(mask, static_cast<const int16_t*>(pixel) + channel);
  }
  static __m512i pair(__m256i a, __m256i b) {
    const __m512i order = _mm512_set_epi32(0x1F000F, 0x1E000E, 0x1D000D, 0x1C000C, 0x1B000B, 0x1A000A, 0x190009, 0x180008,
                                           0x170007, 0x160006, 0x150005, 0x140004, 0x130003, 0x120002, 0x110001, 0x100000);
    return _mm512_permutexvar_epi16(order, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
  }
  static __m512i taps(const void* const* two, int64_t channel, __mmask16 mask) {
    return pair(at(two[0], channel, mask), at(two[1], channel, mask));
  }
  static __m512i add_product(__m512i sum, __m512i x, __m512i w) { return _mm512_dpwssd_epi32(sum, x, w); }

  static Column column_at(const void* const* pixels, int64_t line, int64_t channel, __mmask16 mask) {
    const void* const two[] = {pixels[0], pixels[line]};
    return {taps(two, channel, mask), _mm512_cvtepu16_epi32(at(pixels[2 * line], channel, mask))};
  }
  static Weights weights_at(const uint8_t* from, int column) { return {load(from + column * 128), load(from + column * 128 + 64)}; }
  static __m512i add_column(__m512i sum, const Column& x, const Weights& w) {
    return add_product(add_product(sum, x.upper, w.upper), x.lower, w.lower);
  }
};

// Rescales 16 sums to words that lack the zero point by shifts of at least 32, which need only the high halves of the products.
class WideScale {
 public:
  WideScale(const DepthwiseScale& scale, int64_t lane)
      : even_multiplier_(load(scale.multiplier + lane)),
        odd_multiplier_(_mm512_srli_epi64(even_multiplier_, 32)),
        even_offset_(load(scale.even_offset + lane / 2)),
        odd_offset_(load(scale.odd_offset + lane / 2)),
        shift_(load(scale.shift + lane)) {}

  __m512i operator()(__m512i sums) const {
    const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(sums, even_multiplier_), even_offset_);
    const __m512i odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(sums, 32), odd_multiplier_), odd_offset_);
    return _mm512_srav_epi32(_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB), shift_);
  }
  // Saturating to 16 bits before the zero point is added changes no byte.
  static __m512i with_zero_point(__m512i words, __m512i zero_point) { return _mm512_adds_epi16(words, zero_point); }

 private:
  __m512i even_multiplier_, odd_multiplier_, even_offset_, odd_offset_, shift_;
};

// The same where products fit 32 bits. Its words have their zero point.
class ShortScale {
 public:
  ShortScale(const DepthwiseScale& scale, int64_t lane)
      : multiplier_(load(scale.multiplier + lane)), offset_(load(scale.offset + lane)), shift_(load(scale.shift + lane)) {}

  __m512i operator()(__m512i sums) const {
    return _mm512_srav_epi32(_mm512_add_epi32(_mm512_mullo_epi32(sums, multiplier_), offset_), shift_);
  }
  static __m512i with_zero_point(__m512i words, __m512i) { return words; }

 private:
  __m512i multiplier_, offset_, shift_;
};

// The same of a sum and its bias by halves.
class HalfScale {
 public:
  HalfScale(const DepthwiseScale& scale, int64_t lane)
      : multiplier_(load(scale.multiplier + lane)),
        factor_(_mm512_slli_epi32(multiplier_, 16)),
        constant_(load(scale.offset + lane)),
        shift_(load(scale.shift + lane)),
        bias_(load(scale.bias + lane)) {}

  __m512i operator()(__m512i sums) const {
    const __m512i x = _mm512_add_epi32(sums, bias_);
    const __m512i low = _mm512_add_epi32(_mm512_mulhi_epu16(x, multiplier_), constant_);
    return _mm512_srav_epi32(_mm512_dpwssd_epi32(low, x, factor_), shift_);
  }
  static __m512i with_zero_point(__m512i words, __m512i) { return words; }

 private:
  __m512i multiplier_, factor_, constant_, shift_, bias_;
};

// Calls body(scale) with a type that takes the scale.
template <typename Body>
inline void by_scale(const DepthwiseScale& scale, const Body& body) {
  if (scale.by_halves) return body.template operator()<HalfScale>();
  scale.offset != nullptr ? body.template operator()<ShortScale>() : body.template operator()<WideScale>();
}

}  // namespace
}  // namespace cvm
