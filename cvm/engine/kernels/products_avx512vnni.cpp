// Sums of products with AVX-512 VNNI: vpdpbusd adds four products of a byte and a signed byte to 32 bits without
// saturating (vpdpbusds would saturate), vpdpwssd two of 16-bit integers.
#include "kernels/winograd_avx512vnni.h"

namespace cvm {
namespace {

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
// constants of an epilogue through the loop of products before it, and copies registers at every step. It takes a value: gcc keeps
// an array of sums in memory if assembly is given its elements.
inline __m512i settled(__m512i x) {
#if defined(__GNUC__) && !defined(CVM_EMULATE_AVX512)
  asm("" : "+v"(x));
#endif
  return x;
}

// Prefetches the cache line so many bytes behind this one. Panels lie one behind the other, and with few rows the next
// one would come too late; behind the last one nothing is read. The second cache is near enough, and the nearest has no
// room for two panels, rows and what follows. Always inlined: gcc drops calls that it finds to have no effect.
CVM_ALWAYS_INLINE void fetch_panel(const uint8_t* from, int64_t bytes) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(bytes);
  _mm_prefetch(reinterpret_cast<const char*>(place), _MM_HINT_T1);
}

// Adds the products of one run, for rows from kFirst up to kEnd. Four bytes of depth at once, whether they are four 8-bit or two
// 16-bit elements. Loops are unrolled by order: where gcc 12 does it late, it keeps sums as an array and copies two registers for every
// product. AMD's processors copy for nothing, on Intel's the products of a window at a border took twice as long.
template <int kFirst, int kEnd, bool kBytes, int R, int V>
CVM_ALWAYS_INLINE void add_run(const void* const* rows, const uint8_t* weights, int64_t bytes, int64_t panel, __m512i (&sums)[R][V]) {
  const uint8_t* x[R];
#pragma GCC unroll 8
  for (int r = kFirst; r < kEnd; ++r) x[r] = static_cast<const uint8_t*>(rows[r]);
  for (int64_t k = 0; k < bytes; k += 4, weights += V * 64) {
    __m512i w[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) w[v] = load(weights + v * 64);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) fetch_panel(weights + v * 64, panel);
#pragma GCC unroll 8
    for (int r = kFirst; r < kEnd; ++r) {
      const __m512i four = four_bytes_at(x[r] + k);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[r][v] = dot<kBytes>(sums[r][v], four, w[v]);
    }
  }
}

template <int R, int V>
CVM_ALWAYS_INLINE void begin(const ProductTask& task, __m512i (&sums)[R][V]) {
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const __m512i bias = load(task.bias + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = bias;
  }
}

// Which of R neighbouring rows have a run of zeros, one bit for each.
template <int R>
inline unsigned zeros_among(const void* const* rows, const void* zeros) {
  const __mmask8 mask = static_cast<__mmask8>((1u << R) - 1);
  const __m512i address = _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uintptr_t>(zeros)));
  return _mm512_mask_cmpeq_epi64_mask(mask, _mm512_maskz_loadu_epi64(mask, rows), address);
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
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) _mm512_store_si512(out + (r * V + v) * kLanes, sums[r][v]);
  }
}

template <int R, int V, bool kBytes, bool kZeros>
CVM_ALWAYS_INLINE void accumulate(const ProductTask& task, int64_t row, __m512i (&sums)[R][V]) {
  if constexpr (kZeros) {
    alignas(64) int32_t stored_sums[R * V * kLanes];
    accumulate_but_zeros<R, V, kBytes>(task, row, stored_sums);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[r][v] = load(stored_sums + (r * V + v) * kLanes);
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
      for (int r = 0; r < R; ++r) sums[r][v] = settled(sums[r][v]);
    }
  }
}

// Sums of one share of rows, which stay in registers.
template <bool kBytes, bool kZeros>
struct Registers {
  const ProductTask& task;

  template <int R, int V>
  CVM_ALWAYS_INLINE void take(int64_t row, __m512i (&sums)[R][V]) const {
    accumulate<R, V, kBytes, kZeros>(task, row, sums);
  }
};

// Line by line, in shares as even as they can be: a single row left over would cost as much as half a share.
template <bool kBytes>
struct Shares {
  template <typename Body>
  static void for_shares(const ProductTask& task, Body body) {
    const bool two = task.vectors == 2;
    for (int64_t row = 0; row < task.row_count;) {
      const int64_t end = row + (task.row_count - row < task.line ? task.row_count - row : task.line);
      for (int64_t shares = (end - row + kRows - 1) / kRows; shares > 0; --shares) {
        const int64_t count = (end - row + shares - 1) / shares;
        const bool zeros = task.zeros != nullptr && has_zeros(task, row, row + count);
        zeros ? for_rows(Registers<kBytes, true>{task}, count, two, row, body)
              : for_rows(Registers<kBytes, false>{task}, count, two, row, body);
        row += count;
      }
    }
  }
};

using Bytes = Shares<true>;
using Words = Shares<false>;

// Rows of bytes are taken as they are here; matmul still takes wide ones.
void widen(const uint8_t* from, int64_t count, int16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Sixteen independent sums hide the latency of vpdpbusd.
int64_t peak(int64_t rounds) {
  constexpr int kSums = 16;
  __m512i sums[kSums];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_epi32(i + 1);
  const __m512i x = _mm512_set1_epi32(0x01020304), w = _mm512_set1_epi32(0x04030201);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      // In its register: Intel's processors take as long to copy it.
      sums[i] = settled(_mm512_dpbusd_epi32(sums[i], x, w));
    }
  }
  __m512i mix = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) mix = _mm512_xor_si512(mix, sums[i]);
  volatile int32_t sink = _mm512_reduce_or_epi32(mix);
  (void)sink;
  return rounds * kSums * kLanes * 4;
}

}  // namespace

extern const ProductKernels kProductsAvx512vnni;
const ProductKernels kProductsAvx512vnni = {
    kLanes, kRows, 4, 2, false, sums_of<Bytes>, sums_of<Words>, bytes_of<Bytes>, residual_of<Bytes>, wide_of<Bytes>, words_of<Bytes>,
    bytes_of<Words>, words_of<Words>, widen, transform_tile<ShortVectors>, untransform_tiles<IntegerVectors>, peak, false, nullptr, false, true, nullptr, nullptr, true, true};

}  // namespace cvm
