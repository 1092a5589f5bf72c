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
    const int32x4_t bias = integers(task.bias + 4 * q);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][q] = bias;
  }
}

// Rows of 16-bit integers, weights of 8 or 16 bits in pairs of depth.
template <typename Weight>
struct Words {
  static constexpr int kRows = 4;

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
        for (int r = 0; r < R; ++r) x[r] = vreinterpretq_s16_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(from[r] + k)));
        weights = add<0, R, V>(x, weights, sums);
      }
    }
  }
};

// What bytes are held between, after their zero point is added. Saturating to 16 bits before changes no byte.
struct ByteLimits {
  int16x8_t zero_point;
  uint8x16_t low, high;

  static inline ByteLimits of(const ToBytes& out) {
    return {vdupq_n_s16(static_cast<int16_t>(zero_point_of(out.scale))), vdupq_n_u8(static_cast<uint8_t>(out.low)),
            vdupq_n_u8(static_cast<uint8_t>(out.high))};
  }
};

inline int16x8_t narrowed(int32x4_t front, int32x4_t back) { return vqmovn_high_s32(vqmovn_s32(front), back); }

template <int V>
CVM_ALWAYS_INLINE void store_bytes(const int32x4_t (&row)[2 * V], const ByteLimits& limits, int64_t columns, uint8_t* to) {
  const int16x8_t front = vqaddq_s16(narrowed(row[0], row[1]), limits.zero_point);
  const int16x8_t back = V == 1 ? front : vqaddq_s16(narrowed(row[2 * V - 2], row[2 * V - 1]), limits.zero_point);
  const uint8x16_t bytes = vminq_u8(vmaxq_u8(vqmovun_high_s16(vqmovun_s16(front), back), limits.low), limits.high);
  if (V == 2 && columns == 16) return vst1q_u8(to, bytes);
  if (columns == 8) return vst1_u8(to, vget_low_u8(bytes));
  uint8_t spare[16];
  vst1q_u8(spare, bytes);
  for (int64_t i = 0; i < columns; ++i) to[i] = spare[i];
}

template <typename Scale, int R, int V>
CVM_ALWAYS_INLINE void rescale(const ScaleBlocks& blocks, Sums<R, V>& sums) {
#pragma GCC unroll 4
  for (int q = 0; q < 2 * V; ++q) {
    const Scale scale = Scale::of(blocks, q);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][q] = scale(sums[r][q]);
  }
}

template <typename Rows, int R, int V>
void sums(const ProductTask& task, int64_t row, int32_t* out) {
  Sums<R, V> found;
  Rows::template accumulate<R, V>(task, row, found);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int q = 0; q < 2 * V; ++q) vst1q_s32(out + (row + r) * V * kLanes + 4 * q, found[r][q]);
  }
}

template <typename Rows, int R, int V>
void to_bytes(const ProductTask& task, int64_t row, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  Sums<R, V> found;
  Rows::template accumulate<R, V>(task, row, found);
  rescale<HighScale, R, V>(out.scale, found);
  const ByteLimits limits = ByteLimits::of(out);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) store_bytes<V>(found[r], limits, columns, to + (row + r) * pitch);
}

// The shortcut's bytes at these rows, four columns of them, are added; of these, `count` exist.
template <int R, int V>
CVM_ALWAYS_INLINE void add_bytes(const Residual& residual, int q, const uint8_t* from, int64_t count, Sums<R, V>& sums) {
  if (residual.shifted.data != nullptr) {
    const ShiftScale scale = ShiftScale::of(residual.shifted, q);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][q] = scale(sums[r][q], bytes_at(from + r * residual.shortcut_pitch, count));
    return;
  }
  const LongScale own = LongScale::of(residual.scale, q);
  const ByteScale scale = ByteScale::of(residual.shortcut_scale, q);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sums[r][q] = vaddq_s32(own(sums[r][q]), scale(bytes_at(from + r * residual.shortcut_pitch, count)));
}

template <int R, int V>
CVM_ALWAYS_INLINE void add_wide(const Residual& residual, int q, const int32_t* from, int64_t count, Sums<R, V>& sums) {
  const auto add = [&](const auto& own) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][q] = vaddq_s32(own(sums[r][q]), integers_at(from + r * residual.shortcut_pitch, count));
  };
  residual.shifted.data != nullptr ? add(ShiftScale::of(residual.shifted, q)) : add(LongScale::of(residual.scale, q));
}

template <typename Rows, int R, int V>
void with_shortcut(const ProductTask& task, int64_t row, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  Sums<R, V> found;
  Rows::template accumulate<R, V>(task, row, found);
#pragma GCC unroll 4
  for (int q = 0; q < 2 * V; ++q) {
    if (columns <= 4 * q) break;
    const int64_t place = row * residual.shortcut_pitch + 4 * q, count = columns - 4 * q;
    if (residual.shortcut_is_wide) {
      add_wide<R, V>(residual, q, static_cast<const int32_t*>(residual.shortcut) + place, count, found);
    } else {
      add_bytes<R, V>(residual, q, static_cast<const uint8_t*>(residual.shortcut) + place, count, found);
    }
  }
  rescale<HighScale, R, V>(residual.out.scale, found);
  const ByteLimits limits = ByteLimits::of(residual.out);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) store_bytes<V>(found[r], limits, columns, to + (row + r) * pitch);
}

template <typename Rows, int R, int V, typename Scale>
void to_wide(const ProductTask& task, int64_t row, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  Sums<R, V> found;
  Rows::template accumulate<R, V>(task, row, found);
  rescale<Scale, R, V>(out.scale, found);
  const bool bytes = out.scale.form == ScaleForm::bytes;
  const int32x4_t zero_point = vdupq_n_s32(zero_point_of(out.scale)), add = vdupq_n_s32(out.add);
  const int32x4_t low = vdupq_n_s32(out.low), high = vdupq_n_s32(out.high);
#pragma GCC unroll 4
  for (int q = 0; q < 2 * V; ++q) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if (bytes) found[r][q] = vaddq_s32(vminq_s32(vmaxq_s32(vaddq_s32(found[r][q], zero_point), low), high), add);
      store_integers(found[r][q], columns - 4 * q, to + (row + r) * pitch + 4 * q);
    }
  }
}

template <int V>
CVM_ALWAYS_INLINE void store_words(const int32x4_t (&row)[2 * V], const ToWords& out, int64_t columns, int16_t* to) {
  const int16x8_t low = vdupq_n_s16(static_cast<int16_t>(out.low)), high = vdupq_n_s16(static_cast<int16_t>(out.high));
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v, to += kLanes, columns -= kLanes) {
    const int16x8_t words = vminq_s16(vmaxq_s16(narrowed(row[2 * v], row[2 * v + 1]), low), high);
    if (columns >= kLanes) {
      vst1q_s16(to, words);
      continue;
    }
    int16_t spare[kLanes];
    vst1q_s16(spare, words);
    for (int64_t i = 0; i < columns; ++i) to[i] = spare[i];
  }
}

template <typename Rows, int R, int V, typename Scale>
void to_words(const ProductTask& task, int64_t row, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  Sums<R, V> found;
  Rows::template accumulate<R, V>(task, row, found);
  rescale<Scale, R, V>(out.scale, found);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) store_words<V>(found[r], out, columns, to + (row + r) * pitch);
}

template <int kMost, typename Body>
void for_rows(int64_t count, bool two, int64_t row, Body body) {
  if constexpr (kMost > 1) {
    if (count < kMost) return for_rows<kMost - 1>(count, two, row, body);
  }
  two ? body.template operator()<kMost, 2>(row) : body.template operator()<kMost, 1>(row);
}

// Calls body<rows, vectors>(first row) until all rows of the task are done, in shares as even as they can be.
template <typename Rows, typename Body>
void for_size(const ProductTask& task, Body body) {
  int64_t row = 0;
  for (int64_t shares = (task.row_count + Rows::kRows - 1) / Rows::kRows; shares > 0; --shares) {
    const int64_t count = (task.row_count - row + shares - 1) / shares;
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
  for_size<Rows>(task, [&]<int R, int V>(int64_t row) { with_shortcut<Rows, R, V>(task, row, residual, columns, to, pitch); });
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
  int32x4_t found[kSums];
  int8x16_t x = vdupq_n_s8(3);
  for (int i = 0; i < kSums; ++i) found[i] = vdupq_n_s32(i);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) found[i] = multiply(found[i], x);
    asm volatile("" : "+w"(x));  // otherwise the products are computed once for all rounds
  }
  int32x4_t all = found[0];
  for (int i = 1; i < kSums; ++i) all = veorq_s32(all, found[i]);
  volatile int32_t kept = vgetq_lane_s32(all, 0);
  (void)kept;
  return rounds * kSums * products;
}

}  // namespace
}  // namespace cvm
