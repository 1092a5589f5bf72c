// Element-wise kernels on 16 lanes of 32 bits. Tails are masked: memory beyond a row is neither read nor written.
#include "kernels/elements.h"

#include "kernels/integer_loops.h"
#include "kernels/points_avx512vnni.h"
#include "kernels/rescale_avx512vnni.h"

namespace cvm {
namespace {

template <typename Body>
void each(int64_t count, const int32_t* x, int32_t* out, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) _mm512_storeu_si512(out + i, body(_mm512_loadu_si512(x + i)));
  if (i == count) return;
  const __mmask16 mask = first(count - i);
  _mm512_mask_storeu_epi32(out + i, mask, body(_mm512_maskz_loadu_epi32(mask, x + i)));
}

__m512i get(const int32_t* from) { return _mm512_loadu_si512(from); }
__m512i get(const int16_t* from) { return _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))); }
__m512i get(const uint8_t* from) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }

__m512i get(__mmask16 mask, const int32_t* from) { return _mm512_maskz_loadu_epi32(mask, from); }
__m512i get(__mmask16 mask, const int16_t* from) { return _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, from)); }
__m512i get(__mmask16 mask, const uint8_t* from) { return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from)); }

void put(int32_t* to, __m512i x) { _mm512_storeu_si512(to, x); }
void put(int16_t* to, __m512i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(x)); }
void put(uint8_t* to, __m512i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(x)); }

void put(__mmask16 mask, int32_t* to, __m512i x) { _mm512_mask_storeu_epi32(to, mask, x); }
void put(__mmask16 mask, int16_t* to, __m512i x) { _mm256_mask_storeu_epi16(to, mask, _mm512_cvtepi32_epi16(x)); }
void put(__mmask16 mask, uint8_t* to, __m512i x) { _mm_mask_storeu_epi8(to, mask, _mm512_cvtepi32_epi8(x)); }

struct Loop {
  // Channels outside, rows inside: factors are made once for all rows of the tile.
  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_channels(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    for (int64_t column = 0; column < tile.width; column += kLanes) {
      const __mmask16 mask = first(tile.width - column);
      const Scale scale = scale_at(r, kShifts, tile.channel + column, mask);
      const In* from = x + column;
      Out* to = out + column;
      for (int64_t row = 0; row < tile.rows; ++row, from += x_pitch, to += pitch) {
        if (mask == 0xFFFF) {
          put(to, scaled<kShifts, kNarrow>(get(from), scale));
        } else {
          put(mask, to, scaled<kShifts, kNarrow>(get(mask, from), scale));
        }
      }
    }
  }

  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_tensor(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    const Scale scale = scale_at(r, kShifts, 0, 0);
    for (int64_t row = 0; row < tile.rows; ++row, x += x_pitch, out += pitch) {
      int64_t i = 0;
      for (; i + kLanes <= tile.width; i += kLanes) put(out + i, scaled<kShifts, kNarrow>(get(x + i), scale));
      const __mmask16 mask = first(tile.width - i);
      if (i < tile.width) put(mask, out + i, scaled<kShifts, kNarrow>(get(mask, x + i), scale));
    }
  }
};

void clamp(int32_t low, int32_t high, int64_t count, const int32_t* x, int32_t* out) {
  const __m512i least = _mm512_set1_epi32(low), greatest = _mm512_set1_epi32(high);
  each(count, x, out, [&](__m512i values) { return _mm512_min_epi32(_mm512_max_epi32(values, least), greatest); });
}

// A point and the next, side by side, and their mean one product of pairs. Places are packed within each 128 bits, which
// unpacking takes back.
void interpolate(const int16_t* points, int64_t count, const int32_t* x, int32_t* out) {
  const __m512i middle = _mm512_set1_epi32(32768), places = _mm512_set1_epi32(0xFFFF);
  const __m512i fraction = _mm512_set1_epi32(127), whole = _mm512_set1_epi32(128);
  const __m512i last = _mm512_set1_epi16(511), end = _mm512_set1_epi16(points[512]);
  const Points<16> table(points);
  const auto between = [&](__m512i place, __m512i pairs) {
    const __m512i second = _mm512_and_si512(place, fraction);
    const __m512i shares = _mm512_or_si512(_mm512_sub_epi32(whole, second), _mm512_slli_epi32(second, 16));
    return _mm512_dpwssd_epi32(_mm512_setzero_si512(), pairs, shares);
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const __m512i a = _mm512_and_si512(_mm512_add_epi32(_mm512_loadu_si512(x + i), middle), places);
    const __m512i b = _mm512_and_si512(_mm512_add_epi32(_mm512_loadu_si512(x + i + kLanes), middle), places);
    const __m512i at = _mm512_packs_epi32(_mm512_srli_epi32(a, 7), _mm512_srli_epi32(b, 7));
    const __m512i first = table.at(at), inner = table.at(_mm512_add_epi16(at, _mm512_set1_epi16(1)));
    const __m512i next = _mm512_mask_blend_epi16(_mm512_cmpeq_epi16_mask(at, last), inner, end);
    _mm512_storeu_si512(out + i, between(a, _mm512_unpacklo_epi16(first, next)));
    _mm512_storeu_si512(out + i + kLanes, between(b, _mm512_unpackhi_epi16(first, next)));
  }
  for (; i < count; ++i) out[i] = interpolated(points, x[i]);
}

// Halves are added in 64 bits, which have room below an amount of 63.
template <bool kRepeated>
void mul_row_shifted(int amount, int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  int64_t i = 0;
  const __m512i half = _mm512_set1_epi64(int64_t{1} << (amount - 1)), by = _mm512_set1_epi64(amount);
  for (; amount < 63 && i + kLanes <= count; i += kLanes) {
    const __m512i a = _mm512_loadu_si512(x + i), b = kRepeated ? _mm512_set1_epi32(*y) : _mm512_loadu_si512(y + i);
    const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
    const __m512i odd_product = _mm512_add_epi64(_mm512_mul_epi32(odd(a), odd(b)), half);
    const __m512i raised = _mm512_slli_epi64(_mm512_srav_epi64(odd_product, by), 32);
    _mm512_storeu_si512(out + i, _mm512_mask_blend_epi32(kOdd, _mm512_srav_epi64(even, by), raised));
  }
  for (; i < count; ++i) out[i] = product_shifted(x[i], y[kRepeated ? 0 : i], amount);
}

void mul_shifted(int amount, const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  for_rows(tile, x, y, out, [&](int64_t count, const int32_t* a, const int32_t* b, int32_t* to) {
    y.repeated ? mul_row_shifted<true>(amount, count, a, b, to) : mul_row_shifted<false>(amount, count, a, b, to);
  });
}

void quads8(int64_t count, const uint8_t* const* rows, int8_t* to, int32_t* sums) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 mask = first(count - i);
    const auto row = [&](int number) { return _mm_maskz_loadu_epi8(mask, rows[number] + i); };
    const __m128i low_ab = _mm_unpacklo_epi8(row(0), row(1)), low_cd = _mm_unpacklo_epi8(row(2), row(3));
    const __m128i high_ab = _mm_unpackhi_epi8(row(0), row(1)), high_cd = _mm_unpackhi_epi8(row(2), row(3));
    const __m256i front = _mm256_set_m128i(_mm_unpackhi_epi16(low_ab, low_cd), _mm_unpacklo_epi16(low_ab, low_cd));
    const __m256i back = _mm256_set_m128i(_mm_unpackhi_epi16(high_ab, high_cd), _mm_unpacklo_epi16(high_ab, high_cd));
    const __m512i stored = _mm512_inserti64x4(_mm512_castsi256_si512(front), back, 1);
    const __m512i bytes = _mm512_xor_si512(stored, _mm512_set1_epi8(static_cast<char>(128)));
    const __m512i before = _mm512_maskz_loadu_epi32(mask, sums + i);
    _mm512_mask_storeu_epi32(sums + i, mask, _mm512_dpbusd_epi32(before, _mm512_set1_epi8(1), bytes));
    _mm512_mask_storeu_epi32(to + 4 * i, mask, bytes);
  }
}

void load8(int32_t bias, int64_t width, const uint8_t* from, int32_t* out) {
  const __m512i biases = _mm512_set1_epi32(bias);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    _mm512_storeu_si512(out + i, _mm512_sub_epi32(bytes, biases));
  }
  if (i == width) return;
  const __mmask16 mask = first(width - i);
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from + i));
  _mm512_mask_storeu_epi32(out + i, mask, _mm512_sub_epi32(bytes, biases));
}

void store8(int32_t bias, int64_t width, const int32_t* x, uint8_t* to) {
  const __m512i biases = _mm512_set1_epi32(bias);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_loadu_si512(x + i), biases));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bytes);
  }
  if (i == width) return;
  const __mmask16 mask = first(width - i);
  const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, x + i), biases);
  _mm_mask_storeu_epi8(to + i, mask, _mm512_cvtepi32_epi8(sum));
}

void load16(int64_t width, const int16_t* from, int32_t* out) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_si512(out + i, _mm512_cvtepi16_epi32(words));
  }
  if (i == width) return;
  const __mmask16 mask = first(width - i);
  _mm512_mask_storeu_epi32(out + i, mask, _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(mask, from + i)));
}

void store16(int64_t width, const int32_t* x, int16_t* to) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm512_cvtepi32_epi16(_mm512_loadu_si512(x + i)));
  }
  if (i == width) return;
  const __mmask16 mask = first(width - i);
  _mm256_mask_storeu_epi16(to + i, mask, _mm512_cvtepi32_epi16(_mm512_maskz_loadu_epi32(mask, x + i)));
}

}  // namespace

extern const ElementKernels kElementsAvx512vnni;
const ElementKernels kElementsAvx512vnni = {
    rescale_tile<Loop>, rescale_any<Loop>, clamp, add, sub, mul, mul_shifted, divide, maximum, minimum, abs,
    shift_left, shift_right, shift_right_rounded, load8, store8, load16, store16, wrap8, wrap16, interpolate,
    sum, greatest, least, fill, centre8, pair8, pair16, quads8};

}  // namespace cvm
