// Sums of products with AVX-512 VNNI: vpdpbusd adds four products of a byte and a signed byte to 32 bits without
// saturating (vpdpbusds would saturate), vpdpwssd two of 16-bit integers.
#include <string.h>

#include "kernels/avx512.h"
#include "kernels/products.h"

namespace cvm {
namespace {

constexpr int kLanes = 16;
constexpr int kRows = 8;  // 8 x 2 sums; more spill in compilers that matter

__m512i load(const void* from) { return _mm512_loadu_si512(from); }

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

// Four bytes of depth at once, whether they are four 8-bit or two 16-bit elements.
template <int R, int V, bool kBytes>
inline void accumulate(const ProductTask& task, int64_t row, __m512i (&sums)[R][V]) {
  for (int v = 0; v < V; ++v) {
    const __m512i bias = load(task.bias + v * kLanes);
    for (int r = 0; r < R; ++r) sums[r][v] = bias;
  }
  const int64_t bytes = kBytes ? task.depth : 2 * task.depth;
  const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
  for (int64_t tap = 0; tap < task.taps; ++tap) {
    const uint8_t* x[R];
    for (int r = 0; r < R; ++r) x[r] = static_cast<const uint8_t*>(task.rows[tap * kMaxTileRows + row + r]);
    for (int64_t k = 0; k < bytes; k += 4) {
      __m512i w[V];
      for (int v = 0; v < V; ++v) w[v] = load(weights + v * 64);
      weights += V * 64;
      for (int r = 0; r < R; ++r) {
        const __m512i four = four_bytes_at(x[r] + k);
        for (int v = 0; v < V; ++v) sums[r][v] = dot<kBytes>(sums[r][v], four, w[v]);
      }
    }
  }
}

// What a block of ScaleBlocks holds for 16 channels, in registers: it serves every row of a tile.
struct Block {
  __m512i multiplier, multiplier_odd, last, half_even, half_odd, shift_even, shift_odd;
};

inline Block block_of(const ScaleBlocks& scale, int64_t number) {
  const uint8_t* data = scale.data + number * scale.stride;
  const __m512i multiplier = load(data);
  return {multiplier,       _mm512_srli_epi64(multiplier, 32), load(data + 64),  load(data + 128),
          load(data + 192), load(data + 256),                  load(data + 320)};
}

// Products of even and odd channels plus their halves.
struct Halves {
  __m512i even, odd;
};

inline Halves multiplied(__m512i x, const Block& block) {
  const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(x, 32), block.multiplier_odd);
  return {_mm512_add_epi64(_mm512_mul_epi32(x, block.multiplier), block.half_even), _mm512_add_epi64(odd, block.half_odd)};
}

// The high halves of both, each in its own channel's place: odd ones stand there, even ones move down.
inline __m512i high_halves(const Halves& found) {
  return _mm512_mask_shuffle_epi32(found.odd, 0x5555, found.even, _MM_PERM_DDBB);
}

inline __m512i to_stored(__m512i x, const Block& block) {
  return _mm512_srav_epi32(high_halves(multiplied(x, block)), block.last);
}

template <bool kLeft>
inline __m512i to_integers(__m512i x, const Block& block) {
  Halves found = multiplied(x, block);
  if constexpr (kLeft) {
    found.even = _mm512_sllv_epi64(found.even, block.shift_even);
    found.odd = _mm512_sllv_epi64(found.odd, block.shift_odd);
    return high_halves(found);
  } else {
    found.even = _mm512_srlv_epi64(found.even, block.shift_even);
    found.odd = _mm512_slli_epi64(_mm512_srlv_epi64(found.odd, block.shift_odd), 32);
    return _mm512_add_epi32(_mm512_mask_blend_epi32(0xAAAA, found.even, found.odd), block.last);
  }
}

inline __mmask16 mask_of(int64_t columns) {
  return columns >= kLanes ? 0xFFFF : static_cast<__mmask16>((1u << columns) - 1);
}

// Narrowed in a register first: narrowing into memory is microcoded on some processors.
inline void store_bytes(__m512i x, __m512i low, __m512i high, __mmask16 mask, uint8_t* to) {
  const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_min_epi32(_mm512_max_epi32(x, low), high));
  if (mask == 0xFFFF) {  // nearly always, and a masked store of bytes may cost more
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  } else {
    _mm_mask_storeu_epi8(to, mask, bytes);
  }
}

template <int R, int V, bool kBytes>
void sums(const ProductTask& task, int64_t row, int32_t* out) {
  __m512i found[R][V];
  accumulate<R, V, kBytes>(task, row, found);
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm512_storeu_si512(out + ((row + r) * V + v) * kLanes, found[r][v]);
  }
}

template <int R, int V>
void to_bytes(const ProductTask& task, int64_t row, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  __m512i found[R][V];
  accumulate<R, V, true>(task, row, found);
  const __m512i low = _mm512_set1_epi32(out.low), high = _mm512_set1_epi32(out.high);
  for (int v = 0; v < V; ++v) {
    const Block block = block_of(out.scale, v);
    const __mmask16 mask = mask_of(columns - v * kLanes);
    for (int r = 0; r < R; ++r) {
      store_bytes(to_stored(found[r][v], block), low, high, mask, to + (row + r) * pitch + v * kLanes);
    }
  }
}

// A ByteScale in registers. Bytes in 32 bits are pairs of 16 with a zero, so that vpdpwssd is a plain product and a sum.
struct ByteFactors {
  __m512i low, high, low_add, high_add;
  __m128i shift;
};

inline ByteFactors factors_of(const ByteScale& scale) {
  return {_mm512_set1_epi32(scale.low & 0xFFFF), _mm512_set1_epi32(scale.high), _mm512_set1_epi32(scale.low_add),
          _mm512_set1_epi32(scale.high_add), _mm_cvtsi32_si128(scale.shift)};
}

inline __m512i shortcut_at(const Residual& residual, const ByteFactors& factors, int64_t place, __mmask16 mask) {
  if (residual.shortcut_is_wide) {
    return _mm512_maskz_loadu_epi32(mask, static_cast<const int32_t*>(residual.shortcut) + place);
  }
  const uint8_t* from = static_cast<const uint8_t*>(residual.shortcut) + place;
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from));
  const __m512i low = _mm512_srai_epi32(_mm512_dpwssd_epi32(factors.low_add, bytes, factors.low), 16);
  const __m512i high = _mm512_dpwssd_epi32(factors.high_add, bytes, factors.high);
  return _mm512_sra_epi32(_mm512_add_epi32(high, low), factors.shift);
}

template <int R, int V, bool kLeft>
void with_shortcut(const ProductTask& task, int64_t row, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  __m512i found[R][V];
  accumulate<R, V, true>(task, row, found);
  const ToBytes& out = residual.out;
  const __m512i low = _mm512_set1_epi32(out.low), high = _mm512_set1_epi32(out.high);
  const Block last = block_of(out.scale, 0);
  const ByteFactors factors = factors_of(residual.shortcut_scale);
  for (int v = 0; v < V; ++v) {
    const Block own = block_of(residual.scale, v);
    const __mmask16 mask = mask_of(columns - v * kLanes);
    for (int r = 0; r < R; ++r) {
      const int64_t place = (row + r) * residual.shortcut_pitch + v * kLanes;
      const __m512i sum = _mm512_add_epi32(to_integers<kLeft>(found[r][v], own), shortcut_at(residual, factors, place, mask));
      store_bytes(to_stored(sum, last), low, high, mask, to + (row + r) * pitch + v * kLanes);
    }
  }
}

template <typename Body>
void for_rows(int64_t count, bool two, int64_t row, Body body) {
  switch (count) {
    case 1: return two ? body.template operator()<1, 2>(row) : body.template operator()<1, 1>(row);
    case 2: return two ? body.template operator()<2, 2>(row) : body.template operator()<2, 1>(row);
    case 3: return two ? body.template operator()<3, 2>(row) : body.template operator()<3, 1>(row);
    case 4: return two ? body.template operator()<4, 2>(row) : body.template operator()<4, 1>(row);
    case 5: return two ? body.template operator()<5, 2>(row) : body.template operator()<5, 1>(row);
    case 6: return two ? body.template operator()<6, 2>(row) : body.template operator()<6, 1>(row);
    case 7: return two ? body.template operator()<7, 2>(row) : body.template operator()<7, 1>(row);
    default: return two ? body.template operator()<8, 2>(row) : body.template operator()<8, 1>(row);
  }
}

// Calls body<rows, vectors>(first row) until all rows of the task are done, in shares as even as they can be: a single row
// left over would cost as much as half a share.
template <typename Body>
void for_size(const ProductTask& task, Body body) {
  int64_t row = 0;
  for (int64_t shares = (task.row_count + kRows - 1) / kRows; shares > 0; --shares) {
    const int64_t count = (task.row_count - row + shares - 1) / shares;
    for_rows(count, task.vectors == 2, row, body);
    row += count;
  }
}

void sums8(const ProductTask& task, int32_t* out) {
  for_size(task, [&]<int R, int V>(int64_t row) { sums<R, V, true>(task, row, out); });
}

void sums16(const ProductTask& task, int32_t* out) {
  for_size(task, [&]<int R, int V>(int64_t row) { sums<R, V, false>(task, row, out); });
}

void bytes8(const ProductTask& task, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size(task, [&]<int R, int V>(int64_t row) { to_bytes<R, V>(task, row, out, columns, to, pitch); });
}

void residual8(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size(task, [&]<int R, int V>(int64_t row) {
    residual.scale.left ? with_shortcut<R, V, true>(task, row, residual, columns, to, pitch)
                        : with_shortcut<R, V, false>(task, row, residual, columns, to, pitch);
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
const ProductKernels kProductsAvx512vnni = {kLanes, kRows, 4, 2, false, sums8, sums16, bytes8, residual8, widen,
                                             nullptr, nullptr, peak};

}  // namespace cvm
