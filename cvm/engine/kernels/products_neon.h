// Sums of products and what follows them in registers, for the AArch64 files that include this: each names the kinds of rows
// that its processors multiply best.
#pragma once

#include <string.h>

#include "kernels/products.h"
#include "kernels/scales_neon.h"

namespace cvm {
namespace {

#define CVM_ALWAYS_INLINE inline __attribute__((always_inline))

// Sums of R rows and V blocks of columns: two registers for each.
template <int R, int V>
using Sums = int32x4_t[R][2 * V];

template <int R, int V>
CVM_ALWAYS_INLINE void start(const ProductTask& task, Sums<R, V>& sums) {
#pragma GCC unroll 4
  for (int q = 0; q < 2 * V; ++q) {
    const int32x4_t bias = vld1q_s32(task.bias + 4 * q);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][q] = bias;
  }
}

// Block v of every row becomes body(row, block).
template <int R, int V, typename Body>
CVM_ALWAYS_INLINE void change(int v, Sums<R, V>& sums, Body body) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const Eight block = body(r, Eight{sums[r][2 * v], sums[r][2 * v + 1]});
    sums[r][2 * v] = block.front;
    sums[r][2 * v + 1] = block.back;
  }
}

// Rows of 16-bit integers, weights of 8 or 16 bits in pairs of depth.
template <typename Weight>
struct Words {
  static constexpr int kRows = 4, kGrain = 1;

  // Of 8 columns: the first of each pair, the second of each.
  static inline int16x8x2_t pairs_at(const int16_t* from) { return vld2q_s16(from); }
  static inline int16x8x2_t pairs_at(const int8_t* from) {
    const int8x8x2_t bytes = vld2_s8(from);
    return {{vmovl_s8(bytes.val[0]), vmovl_s8(bytes.val[1])}};
  }

  template <int kPair, int R, int V>
  CVM_ALWAYS_INLINE static const Weight* add(const int16x8_t (&x)[R], const Weight* weights, Sums<R, V>& sums) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v, weights += 2 * kLanes) {
      const int16x8x2_t w = pairs_at(weights);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sums[r][2 * v] = vmlal_laneq_s16(sums[r][2 * v], vget_low_s16(w.val[0]), x[r], 2 * kPair);
        sums[r][2 * v + 1] = vmlal_high_laneq_s16(sums[r][2 * v + 1], w.val[0], x[r], 2 * kPair);
        sums[r][2 * v] = vmlal_laneq_s16(sums[r][2 * v], vget_low_s16(w.val[1]), x[r], 2 * kPair + 1);
        sums[r][2 * v + 1] = vmlal_high_laneq_s16(sums[r][2 * v + 1], w.val[1], x[r], 2 * kPair + 1);
      }
    }
    return weights;
  }

  template <int R, int V>
  CVM_ALWAYS_INLINE static void accumulate(const ProductTask& task, int64_t row, Sums<R, V>& sums) {
    start<R, V>(task, sums);
    const Weight* weights = static_cast<const Weight*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap) {
      const int16_t* from[R];
      for (int r = 0; r < R; ++r) from[r] = static_cast<const int16_t*>(task.rows[tap * kMaxTileRows + row + r]);
      int64_t k = 0;
      for (; k + 8 <= task.depth; k += 8) {
        int16x8_t x[R];
        for (int r = 0; r < R; ++r) x[r] = vld1q_s16(from[r] + k);
        weights = add<0, R, V>(x, weights, sums);
        weights = add<1, R, V>(x, weights, sums);
        weights = add<2, R, V>(x, weights, sums);
        weights = add<3, R, V>(x, weights, sums);
      }
      for (; k < task.depth; k += 2) {
        int16x8_t x[R];
        for (int r = 0; r < R; ++r) x[r] = vreinterpretq_s16_s32(repeated(from[r] + k));
        weights = add<0, R, V>(x, weights, sums);
      }
    }
  }
};

template <typename Scale, int R, int V>
CVM_ALWAYS_INLINE void rescale(const ScaleBlocks& blocks, Sums<R, V>& sums) {
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) change<R, V>(v, sums, [scale = Scale::of(blocks, v)](int, Eight x) { return scale(x); });
}

// Rows of `columns` elements, `pitch` apart: as many as a row has in registers, or fewer.
template <int R, typename T, typename Row>
CVM_ALWAYS_INLINE void store_rows(const Row (&rows)[R], int64_t columns, T* to, int64_t pitch) {
  if (columns == sizeof(Row) / sizeof(T)) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) memcpy(to + r * pitch, &rows[r], sizeof(Row));
    return;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const Row spare = rows[r];  // of which an address is taken, so that the others may stay in registers
    memcpy(to + r * pitch, &spare, static_cast<size_t>(columns) * sizeof(T));
  }
}

// V blocks side by side.
template <typename Block, int V>
struct RowOf {
  Block blocks[V];
};

// Words to bytes. Saturating to 16 bits before the zero point is added changes no byte.
template <int V>
CVM_ALWAYS_INLINE auto bytes_of_words(const int16x8_t (&words)[V], int32_t low, int32_t high) {
  if constexpr (V == 1) {
    return vmin_u8(vmax_u8(vqmovun_s16(words[0]), vdup_n_u8(static_cast<uint8_t>(low))), vdup_n_u8(static_cast<uint8_t>(high)));
  } else {
    const uint8x16_t packed = vqmovun_high_s16(vqmovun_s16(words[0]), words[1]);
    return vminq_u8(vmaxq_u8(packed, vdupq_n_u8(static_cast<uint8_t>(low))), vdupq_n_u8(static_cast<uint8_t>(high)));
  }
}

// Rescaled sums to bytes.
template <int R, int V>
CVM_ALWAYS_INLINE void store_bytes(const Sums<R, V>& sums, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  const int16x8_t zero_point = vdupq_n_s16(static_cast<int16_t>(zero_point_of(out.scale)));
  decltype(bytes_of_words<V>({}, 0, 0)) rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    int16x8_t words[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) words[v] = vqaddq_s16(saturated({sums[r][2 * v], sums[r][2 * v + 1]}), zero_point);
    rows[r] = bytes_of_words<V>(words, out.low, out.high);
  }
  store_rows<R>(rows, columns, to, pitch);
}

template <typename Rows, int R, int V>
void sums(const ProductTask& task, int64_t row, int32_t* out) {
  Sums<R, V> sums;
  Rows::template accumulate<R, V>(task, row, sums);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int q = 0; q < 2 * V; ++q) vst1q_s32(out + (row + r) * V * kLanes + 4 * q, sums[r][q]);
  }
}

template <typename Rows, int R, int V>
void to_bytes(const ProductTask& task, int64_t row, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  Sums<R, V> sums;
  Rows::template accumulate<R, V>(task, row, sums);
  rescale<HighScale, R, V>(out.scale, sums);
  store_bytes<R, V>(sums, out, columns, to + row * pitch, pitch);
}

// Rows of a shortcut, `pitch` elements apart.
template <typename T>
struct ShortcutRows {
  const T* data;
  int64_t pitch;
};

// Rows of 8 V columns are read where they lie. Of shorter rows, which are copied, nothing beyond their end may be read.
template <int R, int V, typename T>
CVM_ALWAYS_INLINE ShortcutRows<T> shortcut_of(const Residual& residual, int64_t row, int64_t columns, T (&spare)[R][V * kLanes]) {
  const T* from = static_cast<const T*>(residual.shortcut) + row * residual.shortcut_pitch;
  if (columns == V * kLanes) return {from, residual.shortcut_pitch};
  memset(spare, 0, sizeof spare);
  for (int r = 0; r < R; ++r) memcpy(spare[r], from + r * residual.shortcut_pitch, static_cast<size_t>(columns) * sizeof(T));
  return {spare[0], V * kLanes};
}

// Sums are rescaled, and the shortcut of stored bytes or integers is added.
template <int R, int V>
CVM_ALWAYS_INLINE void add(const Residual& residual, const ShortcutRows<uint8_t>& rows, int v, Sums<R, V>& sums) {
  const auto bytes = [&](int r) { return words_of_bytes(rows.data + r * rows.pitch + v * kLanes); };
  if (residual.shifted.data != nullptr) {
    change<R, V>(v, sums, [&, scale = ShiftScale::of(residual.shifted, v)](int r, Eight x) { return scale(x, bytes(r)); });
    return;
  }
  const LongScale own = LongScale::of(residual.scale, v);
  change<R, V>(v, sums, [&own](int, Eight x) { return own(x); });
  const ByteScale scale = ByteScale::of(residual.shortcut_scale, v);
  change<R, V>(v, sums, [&](int r, Eight x) { return sum(x, scale(bytes(r))); });
}

template <int R, int V>
CVM_ALWAYS_INLINE void add(const Residual& residual, const ShortcutRows<int32_t>& rows, int v, Sums<R, V>& sums) {
  const auto add_to = [&](const auto& own) {
    change<R, V>(v, sums, [&](int r, Eight x) { return sum(own(x), integers(rows.data + r * rows.pitch + v * kLanes)); });
  };
  residual.shifted.data != nullptr ? add_to(ShiftScale::of(residual.shifted, v)) : add_to(LongScale::of(residual.scale, v));
}

template <typename Rows, int R, int V, typename T>
void with_shortcut(const ProductTask& task, int64_t row, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  T spare[R][V * kLanes];
  const ShortcutRows<T> rows = shortcut_of<R, V>(residual, row, columns, spare);
  Sums<R, V> sums;
  Rows::template accumulate<R, V>(task, row, sums);
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) add<R, V>(residual, rows, v, sums);
  rescale<HighScale, R, V>(residual.out.scale, sums);
  store_bytes<R, V>(sums, residual.out, columns, to + row * pitch, pitch);
}

template <typename Rows, int R, int V, typename Scale>
void to_wide(const ProductTask& task, int64_t row, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  Sums<R, V> sums;
  Rows::template accumulate<R, V>(task, row, sums);
  rescale<Scale, R, V>(out.scale, sums);
  if (out.scale.form == ScaleForm::bytes) {
    const int32x4_t zero_point = vdupq_n_s32(zero_point_of(out.scale)), add = vdupq_n_s32(out.add);
    const int32x4_t low = vdupq_n_s32(out.low), high = vdupq_n_s32(out.high);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      change<R, V>(v, sums, [&](int, Eight x) { return sum(held(sum(x, {zero_point, zero_point}), low, high), {add, add}); });
    }
  }
  RowOf<Eight, V> rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) rows[r].blocks[v] = {sums[r][2 * v], sums[r][2 * v + 1]};
  }
  store_rows<R>(rows, columns, to + row * pitch, pitch);
}

template <typename Rows, int R, int V, typename Scale>
void to_words(const ProductTask& task, int64_t row, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  Sums<R, V> sums;
  Rows::template accumulate<R, V>(task, row, sums);
  rescale<Scale, R, V>(out.scale, sums);
  const int16x8_t low = vdupq_n_s16(static_cast<int16_t>(out.low)), high = vdupq_n_s16(static_cast<int16_t>(out.high));
  RowOf<int16x8_t, V> rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) rows[r].blocks[v] = vminq_s16(vmaxq_s16(saturated({sums[r][2 * v], sums[r][2 * v + 1]}), low), high);
  }
  store_rows<R>(rows, columns, to + row * pitch, pitch);
}

template <int kMost, typename Body>
void for_rows(int64_t count, bool two, int64_t row, Body body) {
  if constexpr (kMost > 1) {
    if (count < kMost) return for_rows<kMost - 1>(count, two, row, body);
  }
  two ? body.template operator()<kMost, 2>(row) : body.template operator()<kMost, 1>(row);
}

// Calls body<rows, vectors>(first row) until all rows of the task are done, in shares as even as they can be of whole grains.
template <typename Rows, typename Body>
void for_size(const ProductTask& task, Body body) {
  int64_t row = 0;
  for (int64_t shares = (task.row_count + Rows::kRows - 1) / Rows::kRows; shares > 0; --shares) {
    const int64_t rest = task.row_count - row, share = (rest + shares - 1) / shares;
    const int64_t grains = (share + Rows::kGrain - 1) / Rows::kGrain * Rows::kGrain, count = grains < rest ? grains : rest;
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
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) { to_bytes<Rows, R, V>(task, row, out, columns, to, pitch); });
}

template <typename Rows>
void residual_of(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    if (residual.shortcut_is_wide) return with_shortcut<Rows, R, V, int32_t>(task, row, residual, columns, to, pitch);
    with_shortcut<Rows, R, V, uint8_t>(task, row, residual, columns, to, pitch);
  });
}

template <typename Rows>
void wide_of(const ProductTask& task, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    if (out.scale.form == ScaleForm::bytes) return to_wide<Rows, R, V, HighScale>(task, row, out, columns, to, pitch);
    to_wide<Rows, R, V, LongScale>(task, row, out, columns, to, pitch);
  });
}

template <typename Rows>
void words_of(const ProductTask& task, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) {
    if (out.scale.form == ScaleForm::words) return to_words<Rows, R, V, HighScale>(task, row, out, columns, to, pitch);
    to_words<Rows, R, V, LongScale>(task, row, out, columns, to, pitch);
  });
}

// Rounds of `multiply`, on as many independent sums as hide its latency; each is `products` multiply-accumulates.
template <typename Multiply>
int64_t peak_of(int64_t rounds, int64_t products, Multiply multiply) {
  constexpr int kSums = 16;
  int32x4_t sums[kSums];
  int8x16_t x = vdupq_n_s8(3);
  for (int i = 0; i < kSums; ++i) sums[i] = vdupq_n_s32(i);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sums[i] = multiply(sums[i], x);
    asm volatile("" : "+w"(x));  // otherwise the products are computed once for all rounds
  }
  int32x4_t mix = sums[0];
  for (int i = 1; i < kSums; ++i) mix = veorq_s32(mix, sums[i]);
  volatile int32_t sink = vgetq_lane_s32(mix, 0);
  (void)sink;
  return rounds * kSums * products;
}

// The table of an instruction set that multiplies 8-bit rows by Rows, of whose elements it takes `step8` at once.
template <typename Rows>
constexpr ProductKernels product_kernels(int64_t step8, int64_t (*peak)(int64_t)) {
  return {
      .lanes = kLanes,
      .rows = Rows::kRows,
      .step8 = step8,
      .step16 = 2,
      .widens = false,
      .sums8 = sums_of<Rows>,
      .sums16 = sums_of<Words<int16_t>>,
      .bytes8 = bytes_of<Rows>,
      .residual8 = residual_of<Rows>,
      .wide8 = wide_of<Rows>,
      .words8 = words_of<Rows>,
      .bytes16 = bytes_of<Words<int16_t>>,
      .words16 = words_of<Words<int16_t>>,
      .widen = nullptr,
      .transform_tile = nullptr,
      .untransform_tiles = nullptr,
      .peak = peak,
  };
}

}  // namespace
}  // namespace cvm
