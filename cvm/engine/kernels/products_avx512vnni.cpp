// Sums of products with AVX-512 VNNI: vpdpbusd adds four products of a byte and a signed byte to 32 bits without
// saturating (vpdpbusds would saturate), vpdpwssd two of 16-bit integers.
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

__m512i four_bytes_at(const uint8_t* from) {
  int32_t four;
  memcpy(&four, from, 4);
  return _mm512_set1_epi32(four);
}

template <bool kBytes>
inline __m512i dot(__m512i sum, __m512i x, __m512i w) {
  if constexpr (kBytes) {
    return _mm512_dpbusd_epi32(sum, x, w);
  } else {
    return _mm512_dpwssd_epi32(sum, x, w);
  }
}

// Makes the compiler finish a vector here, so that it allocates registers for what follows afresh: without it, gcc carries the
// constants of an epilogue through the loop of products before it, and copies registers at every step.
inline void settle([[maybe_unused]] __m512i& x) {
#if defined(__GNUC__) && !defined(CVM_EMULATE_AVX512)
  asm("" : "+v"(x));
#endif
}

// Asks for the line of the cache so many bytes behind this one. Panels lie one behind the other, and with few rows the next
// one would come too late; behind the last one nothing is read. The second cache is near enough, and the nearest has no room for
// two panels, rows and what follows. Always inlined: gcc leaves calls away of what it finds to have no effect.
CVM_ALWAYS_INLINE void fetch_panel(const uint8_t* from, int64_t bytes) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(bytes);
  _mm_prefetch(reinterpret_cast<const char*>(place), _MM_HINT_T1);
}

// Asks for the rows of int32 that will be read or written behind the products, which take long enough for any cache to answer.
template <int R, int V>
inline void fetch_rows(const int32_t* from, int64_t pitch) {
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm_prefetch(reinterpret_cast<const char*>(from + r * pitch + v * kLanes), _MM_HINT_T0);
  }
}

// Adds the products of one run, for rows from kFirst up to kEnd. Four bytes of depth at once, whether they are four 8-bit or two
// 16-bit elements.
template <int kFirst, int kEnd, bool kBytes, int R, int V>
CVM_ALWAYS_INLINE void add_run(const void* const* rows, const uint8_t* weights, int64_t bytes, int64_t panel, __m512i (&sums)[R][V]) {
  const uint8_t* x[R];
  for (int r = kFirst; r < kEnd; ++r) x[r] = static_cast<const uint8_t*>(rows[r]);
  for (int64_t k = 0; k < bytes; k += 4, weights += V * 64) {
    __m512i w[V];
    for (int v = 0; v < V; ++v) w[v] = load(weights + v * 64);
    for (int v = 0; v < V; ++v) fetch_panel(weights + v * 64, panel);
    for (int r = kFirst; r < kEnd; ++r) {
      const __m512i four = four_bytes_at(x[r] + k);
      for (int v = 0; v < V; ++v) sums[r][v] = dot<kBytes>(sums[r][v], four, w[v]);
    }
  }
}

template <int R, int V>
inline void begin(const ProductTask& task, __m512i (&sums)[R][V]) {
  for (int v = 0; v < V; ++v) {
    const __m512i bias = load(task.bias + v * kLanes);
    for (int r = 0; r < R; ++r) sums[r][v] = bias;
  }
}

// Which of R neighbouring rows have a run of zeros, one bit for each.
template <int R>
inline unsigned zeros_among(const void* const* rows, const void* zeros) {
  const __mmask8 all = static_cast<__mmask8>((1u << R) - 1);
  const __m512i sought = _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uintptr_t>(zeros)));
  return _mm512_mask_cmpeq_epi64_mask(all, _mm512_maskz_loadu_epi64(all, rows), sought);
}

// Whether any of the rows from `row` up to `end` has a run of zeros, if such runs begin or end the rows.
inline bool has_zeros(const ProductTask& task, int64_t row, int64_t end) {
  for (int64_t tap = 0; tap < task.taps; ++tap) {
    const void* const* rows = task.rows + tap * kMaxTileRows;
    if (rows[row] == task.zeros || rows[end - 1] == task.zeros) return true;
  }
  return false;
}

// The sums of rows some of whose runs are zeros: at the borders of an image they begin or end a line, or are a whole one.
// A function of its own, since kernels with one loop of products are better compiled.
template <int R, int V, bool kBytes>
CVM_NEVER_INLINE void accumulate_but_zeros(const ProductTask& task, int64_t row, int32_t* out) {
  __m512i sums[R][V];
  begin(task, sums);
  const int64_t bytes = kBytes ? task.depth : 2 * task.depth;
  const int64_t run = bytes * V * kLanes, panel = task.taps * run;
  const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
  for (int64_t tap = 0; tap < task.taps; ++tap, weights += run) {
    const void* const* rows = task.rows + tap * kMaxTileRows + row;
    const unsigned zeros = zeros_among<R>(rows, task.zeros);
    if (zeros == (1u << R) - 1) continue;
    if ((zeros & 1) != 0) {
      add_run<1 % R, R, kBytes>(rows, weights, bytes, panel, sums);
    } else if (zeros >> (R - 1) != 0) {
      add_run<0, R - 1, kBytes>(rows, weights, bytes, panel, sums);
    } else {
      add_run<0, R, kBytes>(rows, weights, bytes, panel, sums);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm512_store_si512(out + (r * V + v) * kLanes, sums[r][v]);
  }
}

template <int R, int V, bool kBytes, bool kZeros>
CVM_ALWAYS_INLINE void accumulate(const ProductTask& task, int64_t row, __m512i (&sums)[R][V]) {
  if constexpr (kZeros) {
    alignas(64) int32_t found[R * V * kLanes];
    accumulate_but_zeros<R, V, kBytes>(task, row, found);
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sums[r][v] = load(found + (r * V + v) * kLanes);
    }
  } else {
    begin(task, sums);
    const int64_t bytes = kBytes ? task.depth : 2 * task.depth;
    const int64_t run = bytes * V * kLanes, panel = task.taps * run;
    const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap, weights += run) {
      add_run<0, R, kBytes>(task.rows + tap * kMaxTileRows + row, weights, bytes, panel, sums);
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) settle(sums[r][v]);
    }
  }
}

template <int R, int V, bool kZeros, bool kBytes>
void sums(const ProductTask& task, int64_t row, int32_t* out) {
  __m512i found[R][V];
  accumulate<R, V, kBytes, kZeros>(task, row, found);
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm512_storeu_si512(out + ((row + r) * V + v) * kLanes, found[r][v]);
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
      const __m128i parts[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                                _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (r + i >= R) continue;
        if (n.whole) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (r + i) * pitch), parts[i]);
        } else {
          _mm_mask_storeu_epi8(to + (r + i) * pitch, static_cast<__mmask16>(n.mask), parts[i]);
        }
      }
    }
  }
}

template <int R, int V, bool kZeros, bool kBytes, bool kShort>
void to_bytes(const ProductTask& task, int64_t row, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  __m512i found[R][V];
  accumulate<R, V, kBytes, kZeros>(task, row, found);
  const Narrow narrow = narrow_of(out.low, out.high, columns, V);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto block = byte_block_of<kShort>(out.scale, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) found[r][v] = to_stored(found[r][v], block);
  }
  store_rows<R, V>(found, narrow, to + row * pitch, pitch);
}

inline __m512i wide_at(const void* from, int64_t place, __mmask16 mask) {
  return _mm512_maskz_loadu_epi32(mask, static_cast<const int32_t*>(from) + place);
}

template <int R, int V, bool kZeros, Own kOwn, bool kWide, bool kShort>
void with_shortcut(const ProductTask& task, int64_t row, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  __m512i found[R][V];
  if constexpr (kWide) fetch_rows<R, V>(static_cast<const int32_t*>(residual.shortcut) + row * residual.shortcut_pitch, residual.shortcut_pitch);
  accumulate<R, V, true, kZeros>(task, row, found);
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
          found[r][v] = _mm512_add_epi32(shifted(found[r][v], shifts), wide_at(residual.shortcut, place, mask));
        } else {
          found[r][v] = shifted_sum(found[r][v], bytes_at(bytes, mask), shifts);
        }
      } else {
        const __m512i mine = to_integers<kOwn == Own::left>(found[r][v], own);
        if constexpr (kWide) {
          found[r][v] = _mm512_add_epi32(mine, wide_at(residual.shortcut, place, mask));
        } else {
          found[r][v] = _mm512_add_epi32(mine, shortcut_bytes(bytes, factors, mask));
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const auto last = byte_block_of<kShort>(out.scale, v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) found[r][v] = to_stored(found[r][v], last);
  }
  store_rows<R, V>(found, narrow, to + row * pitch, pitch);
}

template <int R, int V, bool kZeros, ScaleForm kForm>
void to_wide(const ProductTask& task, int64_t row, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  __m512i found[R][V];
  fetch_rows<R, V>(to + row * pitch, pitch);
  accumulate<R, V, true, kZeros>(task, row, found);
  const __m512i low = _mm512_set1_epi32(out.low), high = _mm512_set1_epi32(out.high), add = _mm512_set1_epi32(out.add);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const Block block = block_of(out.scale, v);
    const __mmask16 mask = mask_of(columns - v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512i x;
      if constexpr (kForm == ScaleForm::bytes) {
        x = _mm512_add_epi32(_mm512_min_epi32(_mm512_max_epi32(to_stored(found[r][v], block), low), high), add);
      } else {
        x = to_integers<kForm == ScaleForm::left>(found[r][v], block);
      }
      _mm512_mask_storeu_epi32(to + (row + r) * pitch + v * kLanes, mask, x);
    }
  }
}

// Clamped after saturating: packed to 16 bits, which takes half the instructions of 32.
template <int R, int V, bool kZeros, bool kBytes, ScaleForm kForm>
void to_words(const ProductTask& task, int64_t row, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  __m512i found[R][V];
  accumulate<R, V, kBytes, kZeros>(task, row, found);
  const __m256i low = _mm256_set1_epi16(static_cast<int16_t>(out.low)), high = _mm256_set1_epi16(static_cast<int16_t>(out.high));
  const bool clamps = out.low != INT16_MIN || out.high != INT16_MAX;
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const Block block = block_of(out.scale, v);
    const __mmask16 mask = mask_of(columns - v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512i x;
      if constexpr (kForm == ScaleForm::words) {
        x = to_stored(found[r][v], block);
      } else {
        x = to_integers<kForm == ScaleForm::left>(found[r][v], block);
      }
      __m256i words = _mm512_cvtsepi32_epi16(x);
      if (clamps) words = _mm256_min_epi16(_mm256_max_epi16(words, low), high);
      _mm256_mask_storeu_epi16(to + (row + r) * pitch + v * kLanes, mask, words);
    }
  }
}

template <bool kZeros, typename Body>
void for_rows(int64_t count, bool two, int64_t row, Body body) {
  switch (count) {
    case 1: return two ? body.template operator()<1, 2, kZeros>(row) : body.template operator()<1, 1, kZeros>(row);
    case 2: return two ? body.template operator()<2, 2, kZeros>(row) : body.template operator()<2, 1, kZeros>(row);
    case 3: return two ? body.template operator()<3, 2, kZeros>(row) : body.template operator()<3, 1, kZeros>(row);
    case 4: return two ? body.template operator()<4, 2, kZeros>(row) : body.template operator()<4, 1, kZeros>(row);
    case 5: return two ? body.template operator()<5, 2, kZeros>(row) : body.template operator()<5, 1, kZeros>(row);
    case 6: return two ? body.template operator()<6, 2, kZeros>(row) : body.template operator()<6, 1, kZeros>(row);
    case 7: return two ? body.template operator()<7, 2, kZeros>(row) : body.template operator()<7, 1, kZeros>(row);
    default: return two ? body.template operator()<8, 2, kZeros>(row) : body.template operator()<8, 1, kZeros>(row);
  }
}

// Calls body<rows, vectors, whether runs may be zeros>(first row) until all rows of the task are done, line by line, in shares as even as they can be: a
// single row left over would cost as much as half a share.
template <typename Body>
void for_size(const ProductTask& task, Body body) {
  const bool two = task.vectors == 2;
  for (int64_t row = 0; row < task.row_count;) {
    const int64_t end = row + (task.row_count - row < task.line ? task.row_count - row : task.line);
    for (int64_t shares = (end - row + kRows - 1) / kRows; shares > 0; --shares) {
      const int64_t count = (end - row + shares - 1) / shares;
      const bool zeros = task.zeros != nullptr && has_zeros(task, row, row + count);
      zeros ? for_rows<true>(count, two, row, body) : for_rows<false>(count, two, row, body);
      row += count;
    }
  }
}

void sums8(const ProductTask& task, int32_t* out) {
  for_size(task, [&]<int R, int V, bool kZeros>(int64_t row) { sums<R, V, kZeros, true>(task, row, out); });
}

void sums16(const ProductTask& task, int32_t* out) {
  for_size(task, [&]<int R, int V, bool kZeros>(int64_t row) { sums<R, V, kZeros, false>(task, row, out); });
}

template <bool kBytes>
void bytes_of(const ProductTask& task, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size(task, [&]<int R, int V, bool kZeros>(int64_t row) {
    out.scale.form == ScaleForm::short_bytes ? to_bytes<R, V, kZeros, kBytes, true>(task, row, out, columns, to, pitch)
                                             : to_bytes<R, V, kZeros, kBytes, false>(task, row, out, columns, to, pitch);
  });
}

template <Own kOwn, bool kShort>
void residual_of(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size(task, [&]<int R, int V, bool kZeros>(int64_t row) {
    residual.shortcut_is_wide ? with_shortcut<R, V, kZeros, kOwn, true, kShort>(task, row, residual, columns, to, pitch)
                              : with_shortcut<R, V, kZeros, kOwn, false, kShort>(task, row, residual, columns, to, pitch);
  });
}

void residual8(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  const auto run = [&](auto body) { body(task, residual, columns, to, pitch); };
  if (residual.shifted.data != nullptr) {
    const bool is_short = residual.out.scale.form == ScaleForm::short_bytes;
    return run(is_short ? residual_of<Own::shifted, true> : residual_of<Own::shifted, false>);
  }
  run(residual.scale.form == ScaleForm::left ? residual_of<Own::left, false> : residual_of<Own::integers, false>);
}

void wide8(const ProductTask& task, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  for_size(task, [&]<int R, int V, bool kZeros>(int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::bytes: return to_wide<R, V, kZeros, ScaleForm::bytes>(task, row, out, columns, to, pitch);
      case ScaleForm::left: return to_wide<R, V, kZeros, ScaleForm::left>(task, row, out, columns, to, pitch);
      default: return to_wide<R, V, kZeros, ScaleForm::integers>(task, row, out, columns, to, pitch);
    }
  });
}

template <bool kBytes>
void words_of(const ProductTask& task, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  for_size(task, [&]<int R, int V, bool kZeros>(int64_t row) {
    switch (out.scale.form) {
      case ScaleForm::words: return to_words<R, V, kZeros, kBytes, ScaleForm::words>(task, row, out, columns, to, pitch);
      case ScaleForm::left: return to_words<R, V, kZeros, kBytes, ScaleForm::left>(task, row, out, columns, to, pitch);
      default: return to_words<R, V, kZeros, kBytes, ScaleForm::integers>(task, row, out, columns, to, pitch);
    }
  });
}

// Rows of bytes are taken as they are here; matmul still wants wide ones.
void widen(const uint8_t* from, int64_t count, int16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Sixteen independent sums hide the latency of vpdpbusd.
int64_t peak(int64_t rounds) {
  constexpr int kSums = 16;
  __m512i found[kSums];
  for (int i = 0; i < kSums; ++i) found[i] = _mm512_set1_epi32(i + 1);
  const __m512i x = _mm512_set1_epi32(0x01020304), w = _mm512_set1_epi32(0x04030201);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kSums; ++i) found[i] = _mm512_dpbusd_epi32(found[i], x, w);
  }
  __m512i all = found[0];
  for (int i = 1; i < kSums; ++i) all = _mm512_xor_si512(all, found[i]);
  volatile int32_t kept = _mm512_reduce_or_epi32(all);
  (void)kept;
  return rounds * kSums * kLanes * 4;
}

}  // namespace

extern const ProductKernels kProductsAvx512vnni;
const ProductKernels kProductsAvx512vnni = {
    kLanes,    kRows, 4,              2,               false,           sums8,   sums16,  bytes_of<true>,
    residual8, wide8, words_of<true>, bytes_of<false>, words_of<false>, widen,   nullptr, nullptr,
    peak,      false, nullptr,        false,           true};

}  // namespace cvm
