// Depthwise sums and their rescales with AVX-VNNI, for the files that include this.
#pragma once

#include <stddef.h>
#include <string.h>

#include "kernels/avxvnni.h"
#include "kernels/depthwise_columns.h"

namespace cvm {

// Of 16-bit pixels, in a file of their own.
void word_run_to_bytes_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, uint8_t* to, int64_t pitch);
void word_run_to_words_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, int16_t* to, int64_t pitch);
void words_to_words_avxvnni(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, int16_t* to, int64_t pitch);

namespace {

constexpr int kLanes = 8;

// Of two blocks of 16-bit pixels: where interleaving lines of 32 bytes leaves the channels, in both halves of a vector by itself.
constexpr int8_t kWordRunOrder[] = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};

inline __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

struct EightSums {
  using Vector = __m256i;
  using Channels = int64_t;  // how many may be read
  static constexpr int kWeightBytes = 32;
  static __m256i zero() { return _mm256_setzero_si256(); }
  static __m256i vector_at(const void* from) { return load(from); }
};

struct Words : EightSums {
  static constexpr int kStep = 2;
  struct Column {
    __m256i upper, lower;  // two taps; the third one and a zero
  };
  using Weights = Column;

  static __m128i at(const void* pixel, int64_t channel, int64_t count) {
    const int16_t* from = static_cast<const int16_t*>(pixel) + channel;
    return count >= kLanes ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)) : some(from, count);
  }
  // Pairs by a mask, then the odd one.
  static __m128i some(const int16_t* from, int64_t count) {
    const __m128i places = _mm_setr_epi32(0, 1, 2, 3), pairs = _mm_set1_epi32(static_cast<int>(count / 2));
    const __m128i whole = _mm_maskload_epi32(reinterpret_cast<const int*>(from), _mm_cmpgt_epi32(pairs, places));
    const int16_t last = count % 2 == 1 ? from[count - 1] : int16_t{0};
    return _mm_or_si128(whole, _mm_and_si128(_mm_cmpeq_epi32(places, pairs), _mm_set1_epi32(static_cast<uint16_t>(last))));
  }
  static __m256i pair(__m128i a, __m128i b) { return _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b)); }
  static __m256i taps(const void* const* from, int64_t channel, int64_t count) {
    return pair(at(from[0], channel, count), at(from[1], channel, count));
  }
  static __m256i add_product(__m256i sum, __m256i x, __m256i w) { return dot_words(sum, x, w); }

  static Column column_at(const void* const* from, int64_t line, int64_t channel, int64_t count) {
    return {pair(at(from[0], channel, count), at(from[line], channel, count)),
            pair(at(from[2 * line], channel, count), _mm_setzero_si128())};
  }
  static Weights weights_at(const uint8_t* from, int column) { return {load(from + column * 64), load(from + column * 64 + 32)}; }
  static __m256i add_column(__m256i sum, const Column& x, const Weights& w) {
    return dot_words(dot_words(sum, x.upper, w.upper), x.lower, w.lower);
  }
};

// Rescales 8 sums to words that lack the zero point by shifts of at least 32, which need only the high halves of the products.
class WideScale {
 public:
  WideScale(const DepthwiseScale& scale, int64_t lane)
      : even_multiplier_(load(scale.multiplier + lane)),
        odd_multiplier_(_mm256_srli_epi64(even_multiplier_, 32)),
        even_offset_(load(scale.even_offset + lane / 2)),
        odd_offset_(load(scale.odd_offset + lane / 2)),
        shift_(load(scale.shift + lane)) {}

  __m256i operator()(__m256i sums) const {
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(sums, even_multiplier_), even_offset_);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sums, 32), odd_multiplier_), odd_offset_);
    return _mm256_srav_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA), shift_);
  }
  // Saturating to 16 bits before the zero point is added changes no byte.
  static __m256i with_zero_point(__m256i words, __m256i zero_point) { return _mm256_adds_epi16(words, zero_point); }

 private:
  __m256i even_multiplier_, odd_multiplier_, even_offset_, odd_offset_, shift_;
};

// The same where products fit 32 bits. Its words have their zero point.
class ShortScale {
 public:
  ShortScale(const DepthwiseScale& scale, int64_t lane)
      : multiplier_(load(scale.multiplier + lane)), offset_(load(scale.offset + lane)), shift_(load(scale.shift + lane)) {}

  __m256i operator()(__m256i sums) const {
    return _mm256_srav_epi32(_mm256_add_epi32(_mm256_mullo_epi32(sums, multiplier_), offset_), shift_);
  }
  static __m256i with_zero_point(__m256i words, __m256i) { return words; }

 private:
  __m256i multiplier_, offset_, shift_;
};

// The same of a sum and its bias by halves.
class HalfScale {
 public:
  HalfScale(const DepthwiseScale& scale, int64_t lane)
      : multiplier_(load(scale.multiplier + lane)),
        factor_(_mm256_slli_epi32(multiplier_, 16)),
        constant_(load(scale.offset + lane)),
        shift_(load(scale.shift + lane)),
        bias_(load(scale.bias + lane)) {}

  __m256i operator()(__m256i sums) const {
    const __m256i x = _mm256_add_epi32(sums, bias_);
    const __m256i low = _mm256_add_epi32(_mm256_mulhi_epu16(x, multiplier_), constant_);
    return _mm256_srav_epi32(dot_words(low, x, factor_), shift_);
  }
  static __m256i with_zero_point(__m256i words, __m256i) { return words; }

 private:
  __m256i multiplier_, factor_, constant_, shift_, bias_;
};

// Calls body(scale) with a type that takes the scale.
template <typename Body>
inline void by_scale(const DepthwiseScale& scale, const Body& body) {
  if (scale.by_halves) return body.template operator()<HalfScale>();
  scale.offset != nullptr ? body.template operator()<ShortScale>() : body.template operator()<WideScale>();
}

}  // namespace
}  // namespace cvm
