// Rescales of 8 channels in registers, for the avx2 files that include this.
#pragma once

#include <immintrin.h>

#include "kernels/rescale_rows.h"

namespace cvm {
namespace {

constexpr int64_t kLanes = 8;

inline __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
inline void store(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }

// The first `count` lanes; all of them from 8 on.
inline __m256i first(int64_t count) {
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count < kLanes ? count : kLanes)), places);
}

// Odd lanes come down to where a 64-bit product takes its factors.
inline __m256i odd(__m256i x) { return _mm256_srli_epi64(x, 32); }

// AVX2 shifts 64 bits only as unsigned integers, so for shifts of any size 2^62 is added before and 2^62 >> shift taken away
// after: exact, because products lie between -2^62 and 2^62.
constexpr int64_t kTop = int64_t{1} << 62;

constexpr bool lifts(Shifts shifts) { return shifts == Shifts::any || shifts == Shifts::wide; }

// A rescale of 8 channels in registers: x times the multiplier plus `add`, shifted. Results of 32 bits need no limits unless
// they are wide.
struct Scale {
  __m256i multiplier, odd_multiplier, even_add, odd_add, even_shift, odd_shift, shift;
  __m256i excess, even_excess, odd_excess;  // 2^62 >> shift, modulo 2^32 or as it is
  __m256i zero_point, low, high;
};

// The result saturates before the zero point is added: low - zero point fits 32 bits because only i8 results have one.
inline Scale scale_of(const Rescale& r, Shifts shifts, __m256i multiplier, __m256i shift, __m256i input) {
  const __m256i even = _mm256_and_si256(shift, _mm256_set1_epi64x(0xFF)), high = odd(shift), one = _mm256_set1_epi64x(1);
  const __m256i odd_multiplier = odd(multiplier);
  const __m256i lift = _mm256_set1_epi64x(lifts(shifts) ? kTop : 0), top = _mm256_set1_epi64x(kTop);
  const __m256i even_half = _mm256_add_epi64(lift, _mm256_sllv_epi64(one, _mm256_sub_epi64(even, one)));
  const __m256i odd_half = _mm256_add_epi64(lift, _mm256_sllv_epi64(one, _mm256_sub_epi64(high, one)));
  return {multiplier,
          odd_multiplier,
          _mm256_sub_epi64(even_half, _mm256_mul_epi32(input, multiplier)),
          _mm256_sub_epi64(odd_half, _mm256_mul_epi32(odd(input), odd_multiplier)),
          even,
          shifts == Shifts::low ? _mm256_sub_epi64(_mm256_set1_epi64x(32), high) : high,
          _mm256_sub_epi32(shift, _mm256_set1_epi32(32)),
          _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_sub_epi32(_mm256_set1_epi32(62), shift)),
          _mm256_srlv_epi64(top, even),
          _mm256_srlv_epi64(top, high),
          _mm256_set1_epi32(r.output_zero_point),
          _mm256_set1_epi32(r.low - r.output_zero_point),
          _mm256_set1_epi32(r.high - r.output_zero_point)};
}

inline __m256i saturated64(__m256i x, __m256i low, __m256i high) {
  const __m256i above = _mm256_blendv_epi8(x, low, _mm256_cmpgt_epi64(low, x));
  return _mm256_blendv_epi8(above, high, _mm256_cmpgt_epi64(above, high));
}

// The same 32 bits widened to 64 in both halves' places: limits are equal in all lanes.
inline __m256i widened(__m256i limit) { return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(limit)); }

template <Shifts kShifts>
inline __m256i shifted(__m256i even, __m256i high, const Scale& s) {
  if constexpr (kShifts == Shifts::high) {
    return _mm256_srav_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), high, 0xAA), s.shift);
  } else if constexpr (kShifts == Shifts::low) {
    return _mm256_blend_epi32(_mm256_srlv_epi64(even, s.even_shift), _mm256_sllv_epi64(high, s.odd_shift), 0xAA);
  } else {
    even = _mm256_srlv_epi64(even, s.even_shift);
    high = _mm256_srlv_epi64(high, s.odd_shift);
    if constexpr (kShifts == Shifts::any) {
      return _mm256_sub_epi32(_mm256_blend_epi32(even, _mm256_slli_epi64(high, 32), 0xAA), s.excess);
    }
    even = saturated64(_mm256_sub_epi64(even, s.even_excess), widened(s.low), widened(s.high));
    high = saturated64(_mm256_sub_epi64(high, s.odd_excess), widened(s.low), widened(s.high));
    return _mm256_blend_epi32(even, _mm256_slli_epi64(high, 32), 0xAA);
  }
}

// floor((x * multiplier + 2^(shift-1)) / 2^shift), saturated, plus the zero point.
template <Shifts kShifts, bool kNarrow>
inline __m256i scaled(__m256i x, const Scale& s) {
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(x, s.multiplier), s.even_add);
  const __m256i high = _mm256_add_epi64(_mm256_mul_epi32(odd(x), s.odd_multiplier), s.odd_add);
  const __m256i y = shifted<kShifts>(even, high, s);
  if constexpr (!kNarrow) return y;
  return _mm256_add_epi32(_mm256_min_epi32(_mm256_max_epi32(y, s.low), s.high), s.zero_point);
}

// Factors of these channels; those of a tensor are all the same.
inline Scale scale_at(const Rescale& r, Shifts shifts, int64_t channel, __m256i mask) {
  const auto lanes = [&](const int32_t* each, bool many, int32_t one) {
    return many ? _mm256_maskload_epi32(each + channel, mask) : _mm256_set1_epi32(one);
  };
  return scale_of(r, shifts, lanes(r.multiplier, r.count > 1, r.multiplier[0]), lanes(r.shift, r.count > 1, r.shift[0]),
                  lanes(r.input_zero_points, r.input_zero_points != nullptr, r.input_zero_point));
}

}  // namespace
}  // namespace cvm
