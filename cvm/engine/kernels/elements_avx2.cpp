// Element-wise kernels on 8 lanes of 32 bits. Tails are masked or byte by byte: memory beyond a row is neither read nor
// written.
#include "kernels/elements.h"

#include "kernels/integer_loops.h"
#include "kernels/rescale_avx2.h"

namespace cvm {
namespace {

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
  T spare[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) spare[i] = from[i];
  return get(spare);
}

template <typename T>
void put(int64_t count, T* to, __m256i x) {
  T spare[kLanes];
  put(spare, x);
  for (int64_t i = 0; i < count; ++i) to[i] = spare[i];
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
    const __m256i odd_product = _mm256_add_epi64(_mm256_mul_epi32(odd(a), odd(b)), half);
    if (amount <= 32) {
      const __m256i raised = _mm256_slli_epi64(_mm256_srl_epi64(odd_product, low), 32);
      store(out + i, _mm256_blend_epi32(_mm256_srl_epi64(even, low), raised, 0xAA));
    } else {
      store(out + i, _mm256_sra_epi32(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd_product, 0xAA), high));
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
__m256i low_bytes(const int32_t* x, __m256i biases) {
  return _mm256_and_si256(_mm256_add_epi32(load(x), biases), _mm256_set1_epi32(0xFF));
}

void store8(int32_t bias, int64_t width, const int32_t* x, uint8_t* to) {
  const __m256i biases = _mm256_set1_epi32(bias), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
    const __m256i front = _mm256_packus_epi32(low_bytes(x + i, biases), low_bytes(x + i + 8, biases));
    const __m256i back = _mm256_packus_epi32(low_bytes(x + i + 16, biases), low_bytes(x + i + 24, biases));
    store(to + i, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(front, back), order));
  }
  for (; i + kLanes <= width; i += kLanes) {
    const __m256i bytes = low_bytes(x + i, biases);
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

// For products by AVX-VNNI. Sums of two signed bytes fit 16 bits.
void quads8(int64_t count, const uint8_t* const* rows, int8_t* to, int32_t* sums) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto row = [&](int number) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows[number] + i)); };
    const __m128i ab = _mm_unpacklo_epi8(row(0), row(1)), cd = _mm_unpacklo_epi8(row(2), row(3));
    const __m256i stored = _mm256_set_m128i(_mm_unpackhi_epi16(ab, cd), _mm_unpacklo_epi16(ab, cd));
    const __m256i bytes = _mm256_xor_si256(stored, _mm256_set1_epi8(static_cast<char>(128)));
    const __m256i twos = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    store(sums + i, _mm256_add_epi32(load(sums + i), _mm256_madd_epi16(twos, _mm256_set1_epi16(1))));
    store(to + 4 * i, bytes);
  }
  for (; i < count; ++i) {
    for (int number = 0; number < 4; ++number) {
      const int8_t byte = static_cast<int8_t>(rows[number][i] ^ 128);
      to[4 * i + number] = byte;
      sums[i] += byte;
    }
  }
}

}  // namespace

extern const ElementKernels kElementsAvx2;
const ElementKernels kElementsAvx2 = {
    rescale_tile<Loop>, rescale_any<Loop>, clamp, add, sub, mul, mul_shifted, divide, maximum, minimum, abs,
    shift_left, shift_right, shift_right_rounded, load8, store8, load16, store16, wrap8, wrap16, interpolate,
    sum, greatest, least, fill, centre8, pair8, pair16, quads8};

}  // namespace cvm
