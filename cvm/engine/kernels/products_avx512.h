// What follows sums of products with AVX-512, in registers: rescales, shortcuts, narrow rows. Kernels differ in where sums come
// from (products_avx512vnni.cpp, products_amx.cpp).
#pragma once

#include <string.h>

#include "kernels/avx512.h"
#include "kernels/products.h"
#include "kernels/scales_avx512vnni.h"

namespace cvm {
namespace {

#if defined(__GNUC__)
#define CVM_ALWAYS_INLINE inline __attribute__((always_inline))  // a call would send every vector through memory
#define CVM_NEVER_INLINE __attribute__((noinline))
#else
#define CVM_ALWAYS_INLINE inline
#define CVM_NEVER_INLINE
#endif

constexpr int kRows = 8;  // 8 x 2 sums; more spill in compilers that matter

// Prefetches the rows of int32 that are read or written after the products, which take long enough for any cache to
// answer.
template <int R, int V>
inline void fetch_rows(const int32_t* from, int64_t pitch) {
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm_prefetch(reinterpret_cast<const char*>(from + r * pitch + v * kLanes), _MM_HINT_T0);
  }
}

template <int R, int V, typename Source>
void sums(const Source& source, int64_t row, int32_t* out) {
  __m512i sums[R][V];
  source.template take<R, V>(row, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) _mm512_storeu_si512(out + ((row + r) * V + v) * kLanes, sums[r][v]);
  }
}

// Four vectors of 16 integers to 64 bytes in their order, saturated to 0..255.
inline __m512i packed(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d)));
}

// What every row of a tile needs to be stored as bytes.
struct Narrow {
  __m512i low, high;
  __mmask32 mask;  // of the columns that are there
  bool clamps;     // packing saturates to 0..255 by itself
  bool whole;      // every column is there
};

inline Narrow narrow_of(int32_t low, int32_t high, int64_t columns, int vectors) {
  const __mmask32 mask = columns >= 32 ? 0xFFFFFFFFu : (1u << columns) - 1;
  return {_mm512_set1_epi8(static_cast<char>(low)), _mm512_set1_epi8(static_cast<char>(high)), mask,
          low != 0 || high != 255, columns == vectors * kLanes};
}

// Stores rows of V vectors, packed four vectors at a time.
template <int R, int V>
CVM_ALWAYS_INLINE void store_rows(__m512i (&x)[R][V], const Narrow& n, uint8_t* to, int64_t pitch) {
  constexpr int kStep = 4 / V;
#pragma GCC unroll 8
  for (int r = 0; r < R; r += kStep) {
    __m512i bytes;
    if constexpr (V == 2) {
      bytes = packed(x[r][0], x[r][1], x[r + 1 < R ? r + 1 : r][0], x[r + 1 < R ? r + 1 : r][1]);
    } else {
      bytes = packed(x[r][0], x[r + 1 < R ? r + 1 : r][0], x[r + 2 < R ? r + 2 : r][0], x[r + 3 < R ? r + 3 : r][0]);
    }
    if (n.clamps) bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, n.low), n.high);
    if constexpr (V == 2) {
      if (n.whole) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * pitch), _mm512_castsi512_si256(bytes));
        if (r + 1 < R) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (r + 1) * pitch), _mm512_extracti64x4_epi64(bytes, 1));
      } else {
        _mm256_mask_storeu_epi8(to + r * pitch, n.mask, _mm512_castsi512_si256(bytes));
        if (r + 1 < R) _mm256_mask_storeu_epi8(to + (r + 1) * pitch, n.mask, _mm512_extracti64x4_epi64(bytes, 1));
      }
    } else {
      const __m128i rows[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                               _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (r + i >= R) continue;
        if (n.whole) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (r + i) * pitch), rows[i]);
        } else {
          _mm_mask_storeu_epi8(to + (r + i) * pitch, static_cast<__mmask16>(n.mask), rows[i]);
        }
      }
    }
  }
}

template <int R, int V, ScaleForm kForm, typename Source>
void to_bytes(const Source& source, int64_t row, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  __m512i sums[R][V];
  source.template take<R, V>(row, sums);
  const Narrow narrow = narrow_of(out.low, out.high, columns, V);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto block = byte_block_of<kForm>(out.scale, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = to_stored(sums[r][v], block);
  }
  store_rows<R, V>(sums, narrow, to + row * pitch, pitch);
}

inline __m512i wide_at(const void* from, int64_t place, __mmask16 mask) {
  return _mm512_maskz_loadu_epi32(mask, static_cast<const int32_t*>(from) + place);
}

template <int R, int V, Own kOwn, bool kWide, bool kShort, typename Source>
void with_shortcut(const Source& source, int64_t row, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  __m512i sums[R][V];
  if constexpr (kWide) fetch_rows<R, V>(static_cast<const int32_t*>(residual.shortcut) + row * residual.shortcut_pitch, residual.shortcut_pitch);
  source.template take<R, V>(row, sums);
  const ToBytes& out = residual.out;
  const Narrow narrow = narrow_of(out.low, out.high, columns, V);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const __mmask16 mask = mask_of(columns - v * kLanes);
    Block own{};
    ByteFactors factors{};
    ShiftFactors shifts{};
    if constexpr (kOwn == Own::shifted) {
      shifts = shift_factors_of(residual.shifted, v);
    } else {
      own = block_of(residual.scale, v);
      if constexpr (!kWide) factors = factors_of(residual.shortcut_scale, v);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const int64_t place = (row + r) * residual.shortcut_pitch + v * kLanes;
      const uint8_t* bytes = static_cast<const uint8_t*>(residual.shortcut) + place;
      if constexpr (kOwn == Own::shifted) {
        if constexpr (kWide) {
          sums[r][v] = _mm512_add_epi32(shifted(sums[r][v], shifts), wide_at(residual.shortcut, place, mask));
        } else {
          sums[r][v] = shifted_sum<kShort>(sums[r][v], bytes_at(bytes, mask), shifts);
        }
      } else {
        const __m512i rescaled = to_integers<kOwn == Own::left>(sums[r][v], own);
        if constexpr (kWide) {
          sums[r][v] = _mm512_add_epi32(rescaled, wide_at(residual.shortcut, place, mask));
        } else {
          sums[r][v] = _mm512_add_epi32(rescaled, shortcut_bytes(bytes, factors, mask));
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto last = byte_block_of<kShort ? ScaleForm::short_bytes : ScaleForm::bytes>(out.scale, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = to_stored(sums[r][v], last);
  }
  store_rows<R, V>(sums, narrow, to + row * pitch, pitch);
}

template <int R, int V, ScaleForm kForm, typename Source>
void to_wide(const Source& source, int64_t row, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  __m512i sums[R][V];
  fetch_rows<R, V>(to + row * pitch, pitch);
  source.template take<R, V>(row, sums);
  const __m512i low = _mm512_set1_epi32(out.low), high = _mm512_set1_epi32(out.high), add = _mm512_set1_epi32(out.add);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const Block block = block_of(out.scale, v);
    const __mmask16 mask = mask_of(columns - v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512i x;
      if constexpr (kForm == ScaleForm::bytes) {
        x = _mm512_add_epi32(_mm512_min_epi32(_mm512_max_epi32(to_stored(sums[r][v], block), low), high), add);
      } else {
        x = to_integers<kForm == ScaleForm::left>(sums[r][v], block);
      }
      _mm512_mask_storeu_epi32(to + (row + r) * pitch + v * kLanes, mask, x);
    }
  }
}

// Two vectors of 16 integers to 32 of 16 bits in their order, saturated.
inline __m512i packed_words(__m512i a, __m512i b) {
  return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), _mm512_packs_epi32(a, b));
}

// Stores rows of V vectors, packed two vectors at a time. Clamped after saturating, which takes half the instructions of 32 bits.
template <int R, int V>
CVM_ALWAYS_INLINE void store_words(__m512i (&x)[R][V], const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  const __m512i low = _mm512_set1_epi16(static_cast<int16_t>(out.low)), high = _mm512_set1_epi16(static_cast<int16_t>(out.high));
  const __mmask32 mask = columns >= 32 ? 0xFFFFFFFFu : (1u << columns) - 1;
  const bool whole = columns == V * kLanes;  // nearly always, and a masked store may cost more
#pragma GCC unroll 8
  for (int r = 0; r < R; r += 2 / V) {
    __m512i words = packed_words(x[r][0], V == 2 ? x[r][V - 1] : x[r + 1 < R ? r + 1 : r][0]);
    words = _mm512_min_epi16(_mm512_max_epi16(words, low), high);
    int16_t* const at = to + r * pitch;
    if constexpr (V == 2) {
      whole ? _mm512_storeu_si512(at, words) : _mm512_mask_storeu_epi16(at, mask, words);
    } else {
      const __m256i rows[2] = {_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64(words, 1)};
      for (int i = 0; i < 2 && r + i < R; ++i) {
        whole ? _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i * pitch), rows[i])
              : _mm256_mask_storeu_epi16(at + i * pitch, static_cast<__mmask16>(mask), rows[i]);
      }
    }
  }
}

template <int R, int V, ScaleForm kForm, typename Source>
void to_words(const Source& source, int64_t row, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  __m512i sums[R][V];
  source.template take<R, V>(row, sums);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto block = word_block_of<kForm>(out.scale, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if constexpr (kForm == ScaleForm::words || kForm == ScaleForm::half_words) {
        sums[r][v] = to_stored(sums[r][v], block);
      } else {
        sums[r][v] = to_integers<kForm == ScaleForm::left>(sums[r][v], block);
      }
    }
  }
  store_words<R, V>(sums, out, columns, to + row * pitch, pitch);
}

// Calls body<rows, vectors>(source, row): rows that a source gives at once are at most kRows.
template <typename Source, typename Body>
CVM_ALWAYS_INLINE void for_rows(const Source& source, int64_t count, bool two, int64_t row, Body body) {
  switch (count) {
    case 1: return two ? body.template operator()<1, 2>(source, row) : body.template operator()<1, 1>(source, row);
    case 2: return two ? body.template operator()<2, 2>(source, row) : body.template operator()<2, 1>(source, row);
    case 3: return two ? body.template operator()<3, 2>(source, row) : body.template operator()<3, 1>(source, row);
    case 4: return two ? body.template operator()<4, 2>(source, row) : body.template operator()<4, 1>(source, row);
    case 5: return two ? body.template operator()<5, 2>(source, row) : body.template operator()<5, 1>(source, row);
    case 6: return two ? body.template operator()<6, 2>(source, row) : body.template operator()<6, 1>(source, row);
    case 7: return two ? body.template operator()<7, 2>(source, row) : body.template operator()<7, 1>(source, row);
    default: return two ? body.template operator()<8, 2>(source, row) : body.template operator()<8, 1>(source, row);
  }
}

// The functions of a table. `Way::for_shares(task, body)` calls body<rows, vectors>(source, first row) until all rows of the task
// are done; source.take<rows, vectors>(first row, vectors) gives their sums.
template <typename Way>
void sums_of(const ProductTask& task, int32_t* out) {
  Way::for_shares(task, [&]<int R, int V>(const auto& source, int64_t row) { sums<R, V>(source, row, out); });
}

template <typename Way>
void bytes_of(const ProductTask& task, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  Way::for_shares(task, [&]<int R, int V>(const auto& source, int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::odd_bytes: return to_bytes<R, V, ScaleForm::odd_bytes>(source, row, out, columns, to, pitch);
      case ScaleForm::half_bytes: return to_bytes<R, V, ScaleForm::half_bytes>(source, row, out, columns, to, pitch);
      case ScaleForm::short_bytes: return to_bytes<R, V, ScaleForm::short_bytes>(source, row, out, columns, to, pitch);
      default: return to_bytes<R, V, ScaleForm::bytes>(source, row, out, columns, to, pitch);
    }
  });
}

template <typename Way, Own kOwn, bool kShort>
void with_shortcut_of(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  Way::for_shares(task, [&]<int R, int V>(const auto& source, int64_t row) {
    residual.shortcut_is_wide ? with_shortcut<R, V, kOwn, true, kShort>(source, row, residual, columns, to, pitch)
                              : with_shortcut<R, V, kOwn, false, kShort>(source, row, residual, columns, to, pitch);
  });
}

template <typename Way>
void residual_of(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  const auto run = [&](auto body) { body(task, residual, columns, to, pitch); };
  if (residual.shifted.data != nullptr) {
    const bool is_short = residual.out.scale.form == ScaleForm::short_bytes;
    return run(is_short ? with_shortcut_of<Way, Own::shifted, true> : with_shortcut_of<Way, Own::shifted, false>);
  }
  run(residual.scale.form == ScaleForm::left ? with_shortcut_of<Way, Own::left, false> : with_shortcut_of<Way, Own::integers, false>);
}

template <typename Way>
void wide_of(const ProductTask& task, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  Way::for_shares(task, [&]<int R, int V>(const auto& source, int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::bytes: return to_wide<R, V, ScaleForm::bytes>(source, row, out, columns, to, pitch);
      case ScaleForm::left: return to_wide<R, V, ScaleForm::left>(source, row, out, columns, to, pitch);
      default: return to_wide<R, V, ScaleForm::integers>(source, row, out, columns, to, pitch);
    }
  });
}

template <typename Way>
void words_of(const ProductTask& task, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  Way::for_shares(task, [&]<int R, int V>(const auto& source, int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::words: return to_words<R, V, ScaleForm::words>(source, row, out, columns, to, pitch);
      case ScaleForm::half_words: return to_words<R, V, ScaleForm::half_words>(source, row, out, columns, to, pitch);
      case ScaleForm::left: return to_words<R, V, ScaleForm::left>(source, row, out, columns, to, pitch);
      default: return to_words<R, V, ScaleForm::integers>(source, row, out, columns, to, pitch);
    }
  });
}

}  // namespace
}  // namespace cvm
