// Element-wise kernels on 8 lanes of 32 bits. Tails are masked or byte by byte: memory beyond a row is neither read nor
// written.
#include "kernels/elements.h"

#include <immintrin.h>

#include "kernels/integer_loops.h"

namespace cvm {
namespace {

constexpr int64_t kLanes = 8;

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }

// The first `count` lanes; all of them from 8 on.
__m256i first(int64_t count) {
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count < kLanes ? count : kLanes)), places);
}

// Odd lanes come down to where a 64-bit product takes its factors.
__m256i odd(__m256i x) { return _mm256_srli_epi64(x, 32); }

struct Limits {
  __m256i input_zero_point, output_zero_point, low, high;
};

// The result saturates before the zero point is added: low - zero point fits 32 bits because only i8 results have one.
Limits limits_of(const Rescale& r) {
  const int32_t zero_point = r.output_zero_point;
  return {_mm256_set1_epi32(r.input_zero_point), _mm256_set1_epi32(zero_point), _mm256_set1_epi32(r.low - zero_point),
          _mm256_set1_epi32(r.high - zero_point)};
}

// What the shift of each lane needs. AVX2 shifts 64 bits only as unsigned integers, so 2^62 is added before and
// 2^62 >> shift taken away after: exact, because products lie between -2^62 and 2^62.
struct Factors {
  __m256i even_multiplier, odd_multiplier;
  __m256i even_count, odd_count;  // shift - 1
  __m256i excess;                 // 2^62 >> shift in each 32-bit lane, modulo 2^32
  __m256i even_excess, odd_excess;
};

Factors factors_of(__m256i multiplier, __m256i shift) {
  const __m256i count = _mm256_sub_epi32(shift, _mm256_set1_epi32(1)), top = _mm256_set1_epi64x(int64_t{1} << 62);
  const __m256i even_shift = _mm256_and_si256(shift, _mm256_set1_epi64x(0xFF));
  return {multiplier,
          odd(multiplier),
          _mm256_and_si256(count, _mm256_set1_epi64x(0xFF)),
          odd(count),
          _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_sub_epi32(_mm256_set1_epi32(62), shift)),
          _mm256_srlv_epi64(top, even_shift),
          _mm256_srlv_epi64(top, odd(shift))};
}

// ((product + 2^62) >> (shift-1)) + 1: twice the rounded result plus its excess.
__m256i doubled(__m256i x, __m256i multiplier, __m256i count) {
  const __m256i top = _mm256_set1_epi64x(int64_t{1} << 62);
  const __m256i shifted = _mm256_srlv_epi64(_mm256_add_epi64(_mm256_mul_epi32(x, multiplier), top), count);
  return _mm256_add_epi64(shifted, _mm256_set1_epi64x(1));
}

__m256i saturated64(__m256i twice, __m256i excess, __m256i low, __m256i high) {
  const __m256i x = _mm256_sub_epi64(_mm256_srli_epi64(twice, 1), excess);
  const __m256i above = _mm256_blendv_epi8(x, low, _mm256_cmpgt_epi64(low, x));
  return _mm256_blendv_epi8(above, high, _mm256_cmpgt_epi64(above, high));
}

// The same 32 bits widened to 64 in both halves' places: limits are equal in all lanes.
__m256i widened(__m256i limit) { return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(limit)); }

// floor((x * multiplier + 2^(shift-1)) / 2^shift) as ((product >> (shift-1)) + 1) >> 1, saturated, plus the zero point.
// Takes the low 32 bits of both halves and saturates there unless `kWide`, where it saturates in 64 bits first.
template <bool kWide>
__m256i scaled(__m256i x, const Factors& f, const Limits& limits) {
  const __m256i centred = _mm256_sub_epi32(x, limits.input_zero_point);
  const __m256i even = doubled(centred, f.even_multiplier, f.even_count);
  const __m256i high = doubled(odd(centred), f.odd_multiplier, f.odd_count);
  __m256i y;
  if constexpr (kWide) {
    const __m256i low_end = widened(limits.low), high_end = widened(limits.high);
    const __m256i even_result = saturated64(even, f.even_excess, low_end, high_end);
    const __m256i odd_result = saturated64(high, f.odd_excess, low_end, high_end);
    y = _mm256_blend_epi32(even_result, _mm256_slli_epi64(odd_result, 32), 0xAA);
  } else {
    const __m256i joined = _mm256_blend_epi32(_mm256_srli_epi64(even, 1), _mm256_slli_epi64(high, 31), 0xAA);
    y = _mm256_sub_epi32(joined, f.excess);
    y = _mm256_min_epi32(_mm256_max_epi32(y, limits.low), limits.high);
  }
  return _mm256_add_epi32(y, limits.output_zero_point);
}

template <bool kWide>
void rescale_tensor(const Rescale& r, int64_t count, const int32_t* x, int32_t* out) {
  const Limits limits = limits_of(r);
  const Factors factors = factors_of(_mm256_set1_epi32(r.multiplier[0]), _mm256_set1_epi32(r.shift[0]));
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, scaled<kWide>(load(x + i), factors, limits));
  if (i == count) return;
  const __m256i mask = first(count - i);
  _mm256_maskstore_epi32(out + i, mask, scaled<kWide>(_mm256_maskload_epi32(x + i, mask), factors, limits));
}

// Channels outside, rows inside: factors are made once for all rows of the tile.
template <bool kWide>
void rescale_channels(const Rescale& r, const Tile& tile, const int32_t* x, int32_t* out) {
  const Limits limits = limits_of(r);
  for (int64_t column = 0; column < tile.width; column += kLanes) {
    const __m256i mask = first(tile.width - column);
    const Factors factors = factors_of(_mm256_maskload_epi32(r.multiplier + tile.channel + column, mask),
                                       _mm256_maskload_epi32(r.shift + tile.channel + column, mask));
    if (tile.width - column >= kLanes) {
      for (int64_t row = 0, place = column; row < tile.rows; ++row, place += tile.width) {
        store(out + place, scaled<kWide>(load(x + place), factors, limits));
      }
    } else {
      for (int64_t row = 0, place = column; row < tile.rows; ++row, place += tile.width) {
        const __m256i y = scaled<kWide>(_mm256_maskload_epi32(x + place, mask), factors, limits);
        _mm256_maskstore_epi32(out + place, mask, y);
      }
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
  const __m256i least = _mm256_set1_epi32(low), greatest = _mm256_set1_epi32(high);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(out + i, _mm256_min_epi32(_mm256_max_epi32(load(x + i), least), greatest));
  }
  if (i == count) return;
  const __m256i mask = first(count - i), tail = _mm256_maskload_epi32(x + i, mask);
  _mm256_maskstore_epi32(out + i, mask, _mm256_min_epi32(_mm256_max_epi32(tail, least), greatest));
}

void add(int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, _mm256_add_epi32(load(x + i), load(y + i)));
  if (i == count) return;
  const __m256i mask = first(count - i);
  const __m256i sum = _mm256_add_epi32(_mm256_maskload_epi32(x + i, mask), _mm256_maskload_epi32(y + i, mask));
  _mm256_maskstore_epi32(out + i, mask, sum);
}

// Halves are added in 64 bits, which have room below an amount of 63. Of a result that fits 32 bits, a logical shift has the
// right ones up to an amount of 32; beyond, they lie in the high half.
void mul_shifted(int amount, int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  int64_t i = 0;
  const __m256i half = _mm256_set1_epi64x(int64_t{1} << (amount - 1));
  const __m128i low = _mm_cvtsi32_si128(amount), high = _mm_cvtsi32_si128(amount - 32);
  for (; amount < 63 && i + kLanes <= count; i += kLanes) {
    const __m256i a = load(x + i), b = load(y + i);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(a, b), half);
    const __m256i other = _mm256_add_epi64(_mm256_mul_epi32(odd(a), odd(b)), half);
    if (amount <= 32) {
      const __m256i moved = _mm256_slli_epi64(_mm256_srl_epi64(other, low), 32);
      store(out + i, _mm256_blend_epi32(_mm256_srl_epi64(even, low), moved, 0xAA));
    } else {
      store(out + i, _mm256_sra_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), other, 0xAA), high));
    }
  }
  for (; i < count; ++i) out[i] = product_shifted(x[i], y[i], amount);
}

void load8(int32_t bias, int64_t width, const uint8_t* from, int32_t* out) {
  const __m256i zero = _mm256_set1_epi32(bias);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i));
    store(out + i, _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), zero));
  }
  for (; i < width; ++i) out[i] = from[i] - bias;
}

// Packing saturates, so only the low bits go in: what does not fit wraps, as it does in plain C++.
__m256i low_bytes(const int32_t* x, __m256i zero) {
  return _mm256_and_si256(_mm256_add_epi32(load(x), zero), _mm256_set1_epi32(0xFF));
}

void store8(int32_t bias, int64_t width, const int32_t* x, uint8_t* to) {
  const __m256i zero = _mm256_set1_epi32(bias), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
    const __m256i front = _mm256_packus_epi32(low_bytes(x + i, zero), low_bytes(x + i + 8, zero));
    const __m256i back = _mm256_packus_epi32(low_bytes(x + i + 16, zero), low_bytes(x + i + 24, zero));
    store(to + i, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(front, back), order));
  }
  for (; i + kLanes <= width; i += kLanes) {
    const __m256i bytes = low_bytes(x + i, zero);
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_packus_epi16(words, words));
  }
  for (; i < width; ++i) to[i] = static_cast<uint8_t>(static_cast<uint32_t>(x[i]) + static_cast<uint32_t>(bias));
}

void load16(int64_t width, const int16_t* from, int32_t* out) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    store(out + i, _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  for (; i < width; ++i) out[i] = from[i];
}

void store16(int64_t width, const int32_t* x, int16_t* to) {
  const __m256i low_bits = _mm256_set1_epi32(0xFFFF);
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    const __m256i front = _mm256_and_si256(load(x + i), low_bits), back = _mm256_and_si256(load(x + i + 8), low_bits);
    store(to + i, _mm256_permute4x64_epi64(_mm256_packus_epi32(front, back), 0xD8));
  }
  for (; i < width; ++i) to[i] = static_cast<int16_t>(x[i]);
}

}  // namespace

extern const ElementKernels kElementsAvx2;
const ElementKernels kElementsAvx2 = {
    rescale, clamp,      add,         sub,                 mul,   mul_shifted, divide, maximum, minimum,
    abs,     shift_left, shift_right, shift_right_rounded, load8, store8,      load16,  store16};

}  // namespace cvm
