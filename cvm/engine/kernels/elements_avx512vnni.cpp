// Element-wise kernels on 16 lanes of 32 bits. Tails are masked: memory beyond a row is neither read nor written.
#include "kernels/elements.h"

#include "kernels/avx512.h"
#include "kernels/integer_loops.h"

namespace cvm {
namespace {

constexpr int64_t kLanes = 16;
constexpr __mmask16 kOdd = 0xAAAA;

// The first `count` lanes; all of them from 16 on.
__mmask16 first(int64_t count) { return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1u << count) - 1); }

// Odd lanes come down to where a 64-bit product takes its factors.
__m512i odd(__m512i x) { return _mm512_srli_epi64(x, 32); }

struct Limits {
  __m512i input_zero_point, output_zero_point, low, high;
};

// The result saturates before the zero point is added: low - zero point fits 32 bits because only i8 results have one.
Limits limits_of(const Rescale& r) {
  const int32_t zero_point = r.output_zero_point;
  return {_mm512_set1_epi32(r.input_zero_point), _mm512_set1_epi32(zero_point), _mm512_set1_epi32(r.low - zero_point),
          _mm512_set1_epi32(r.high - zero_point)};
}

__m512i ends_of(__m512i limit) { return _mm512_srav_epi64(_mm512_slli_epi64(limit, 32), _mm512_set1_epi64(32)); }

// floor((x * multiplier + 2^(shift-1)) / 2^shift) as ((product >> (shift-1)) + 1) >> 1, saturated, plus the zero point.
// Takes the low 32 bits of both halves and saturates there unless `kWide`, where it saturates in 64 bits first.
template <bool kWide>
__m512i scaled(__m512i x, __m512i multiplier, __m512i shift, const Limits& limits) {
  const __m512i centred = _mm512_sub_epi32(x, limits.input_zero_point);
  const __m512i one_less = _mm512_sub_epi32(shift, _mm512_set1_epi32(1));
  const __m512i low_counts = _mm512_and_si512(one_less, _mm512_set1_epi64(0xFFFF)), one = _mm512_set1_epi64(1);
  __m512i even = _mm512_srav_epi64(_mm512_mul_epi32(centred, multiplier), low_counts);
  __m512i high = _mm512_srav_epi64(_mm512_mul_epi32(odd(centred), odd(multiplier)), odd(one_less));
  even = _mm512_add_epi64(even, one);
  high = _mm512_add_epi64(high, one);
  if constexpr (kWide) {
    const __m512i low_end = ends_of(limits.low), high_end = ends_of(limits.high);
    even = _mm512_min_epi64(_mm512_max_epi64(_mm512_srav_epi64(even, one), low_end), high_end);
    high = _mm512_min_epi64(_mm512_max_epi64(_mm512_srav_epi64(high, one), low_end), high_end);
    even = _mm512_mask_blend_epi32(kOdd, even, _mm512_slli_epi64(high, 32));
  } else {
    even = _mm512_mask_blend_epi32(kOdd, _mm512_srli_epi64(even, 1), _mm512_slli_epi64(high, 31));
    even = _mm512_min_epi32(_mm512_max_epi32(even, limits.low), limits.high);
  }
  return _mm512_add_epi32(even, limits.output_zero_point);
}

template <bool kWide>
void rescale_tensor(const Rescale& r, int64_t count, const int32_t* x, int32_t* out) {
  const Limits limits = limits_of(r);
  const __m512i multiplier = _mm512_set1_epi32(r.multiplier[0]), shift = _mm512_set1_epi32(r.shift[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    _mm512_storeu_si512(out + i, scaled<kWide>(_mm512_loadu_si512(x + i), multiplier, shift, limits));
  }
  if (i == count) return;
  const __mmask16 mask = first(count - i);
  _mm512_mask_storeu_epi32(out + i, mask,
                           scaled<kWide>(_mm512_maskz_loadu_epi32(mask, x + i), multiplier, shift, limits));
}

// Channels outside, rows inside: factors are loaded once for all rows of the tile.
template <bool kWide>
void rescale_channels(const Rescale& r, const Tile& tile, const int32_t* x, int32_t* out) {
  const Limits limits = limits_of(r);
  for (int64_t column = 0; column < tile.width; column += kLanes) {
    const __mmask16 mask = first(tile.width - column);
    const __m512i multiplier = _mm512_maskz_loadu_epi32(mask, r.multiplier + tile.channel + column);
    const __m512i shift = _mm512_maskz_loadu_epi32(mask, r.shift + tile.channel + column);
    for (int64_t row = 0; row < tile.rows; ++row) {
      const int64_t place = row * tile.width + column;
      const __m512i y = scaled<kWide>(_mm512_maskz_loadu_epi32(mask, x + place), multiplier, shift, limits);
      _mm512_mask_storeu_epi32(out + place, mask, y);
    }
  }
}

void rescale(const Rescale& r, const Tile& tile, const int32_t* x, int32_t* out) {
  if (r.count == 1) {
    const int64_t count = tile.rows * tile.width;
    return r.wide ? rescale_tensor<true>(r, count, x, out) : rescale_tensor<false>(r, count, x, out);
  }
  return r.wide ? rescale_channels<true>(r, tile, x, out) : rescale_channels<false>(r, tile, x, out);
}

void clamp(int32_t low, int32_t high, int64_t count, const int32_t* x, int32_t* out) {
  const __m512i least = _mm512_set1_epi32(low), greatest = _mm512_set1_epi32(high);
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 mask = first(count - i);
    const __m512i y = _mm512_max_epi32(_mm512_maskz_loadu_epi32(mask, x + i), least);
    _mm512_mask_storeu_epi32(out + i, mask, _mm512_min_epi32(y, greatest));
  }
}

void add(int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 mask = first(count - i);
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, x + i), _mm512_maskz_loadu_epi32(mask, y + i));
    _mm512_mask_storeu_epi32(out + i, mask, sum);
  }
}

// Halves are added in 64 bits, which have room below an amount of 63.
void mul_shifted(int amount, int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  int64_t i = 0;
  const __m512i half = _mm512_set1_epi64(int64_t{1} << (amount - 1)), by = _mm512_set1_epi64(amount);
  for (; amount < 63 && i + kLanes <= count; i += kLanes) {
    const __m512i a = _mm512_loadu_si512(x + i), b = _mm512_loadu_si512(y + i);
    const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
    const __m512i other = _mm512_add_epi64(_mm512_mul_epi32(odd(a), odd(b)), half);
    const __m512i moved = _mm512_slli_epi64(_mm512_srav_epi64(other, by), 32);
    _mm512_storeu_si512(out + i, _mm512_mask_blend_epi32(kOdd, _mm512_srav_epi64(even, by), moved));
  }
  for (; i < count; ++i) out[i] = product_shifted(x[i], y[i], amount);
}

void load8(int32_t bias, int64_t width, const uint8_t* from, int32_t* out) {
  const __m512i zero = _mm512_set1_epi32(bias);
  for (int64_t i = 0; i < width; i += kLanes) {
    const __mmask16 mask = first(width - i);
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from + i));
    _mm512_mask_storeu_epi32(out + i, mask, _mm512_sub_epi32(bytes, zero));
  }
}

void store8(int32_t bias, int64_t width, const int32_t* x, uint8_t* to) {
  const __m512i zero = _mm512_set1_epi32(bias);
  for (int64_t i = 0; i < width; i += kLanes) {
    const __mmask16 mask = first(width - i);
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, x + i), zero);
    _mm_mask_storeu_epi8(to + i, mask, _mm512_cvtepi32_epi8(sum));
  }
}

void load16(int64_t width, const int16_t* from, int32_t* out) {
  for (int64_t i = 0; i < width; i += kLanes) {
    const __mmask16 mask = first(width - i);
    _mm512_mask_storeu_epi32(out + i, mask, _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, from + i)));
  }
}

void store16(int64_t width, const int32_t* x, int16_t* to) {
  for (int64_t i = 0; i < width; i += kLanes) {
    const __mmask16 mask = first(width - i);
    _mm256_mask_storeu_epi16(to + i, mask, _mm512_cvtepi32_epi16(_mm512_maskz_loadu_epi32(mask, x + i)));
  }
}

}  // namespace

extern const ElementKernels kElementsAvx512vnni;
const ElementKernels kElementsAvx512vnni = {
    rescale, clamp,      add,         sub,                 mul,   mul_shifted, divide, maximum, minimum,
    abs,     shift_left, shift_right, shift_right_rounded, load8, store8,      load16,  store16};

}  // namespace cvm
