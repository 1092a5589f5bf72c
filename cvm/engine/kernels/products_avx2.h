// What follows sums of products with AVX2, in registers: rescales, shortcuts, narrow rows. Kernels differ in how they multiply
// (products_avx2.cpp, products_avxvnni.cpp): Rows::accumulate<R, V>(task, first row, sums) adds the products of R rows and V vectors of
// columns, at most Rows::kRows rows at once. Where sums are all that is wanted, they are settled if Rows::kSettles.
#pragma once

#include <immintrin.h>
#include <string.h>

#include "kernels/products.h"
#include "kernels/scales_avx2.h"

namespace cvm {
namespace {

#if defined(__GNUC__)
#define CVM_ALWAYS_INLINE inline __attribute__((always_inline))  // gcc would merge two of them, and warn of the larger
#else
#define CVM_ALWAYS_INLINE inline
#endif

// Four bytes in all eight lanes.
inline __m256i broadcast(const void* from) {
  int32_t bytes;
  memcpy(&bytes, from, 4);
  return _mm256_set1_epi32(bytes);
}

// Makes the compiler finish a vector here, so that it allocates registers for what follows afresh. It takes a value: gcc keeps an
// array of sums in memory if assembly is given its elements, and stores them after every product.
inline __m256i settled(__m256i x) {
#if defined(__GNUC__)
  asm("" : "+x"(x));
#endif
  return x;
}

template <int R, int V>
CVM_ALWAYS_INLINE void begin(const ProductTask& task, __m256i (&sums)[R][V]) {
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const __m256i bias = load(task.bias + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) sums[r][v] = bias;
  }
}

template <typename Rows, int R, int V>
inline void accumulate(const ProductTask& task, int64_t row, __m256i (&sums)[R][V]) {
  begin(task, sums);
  Rows::accumulate(task, row, sums);
}

template <typename Rows, int R, int V>
CVM_ALWAYS_INLINE void accumulate_settled(const ProductTask& task, int64_t row, __m256i (&sums)[R][V]) {
  begin(task, sums);
  Rows::accumulate(task, row, sums);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) sums[r][v] = settled(sums[r][v]);
  }
}

// Rows of the first `columns` elements.
template <typename Element>
inline void copy_rows(const Element* from, int64_t from_pitch, int64_t rows, int64_t columns, Element* to, int64_t to_pitch) {
  for (int64_t r = 0; r < rows; ++r) memcpy(to + r * to_pitch, from + r * from_pitch, static_cast<size_t>(columns) * sizeof(Element));
}

// Four vectors of 8 integers to 32 bytes in their order, saturated to 0..255.
inline __m256i packed(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline void store_upper(__m128i x, uint8_t* to) { _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_unpackhi_epi64(x, x)); }

// Stores rows of V vectors as bytes between low and high, packed four vectors at a time.
template <int R, int V>
CVM_ALWAYS_INLINE void store_whole_rows(const __m256i (&x)[R][V], int32_t low, int32_t high, uint8_t* to, int64_t pitch) {
  constexpr int kStep = 4 / V;
  const __m256i least = _mm256_set1_epi8(static_cast<char>(low)), most = _mm256_set1_epi8(static_cast<char>(high));
  const bool clamps = low != 0 || high != 255;  // packing saturates to 0..255 by itself
#pragma GCC unroll 6
  for (int r = 0; r < R; r += kStep) {
    const auto at = [&](int i) { return to + (r + i) * pitch; };
    __m256i bytes;
    if constexpr (V == 2) {
      bytes = packed(x[r][0], x[r][1], x[r + 1 < R ? r + 1 : r][0], x[r + 1 < R ? r + 1 : r][1]);
    } else {
      bytes = packed(x[r][0], x[r + 1 < R ? r + 1 : r][0], x[r + 2 < R ? r + 2 : r][0], x[r + 3 < R ? r + 3 : r][0]);
    }
    if (clamps) bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, least), most);
    const __m128i lower = _mm256_castsi256_si128(bytes), upper = _mm256_extracti128_si256(bytes, 1);
    if constexpr (V == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at(0)), lower);
      if (r + 1 < R) _mm_storeu_si128(reinterpret_cast<__m128i*>(at(1)), upper);
    } else {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(at(0)), lower);
      if (r + 1 < R) store_upper(lower, at(1));
      if (r + 2 < R) _mm_storel_epi64(reinterpret_cast<__m128i*>(at(2)), upper);
      if (r + 3 < R) store_upper(upper, at(3));
    }
  }
}

// The same of the first `columns` of them.
template <int R, int V>
CVM_ALWAYS_INLINE void store_rows(const __m256i (&x)[R][V], int32_t low, int32_t high, int64_t columns, uint8_t* to, int64_t pitch) {
  constexpr int64_t kWhole = V * kLanes;
  if (columns == kWhole) return store_whole_rows(x, low, high, to, pitch);
  uint8_t spare[R * kWhole];
  store_whole_rows(x, low, high, spare, kWhole);
  copy_rows(spare, kWhole, R, columns, to, pitch);
}

template <typename Rows, int R, int V>
void sums(const ProductTask& task, int64_t row, int32_t* out) {
  __m256i sums[R][V];
  if constexpr (Rows::kSettles) {
    accumulate_settled<Rows>(task, row, sums);
  } else {
    accumulate<Rows>(task, row, sums);
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + ((row + r) * V + v) * kLanes), sums[r][v]);
    }
  }
}

template <typename Rows, int R, int V, ScaleForm kForm>
void to_bytes(const ProductTask& task, int64_t row, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  __m256i sums[R][V];
  accumulate_settled<Rows>(task, row, sums);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto block = byte_block_of<kForm>(out.scale, v);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) sums[r][v] = to_stored(sums[r][v], block);
  }
  store_rows(sums, out.low, out.high, columns, to + row * pitch, pitch);
}

// Sums and 8 values of the shortcut, vector `v` of a row.
template <Own kOwn, typename Element>
inline __m256i shortcut_added(__m256i sums, const Residual& residual, const Element* shortcut, int v) {
  if constexpr (kOwn == Own::shifted) {
    if constexpr (sizeof(Element) == 1) return shifted_sum(sums, shortcut, residual.shifted, v);
    return _mm256_add_epi32(shifted(sums, residual.shifted, v), load(shortcut));
  } else {
    const __m256i own = to_integers<kOwn == Own::left>(sums, block_of(residual.scale, v));
    if constexpr (sizeof(Element) == 1) return _mm256_add_epi32(own, rescaled_bytes(shortcut, residual.shortcut_scale, v));
    return _mm256_add_epi32(own, load(shortcut));
  }
}

// Element: of the shortcut. Of its rows, columns beyond `columns` are not read.
template <typename Rows, int R, int V, Own kOwn, typename Element, ScaleForm kForm>
void with_shortcut(const ProductTask& task, int64_t row, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  constexpr int64_t kWhole = V * kLanes;
  __m256i sums[R][V];
  accumulate_settled<Rows>(task, row, sums);
  int64_t shortcut_pitch = residual.shortcut_pitch;
  const Element* shortcut = static_cast<const Element*>(residual.shortcut) + row * shortcut_pitch;
  Element spare[R * kWhole];
  if (columns < kWhole) {
    memset(spare, 0, sizeof spare);
    copy_rows(shortcut, shortcut_pitch, R, columns, spare, kWhole);
    shortcut = spare, shortcut_pitch = kWhole;
  }
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto last = byte_block_of<kForm>(residual.out.scale, v);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      sums[r][v] = shortcut_added<kOwn>(sums[r][v], residual, shortcut + r * shortcut_pitch + v * kLanes, v);
      sums[r][v] = to_stored(sums[r][v], last);
    }
  }
  store_rows(sums, residual.out.low, residual.out.high, columns, to + row * pitch, pitch);
}

inline __m256i widened(const ToWide& out, __m256i sums, int v) {
  const __m256i stored = to_stored(sums, block_of(out.scale, v));
  const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(stored, _mm256_set1_epi32(out.low)), _mm256_set1_epi32(out.high));
  return _mm256_add_epi32(clamped, _mm256_set1_epi32(out.add));
}

template <typename Rows, int R, int V, ScaleForm kForm>
void to_wide(const ProductTask& task, int64_t row, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  __m256i sums[R][V];
  accumulate_settled<Rows>(task, row, sums);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const __m256i x = kForm == ScaleForm::bytes ? widened(out, sums[r][v], v)
                                             : to_integers<kForm == ScaleForm::left>(sums[r][v], block_of(out.scale, v));
      store_integers(x, columns - v * kLanes, to + (row + r) * pitch + v * kLanes);
    }
  }
}

// 8 or 16 integers of one row to 16 bits, saturated, then clamped.
template <int V>
CVM_ALWAYS_INLINE void store_words(const __m256i (&row)[V], const ToWords& out, int64_t columns, int16_t* to) {
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(row[0], row[V - 1]), 0xD8);
  const __m256i low = _mm256_set1_epi16(static_cast<int16_t>(out.low)), high = _mm256_set1_epi16(static_cast<int16_t>(out.high));
  const __m256i words = _mm256_min_epi16(_mm256_max_epi16(packed, low), high);
  if (columns == 16 && V == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words);
  } else if (columns == 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(words));
  } else {
    alignas(32) int16_t spare[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(spare), words);
    for (int64_t i = 0; i < columns; ++i) to[i] = spare[i];
  }
}

template <typename Rows, int R, int V, ScaleForm kForm>
void to_words(const ProductTask& task, int64_t row, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  __m256i sums[R][V];
  accumulate_settled<Rows>(task, row, sums);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const auto block = word_block_of<kForm>(out.scale, v);
      if constexpr (kForm == ScaleForm::words || kForm == ScaleForm::half_words) {
        sums[r][v] = to_stored(sums[r][v], block);
      } else {
        sums[r][v] = to_integers<kForm == ScaleForm::left>(sums[r][v], block);
      }
    }
    store_words(sums[r], out, columns, to + (row + r) * pitch);
  }
}

template <int kMost, typename Body>
void for_rows(int64_t count, bool two, int64_t row, Body body) {
  if constexpr (kMost > 1) {
    if (count < kMost) return for_rows<kMost - 1>(count, two, row, body);
  }
  two ? body.template operator()<kMost, 2>(row) : body.template operator()<kMost, 1>(row);
}

constexpr int64_t kNearBytes = 8 * 1024;  // of weights: so few have room in the nearest cache beside those that are multiplied

// Brings cache lines near, and returns the first one from `end` on.
inline const char* fetch(const char* from, const char* end, bool nearest) {
  for (; from < end; from += 64) nearest ? _mm_prefetch(from, _MM_HINT_T0) : _mm_prefetch(from, _MM_HINT_T1);
  return from;
}

// Calls body<rows, vectors>(first row) until all rows of the task are done, in shares as even as they can be: a single row
// left over would cost as much as half a share.
template <typename Rows, typename Body>
void for_size(const ProductTask& task, Body body) {
  const char* next = static_cast<const char*>(task.next);
  const int64_t next_a_row = task.next == nullptr ? 0 : task.next_bytes / task.row_count;
  int64_t row = 0;
  for (int64_t shares = (task.row_count + Rows::kRows - 1) / Rows::kRows; shares > 0; --shares) {
    const int64_t count = (task.row_count - row + shares - 1) / shares;
    next = fetch(next, next + count * next_a_row, task.next_bytes <= kNearBytes);
    for_rows<Rows::kRows>(count, task.vectors == 2, row, body);
    row += count;
  }
}

template <typename Rows>
void sums_of(const ProductTask& task, int32_t* out) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) { sums<Rows, R, V>(task, row, out); });
}

template <typename Rows>
void bytes_of(const ProductTask& task, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::odd_bytes: return to_bytes<Rows, R, V, ScaleForm::odd_bytes>(task, row, out, columns, to, pitch);
      case ScaleForm::half_bytes: return to_bytes<Rows, R, V, ScaleForm::half_bytes>(task, row, out, columns, to, pitch);
      case ScaleForm::short_bytes: return to_bytes<Rows, R, V, ScaleForm::short_bytes>(task, row, out, columns, to, pitch);
      default: return to_bytes<Rows, R, V, ScaleForm::bytes>(task, row, out, columns, to, pitch);
    }
  });
}

template <typename Rows, Own kOwn, ScaleForm kForm>
void with_shortcut_of(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    residual.shortcut_is_wide ? with_shortcut<Rows, R, V, kOwn, int32_t, kForm>(task, row, residual, columns, to, pitch)
                              : with_shortcut<Rows, R, V, kOwn, uint8_t, kForm>(task, row, residual, columns, to, pitch);
  });
}

template <typename Rows>
void residual_of(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  const auto run = [&](auto body) { body(task, residual, columns, to, pitch); };
  if (residual.shifted.data != nullptr) {
    const bool is_short = residual.out.scale.form == ScaleForm::short_bytes;
    return run(is_short ? with_shortcut_of<Rows, Own::shifted, ScaleForm::short_bytes>
                        : with_shortcut_of<Rows, Own::shifted, ScaleForm::bytes>);
  }
  const bool is_left = residual.scale.form == ScaleForm::left;
  run(is_left ? with_shortcut_of<Rows, Own::left, ScaleForm::bytes> : with_shortcut_of<Rows, Own::integers, ScaleForm::bytes>);
}

template <typename Rows>
void wide_of(const ProductTask& task, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::bytes: return to_wide<Rows, R, V, ScaleForm::bytes>(task, row, out, columns, to, pitch);
      case ScaleForm::left: return to_wide<Rows, R, V, ScaleForm::left>(task, row, out, columns, to, pitch);
      default: return to_wide<Rows, R, V, ScaleForm::integers>(task, row, out, columns, to, pitch);
    }
  });
}

template <typename Rows>
void words_of(const ProductTask& task, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::words: return to_words<Rows, R, V, ScaleForm::words>(task, row, out, columns, to, pitch);
      case ScaleForm::half_words: return to_words<Rows, R, V, ScaleForm::half_words>(task, row, out, columns, to, pitch);
      case ScaleForm::left: return to_words<Rows, R, V, ScaleForm::left>(task, row, out, columns, to, pitch);
      default: return to_words<Rows, R, V, ScaleForm::integers>(task, row, out, columns, to, pitch);
    }
  });
}

inline void widen(const uint8_t* from, int64_t count, int16_t* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_cvtepu8_epi16(bytes));
  }
}

}  // namespace
}  // namespace cvm
