// Rescales of 16 channels in registers, for the avx512vnni files that include this.
#pragma once

#include "kernels/avx512.h"
#include "kernels/rescale_rows.h"

namespace cvm {
namespace {

constexpr int64_t kLanes = 16;
constexpr __mmask16 kOdd = 0xAAAA;

// The first `count` lanes; all of them from 16 on.
inline __mmask16 first(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1u << count) - 1); }

// Odd lanes come down to where a 64-bit product takes its factors.
inline __m512i odd(__m512i x) { return _mm512_srli_epi64(x, 32); }

// A rescale of 16 channels in registers: x times the multiplier plus `add`, shifted. Results of 32 bits need no limits unless
// they are wide.
struct Scale {
  __m512i multiplier, odd_multiplier, even_add, odd_add, even_shift, odd_shift;
  __m512i zero_point, low, high;
};

// The result saturates before the zero point is added: low - zero point fits 32 bits because only i8 results have one.
inline Scale scale_of(const Rescale& r, Shifts shifts, __m512i multiplier, __m512i shift, __m512i input) {
  const __m512i even = _mm512_and_si512(shift, _mm512_set1_epi64(0xFFFF)), high = odd(shift), one = _mm512_set1_epi64(1);
  const __m512i odd_multiplier = odd(multiplier);
  const __m512i even_half = _mm512_sllv_epi64(one, _mm512_sub_epi64(even, one));
  const __m512i odd_half = _mm512_sllv_epi64(one, _mm512_sub_epi64(high, one));
  Scale scale{multiplier,
              odd_multiplier,
              _mm512_sub_epi64(even_half, _mm512_mul_epi32(input, multiplier)),
              _mm512_sub_epi64(odd_half, _mm512_mul_epi32(odd(input), odd_multiplier)),
              even,
              high,
              _mm512_set1_epi32(r.output_zero_point),
              _mm512_set1_epi32(r.low - r.output_zero_point),
              _mm512_set1_epi32(r.high - r.output_zero_point)};
  const __m512i half_way = _mm512_set1_epi64(32);
  if (shifts == Shifts::high) scale.even_shift = _mm512_sub_epi32(shift, _mm512_set1_epi32(32));
  if (shifts == Shifts::low) scale.odd_shift = _mm512_sub_epi64(half_way, high);
  return scale;
}

inline __m512i ends_of(__m512i limit) { return _mm512_srav_epi64(_mm512_slli_epi64(limit, 32), _mm512_set1_epi64(32)); }

template <Shifts kShifts>
inline __m512i shifted(__m512i even, __m512i high, const Scale& s) {
  if constexpr (kShifts == Shifts::high) {
    return _mm512_srav_epi32(_mm512_mask_shuffle_epi32(high, 0x5555, even, _MM_PERM_DDBB), s.even_shift);
  } else if constexpr (kShifts == Shifts::low) {
    return _mm512_mask_blend_epi32(kOdd, _mm512_srlv_epi64(even, s.even_shift), _mm512_sllv_epi64(high, s.odd_shift));
  } else {
    even = _mm512_srav_epi64(even, s.even_shift);
    high = _mm512_srav_epi64(high, s.odd_shift);
    if constexpr (kShifts == Shifts::wide) {
      const __m512i least = ends_of(s.low), most = ends_of(s.high);
      even = _mm512_min_epi64(_mm512_max_epi64(even, least), most);
      high = _mm512_min_epi64(_mm512_max_epi64(high, least), most);
    }
    return _mm512_mask_blend_epi32(kOdd, even, _mm512_slli_epi64(high, 32));
  }
}

// floor((x * multiplier + 2^(shift-1)) / 2^shift), saturated, plus the zero point.
template <Shifts kShifts, bool kNarrow>
inline __m512i scaled(__m512i x, const Scale& s) {
  const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(x, s.multiplier), s.even_add);
  const __m512i high = _mm512_add_epi64(_mm512_mul_epi32(odd(x), s.odd_multiplier), s.odd_add);
  const __m512i y = shifted<kShifts>(even, high, s);
  if constexpr (!kNarrow) return y;
  return _mm512_add_epi32(_mm512_min_epi32(_mm512_max_epi32(y, s.low), s.high), s.zero_point);
}

// Factors of these channels; those of a tensor are all the same.
inline Scale scale_at(const Rescale& r, Shifts shifts, int64_t channel, __mmask16 mask) {
  const auto lanes = [&](const int32_t* each, bool many, int32_t one) {
    return many ? _mm512_maskz_loadu_epi32(mask, each + channel) : _mm512_set1_epi32(one);
  };
  return scale_of(r, shifts, lanes(r.multiplier, r.count > 1, r.multiplier[0]), lanes(r.shift, r.count > 1, r.shift[0]),
                  lanes(r.input_zero_points, r.input_zero_points != nullptr, r.input_zero_point));
}

}  // namespace
}  // namespace cvm
