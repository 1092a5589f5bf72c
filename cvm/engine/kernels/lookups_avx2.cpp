// Gates on 8 columns of two rows at a time, which as words fill a vector. First all rescales, whose factors stay in registers,
// then all look-ups and products. Tails are masked: memory beyond a row is neither read nor written.
#include "kernels/lookups.h"

#include "kernels/rescale_avx2.h"
#include "kernels/table_rows.h"

namespace cvm {

extern const ElementKernels kElementsAvx2;

namespace {

constexpr int64_t kPairs = 32;  // of rows at a time, in the nearest cache

// Packing saturates, and puts the words of both rows side by side within each 128 bits, which unpacking takes back.
struct Words {
  __m256i place[kPairs], value[kPairs];
};

// 8 columns of a tile, or what is left of them.
struct Strip {
  __m256i mask;
  bool whole;
  int64_t pitch;

  __m256i at(const int32_t* x) const { return whole ? load(x) : _mm256_maskload_epi32(x, mask); }
  void put(int32_t* to, __m256i x) const { whole ? store(to, x) : _mm256_maskstore_epi32(to, mask, x); }
};

template <Shifts kPlace, Shifts kValue>
void rescale_pairs(const Scale& place, const Scale& value, const Strip& strip, int64_t rows, const int32_t* x, Words& words) {
  for (int64_t row = 0; row < rows; row += 2, x += 2 * strip.pitch) {
    const __m256i first = strip.at(x), second = row + 1 < rows ? strip.at(x + strip.pitch) : first;
    words.place[row / 2] = _mm256_packs_epi32(scaled<kPlace, false>(first, place), scaled<kPlace, false>(second, place));
    words.value[row / 2] = _mm256_packs_epi32(scaled<kValue, false>(first, value), scaled<kValue, false>(second, value));
  }
}

// A point and the next are one load of 32 bits, and 128 times their mean one product of pairs. Its product with the value is one
// of halves that fit 32 bits: a word beside a zero makes of vpmaddwd a plain product.
__m256i product(const int16_t* points, __m256i place, __m256i value) {
  const __m256i pairs = _mm256_i32gather_epi32(reinterpret_cast<const int*>(points), _mm256_srli_epi32(place, 7), 2);
  const __m256i fraction = _mm256_set1_epi32(127), second = _mm256_and_si256(place, fraction);
  const __m256i shares = _mm256_or_si256(_mm256_sub_epi32(_mm256_set1_epi32(128), second), _mm256_slli_epi32(second, 16));
  const __m256i mean = _mm256_madd_epi16(pairs, shares);
  const __m256i low = _mm256_madd_epi16(value, _mm256_and_si256(mean, fraction)), high = _mm256_madd_epi16(value, _mm256_srai_epi32(mean, 7));
  return _mm256_add_epi32(high, _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_set1_epi32(64)), 7));
}

void multiply_pairs(const int16_t* points, const Words& words, const Strip& strip, int64_t rows, int32_t* out) {
  const __m256i middle = _mm256_set1_epi16(INT16_MIN), zero = _mm256_setzero_si256();
  for (int64_t row = 0; row < rows; row += 2, out += 2 * strip.pitch) {
    const __m256i place = _mm256_xor_si256(words.place[row / 2], middle), value = words.value[row / 2];
    strip.put(out, product(points, _mm256_unpacklo_epi16(place, zero), _mm256_unpacklo_epi16(value, zero)));
    if (row + 1 == rows) return;
    strip.put(out + strip.pitch, product(points, _mm256_unpackhi_epi16(place, zero), _mm256_unpackhi_epi16(value, zero)));
  }
}

template <Shifts kPlace, Shifts kValue>
void gate_by(const Gate& gate, const Tile& tile, const int32_t* x, int32_t* out) {
  Words words;
  for (int64_t column = 0; column < tile.width; column += kLanes) {
    const Strip strip{first(tile.width - column), tile.width - column >= kLanes, tile.width};
    const Scale place = scale_at(gate.place, kPlace, tile.channel + column, strip.mask);
    const Scale value = scale_at(gate.value, kValue, tile.channel + column, strip.mask);
    for (int64_t row = 0; row < tile.rows; row += 2 * kPairs) {
      const int64_t rows = tile.rows - row < 2 * kPairs ? tile.rows - row : 2 * kPairs, start = row * tile.width + column;
      rescale_pairs<kPlace, kValue>(place, value, strip, rows, x + start, words);
      multiply_pairs(gate.points, words, strip, rows, out + start);
    }
  }
}

void gate(const Gate& g, const Tile& tile, const int32_t* x, int32_t* out) {
  const bool place = g.place.least_shift >= 32, value = g.value.least_shift >= 32;
  if (place && value) return gate_by<Shifts::high, Shifts::high>(g, tile, x, out);
  if (place) return gate_by<Shifts::high, Shifts::any>(g, tile, x, out);
  value ? gate_by<Shifts::any, Shifts::high>(g, tile, x, out) : gate_by<Shifts::any, Shifts::any>(g, tile, x, out);
}

void table(const ByteTable& t, const Tile& tile, const int32_t* x, int32_t bias, const ToRows& out) {
  table_by_rows(kElementsAvx2, t, tile, x, bias, out);
}

}  // namespace

extern const LookupKernels kLookupsAvx2;
const LookupKernels kLookupsAvx2 = {gate, table};

}  // namespace cvm
