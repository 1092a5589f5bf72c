// Gates on 16 columns of two rows at a time, which as words fill a vector. First all rescales, whose factors stay in registers,
// then all look-ups, whose points do. Tables on four rows, which as bytes fill one. Tails are masked: memory beyond a row is neither read nor written.
#include "kernels/lookups.h"

#include "kernels/points_avx512vnni.h"
#include "kernels/rescale_avx512vnni.h"

namespace cvm {
namespace {

constexpr int64_t kPairs = 32;  // of rows at a time, in the nearest cache

// Packing saturates, and puts the words of both rows side by side within each 128 bits, which unpacking takes back.
struct Words {
  __m512i place[kPairs], value[kPairs];
};

// 16 columns of a tile.
struct Strip {
  __mmask16 mask;
  int64_t pitch;
};

inline __m512i row_at(const int32_t* x, const Strip& strip) { return _mm512_maskz_loadu_epi32(strip.mask, x); }

// Factors come by value, so that no store can be thought to change them.
template <Shifts kPlace, Shifts kValue>
inline void rescale_pairs(const Scale place, const Scale value, const Strip strip, int64_t rows, const int32_t* x, Words& words) {
  for (int64_t row = 0; row < rows; row += 2, x += 2 * strip.pitch) {
    const __m512i first = row_at(x, strip), second = row + 1 < rows ? row_at(x + strip.pitch, strip) : first;
    const __m512i first_place = scaled<kPlace, false>(first, place), second_place = scaled<kPlace, false>(second, place);
    const __m512i first_value = scaled<kValue, false>(first, value), second_value = scaled<kValue, false>(second, value);
    words.place[row / 2] = _mm512_packs_epi32(first_place, second_place);
    words.value[row / 2] = _mm512_packs_epi32(first_value, second_value);
  }
}

// A point and the next, and how far the place is from the first of them.
struct Between {
  __m512i first, second, share;
};

struct AllPoints {
  explicit AllPoints(const int16_t* points) : points(points), end(_mm512_set1_epi16(points[kPoints - 1])) {}

  Between at(__m512i places) const {
    const __m512i from = _mm512_xor_si512(places, _mm512_set1_epi16(INT16_MIN)), one = _mm512_set1_epi16(1);
    const __m512i at = _mm512_srli_epi16(from, 7), inner = points.at(_mm512_add_epi16(at, one));
    const __mmask32 last = _mm512_cmpeq_epi16_mask(at, _mm512_set1_epi16(511));
    return {points.at(at), _mm512_mask_blend_epi16(last, inner, end), _mm512_and_si512(from, _mm512_set1_epi16(127))};
  }

  Points<16> points;
  __m512i end;
};

// The points from the middle on: left of it, points are what is missing to the sum. The last two are equal, so 256 do.
struct MirroredPoints {
  explicit MirroredPoints(const int16_t* points)
      : points(points + 256), sum(_mm512_set1_epi16(static_cast<int16_t>(points[0] + points[kPoints - 1]))) {}

  Between at(__m512i places) const {
    const __m512i distance = _mm512_abs_epi16(places), last = _mm512_set1_epi16(255);
    const __m512i at = _mm512_srli_epi16(distance, 7), next = _mm512_add_epi16(at, _mm512_set1_epi16(1));
    const __m512i first = points.at(_mm512_min_epu16(at, last)), second = points.at(_mm512_min_epu16(next, last));
    const __mmask32 left = _mm512_movepi16_mask(places);
    return {_mm512_mask_sub_epi16(first, left, sum, first), _mm512_mask_sub_epi16(second, left, sum, second),
            _mm512_and_si512(distance, _mm512_set1_epi16(127))};
  }

  Points<8> points;
  __m512i sum;
};

// The mean of two points, 128 times, and its product with the value in halves that fit 32 bits. A word beside a zero makes of
// vpdpwssd a plain product and a sum.
inline __m512i product(__m512i points, __m512i shares, __m512i value) {
  const __m512i mean = _mm512_dpwssd_epi32(_mm512_setzero_si512(), points, shares);
  const __m512i low = _mm512_and_si512(mean, _mm512_set1_epi32(127)), high = _mm512_srai_epi32(mean, 7);
  const __m512i rounded = _mm512_srai_epi32(_mm512_dpwssd_epi32(_mm512_set1_epi32(64), value, low), 7);
  return _mm512_dpwssd_epi32(rounded, value, high);
}

template <typename Table>
inline void multiply_pairs(const Table table, const Words& words, const Strip strip, int64_t rows, int32_t* out) {
  const __m512i whole = _mm512_set1_epi16(128), zero = _mm512_setzero_si512();
  for (int64_t row = 0; row < rows; row += 2, out += 2 * strip.pitch) {
    const __m512i value = words.value[row / 2];
    const Between points = table.at(words.place[row / 2]);
    const __m512i rest = _mm512_sub_epi16(whole, points.share);
    const __m512i first = product(_mm512_unpacklo_epi16(points.first, points.second), _mm512_unpacklo_epi16(rest, points.share),
                                  _mm512_unpacklo_epi16(value, zero));
    _mm512_mask_storeu_epi32(out, strip.mask, first);
    if (row + 1 == rows) return;
    const __m512i second = product(_mm512_unpackhi_epi16(points.first, points.second), _mm512_unpackhi_epi16(rest, points.share),
                                   _mm512_unpackhi_epi16(value, zero));
    _mm512_mask_storeu_epi32(out + strip.pitch, strip.mask, second);
  }
}

template <Shifts kPlace, Shifts kValue, typename Table>
void gate_by(const Gate& gate, const Tile& tile, const int32_t* x, int32_t* out) {
  const Table table(gate.points);
  Words words;
  for (int64_t column = 0; column < tile.width; column += kLanes) {
    const Strip strip{first(tile.width - column), tile.width};
    const Scale place = scale_at(gate.place, kPlace, tile.channel + column, strip.mask);
    const Scale value = scale_at(gate.value, kValue, tile.channel + column, strip.mask);
    for (int64_t row = 0; row < tile.rows; row += 2 * kPairs) {
      const int64_t rows = tile.rows - row < 2 * kPairs ? tile.rows - row : 2 * kPairs, start = row * tile.width + column;
      rescale_pairs<kPlace, kValue>(place, value, strip, rows, x + start, words);
      multiply_pairs(table, words, strip, rows, out + start);
    }
  }
}

template <typename Table>
void gate_with(const Gate& gate, const Tile& tile, const int32_t* x, int32_t* out) {
  const bool place = gate.place.least_shift >= 32, value = gate.value.least_shift >= 32;
  if (place && value) return gate_by<Shifts::high, Shifts::high, Table>(gate, tile, x, out);
  if (place) return gate_by<Shifts::high, Shifts::any, Table>(gate, tile, x, out);
  value ? gate_by<Shifts::any, Shifts::high, Table>(gate, tile, x, out) : gate_by<Shifts::any, Shifts::any, Table>(gate, tile, x, out);
}

void gate(const Gate& g, const Tile& tile, const int32_t* x, int32_t* out) {
  g.mirrored ? gate_with<MirroredPoints>(g, tile, x, out) : gate_with<AllPoints>(g, tile, x, out);
}

// Four rows of 16 columns, whose dwords lie row after row within each 128 bits when they are packed.
struct Rows {
  const int32_t* x;
  int64_t pitch, count;

  __m512i at(int64_t row, __mmask16 mask) const { return _mm512_maskz_loadu_epi32(mask, x + (row < count ? row : 0) * pitch); }
};

template <Shifts kShifts>
inline __m512i bytes_of(const Rows rows, __mmask16 mask, const Scale scale) {
  const auto words = [&](int64_t row) {
    const __m512i first = scaled<kShifts, false>(rows.at(row, mask), scale), second = scaled<kShifts, false>(rows.at(row + 1, mask), scale);
    return _mm512_packs_epi32(first, second);
  };
  const __m512i zero_point = _mm512_packs_epi32(scale.zero_point, scale.zero_point);
  return _mm512_packs_epi16(_mm512_adds_epi16(words(0), zero_point), _mm512_adds_epi16(words(2), zero_point));
}

// Of 64 bytes, the even ones and the odd ones as words.
inline __m512i entries_at(const Points<8> entries, __m512i bytes) {
  const __m512i even = entries.at(_mm512_and_si512(bytes, _mm512_set1_epi16(255)));
  return _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAA, even, _mm512_slli_epi16(entries.at(_mm512_srli_epi16(bytes, 8)), 8));
}

inline void put_row(__m128i entries, __mmask16 mask, int32_t bias, uint8_t* to) {
  _mm_mask_storeu_epi8(to, mask, _mm_add_epi8(entries, _mm_set1_epi8(static_cast<char>(bias))));
}

inline void put_row(__m128i entries, __mmask16 mask, int32_t bias, int32_t* to) {
  _mm512_mask_storeu_epi32(to, mask, _mm512_add_epi32(_mm512_cvtepi8_epi32(entries), _mm512_set1_epi32(bias)));
}

template <Shifts kShifts, typename Out>
void table_by(const ByteTable& table, const Tile& tile, const int32_t* x, int32_t bias, Out* out, int64_t pitch) {
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const Points<8> entries(table.entries);
  for (int64_t column = 0; column < tile.width; column += kLanes) {
    const __mmask16 mask = first(tile.width - column);
    const Scale scale = scale_at(table.index, kShifts, tile.channel + column, mask);
    for (int64_t row = 0; row < tile.rows; row += 4) {
      const Rows rows{x + row * tile.width + column, tile.width, tile.rows - row};
      const __m512i bytes = _mm512_permutexvar_epi32(order, entries_at(entries, bytes_of<kShifts>(rows, mask, scale)));
      Out* to = out + row * pitch + column;
      put_row(_mm512_castsi512_si128(bytes), mask, bias, to);
      if (rows.count > 1) put_row(_mm512_extracti32x4_epi32(bytes, 1), mask, bias, to + pitch);
      if (rows.count > 2) put_row(_mm512_extracti32x4_epi32(bytes, 2), mask, bias, to + 2 * pitch);
      if (rows.count > 3) put_row(_mm512_extracti32x4_epi32(bytes, 3), mask, bias, to + 3 * pitch);
    }
  }
}

void table(const ByteTable& t, const Tile& tile, const int32_t* x, int32_t bias, const ToRows& out) {
  const bool high = t.index.least_shift >= 32;
  auto* wide = reinterpret_cast<int32_t*>(out.data);
  if (out.size == 1) {
    return high ? table_by<Shifts::high>(t, tile, x, bias, out.data, out.pitch) : table_by<Shifts::any>(t, tile, x, bias, out.data, out.pitch);
  }
  high ? table_by<Shifts::high>(t, tile, x, bias, wide, out.pitch) : table_by<Shifts::any>(t, tile, x, bias, wide, out.pitch);
}

}  // namespace

extern const LookupKernels kLookupsAvx512vnni;
const LookupKernels kLookupsAvx512vnni = {gate, table};

}  // namespace cvm
