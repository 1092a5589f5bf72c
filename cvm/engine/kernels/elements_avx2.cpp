// Element-wise kernels on 8 lanes of 32 bits. Tails are masked or byte by byte: memory beyond a row is neither read nor
// written.
#include "kernels/elements.h"

#include <immintrin.h>

#include "kernels/integer_loops.h"
#include "kernels/rescale_rows.h"

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
Scale scale_of(const Rescale& r, Shifts shifts, __m256i multiplier, __m256i shift, __m256i input) {
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

__m256i saturated64(__m256i x, __m256i low, __m256i high) {
  const __m256i above = _mm256_blendv_epi8(x, low, _mm256_cmpgt_epi64(low, x));
  return _mm256_blendv_epi8(above, high, _mm256_cmpgt_epi64(above, high));
}

// The same 32 bits widened to 64 in both halves' places: limits are equal in all lanes.
__m256i widened(__m256i limit) { return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(limit)); }

template <Shifts kShifts>
__m256i shifted(__m256i even, __m256i high, const Scale& s) {
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
__m256i scaled(__m256i x, const Scale& s) {
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(x, s.multiplier), s.even_add);
  const __m256i high = _mm256_add_epi64(_mm256_mul_epi32(odd(x), s.odd_multiplier), s.odd_add);
  const __m256i y = shifted<kShifts>(even, high, s);
  if constexpr (!kNarrow) return y;
  return _mm256_add_epi32(_mm256_min_epi32(_mm256_max_epi32(y, s.low), s.high), s.zero_point);
}

__m256i get(const int32_t* from) { return load(from); }
__m256i get(const int16_t* from) { return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
__m256i get(const uint8_t* from) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))); }

void put(int32_t* to, __m256i x) { store(to, x); }

// Packing saturates, so only the low bits go in: what does not fit wraps, as it does in plain C++.
void put(int16_t* to, __m256i x) {
  const __m256i bits = _mm256_and_si256(x, _mm256_set1_epi32(0xFFFF));
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), words);
}

void put(uint8_t* to, __m256i x) {
  const __m256i bits = _mm256_and_si256(x, _mm256_set1_epi32(0xFF));
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}

// Fewer than 8 elements.
template <typename T>
__m256i get(int64_t count, const T* from) {
  T all[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) all[i] = from[i];
  return get(all);
}

template <typename T>
void put(int64_t count, T* to, __m256i x) {
  T all[kLanes];
  put(all, x);
  for (int64_t i = 0; i < count; ++i) to[i] = all[i];
}

// Factors of these channels; those of a tensor are all the same.
Scale scale_at(const Rescale& r, Shifts shifts, int64_t channel, __m256i mask) {
  const auto own = [&](const int32_t* each, bool many, int32_t one) {
    return many ? _mm256_maskload_epi32(each + channel, mask) : _mm256_set1_epi32(one);
  };
  return scale_of(r, shifts, own(r.multiplier, r.count > 1, r.multiplier[0]), own(r.shift, r.count > 1, r.shift[0]),
                  own(r.input_zero_points, r.input_zero_points != nullptr, r.input_zero_point));
}

struct Loop {
  // Channels outside, rows inside: factors are made once for all rows of the tile.
  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_channels(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    for (int64_t column = 0; column < tile.width; column += kLanes) {
      const int64_t count = tile.width - column;
      const Scale scale = scale_at(r, kShifts, tile.channel + column, first(count));
      const In* from = x + column;
      Out* to = out + column;
      for (int64_t row = 0; row < tile.rows; ++row, from += x_pitch, to += pitch) {
        if (count >= kLanes) {
          put(to, scaled<kShifts, kNarrow>(get(from), scale));
        } else {
          put(count, to, scaled<kShifts, kNarrow>(get(count, from), scale));
        }
      }
    }
  }

  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_tensor(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    const Scale scale = scale_at(r, kShifts, 0, _mm256_setzero_si256());
    for (int64_t row = 0; row < tile.rows; ++row, x += x_pitch, out += pitch) {
      int64_t i = 0;
      for (; i + kLanes <= tile.width; i += kLanes) put(out + i, scaled<kShifts, kNarrow>(get(x + i), scale));
      const int64_t count = tile.width - i;
      if (count > 0) put(count, out + i, scaled<kShifts, kNarrow>(get(count, x + i), scale));
    }
  }
};

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

// Halves are added in 64 bits, which have room below an amount of 63. Of a result that fits 32 bits, a logical shift has the
// right ones up to an amount of 32; beyond, they lie in the high half.
template <bool kRepeated>
void mul_row_shifted(int amount, int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  int64_t i = 0;
  const __m256i half = _mm256_set1_epi64x(int64_t{1} << (amount - 1));
  const __m128i low = _mm_cvtsi32_si128(amount), high = _mm_cvtsi32_si128(amount - 32);
  for (; amount < 63 && i + kLanes <= count; i += kLanes) {
    const __m256i a = load(x + i), b = kRepeated ? _mm256_set1_epi32(*y) : load(y + i);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(a, b), half);
    const __m256i other = _mm256_add_epi64(_mm256_mul_epi32(odd(a), odd(b)), half);
    if (amount <= 32) {
      const __m256i moved = _mm256_slli_epi64(_mm256_srl_epi64(other, low), 32);
      store(out + i, _mm256_blend_epi32(_mm256_srl_epi64(even, low), moved, 0xAA));
    } else {
      store(out + i, _mm256_sra_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), other, 0xAA), high));
    }
  }
  for (; i < count; ++i) out[i] = product_shifted(x[i], y[kRepeated ? 0 : i], amount);
}

void mul_shifted(int amount, const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  for_rows(tile, x, y, out, [&](int64_t count, const int32_t* a, const int32_t* b, int32_t* to) {
    y.repeated ? mul_row_shifted<true>(amount, count, a, b, to) : mul_row_shifted<false>(amount, count, a, b, to);
  });
}

// A point and the next are one load of 32 bits, and their mean one product of pairs.
void interpolate(const int16_t* points, int64_t count, const int32_t* x, int32_t* out) {
  const __m256i middle = _mm256_set1_epi32(32768), places = _mm256_set1_epi32(0xFFFF);
  const __m256i fraction = _mm256_set1_epi32(127), whole = _mm256_set1_epi32(128);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i place = _mm256_and_si256(_mm256_add_epi32(load(x + i), middle), places);
    const __m256i pairs = _mm256_i32gather_epi32(reinterpret_cast<const int*>(points), _mm256_srli_epi32(place, 7), 2);
    const __m256i second = _mm256_and_si256(place, fraction);
    const __m256i shares = _mm256_or_si256(_mm256_sub_epi32(whole, second), _mm256_slli_epi32(second, 16));
    store(out + i, _mm256_madd_epi16(pairs, shares));
  }
  for (; i < count; ++i) out[i] = interpolated(points, x[i]);
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
    rescale_tile<Loop>, rescale_any<Loop>, clamp, add, sub, mul, mul_shifted, divide, maximum, minimum, abs,
    shift_left, shift_right, shift_right_rounded, load8, store8, load16, store16, wrap8, wrap16, interpolate,
    sum, greatest, least, fill, centre8, pair8, pair16, nullptr};

}  // namespace cvm
