// Products of every AArch64 processor: 16-bit integers by smlal, four in an instruction.
#include "kernels/products_neon.h"

namespace cvm {
namespace {

void widen(const uint8_t* from, int64_t count, int16_t* to) {
  for (int64_t i = 0; i < count; i += 8) vst1q_s16(to + i, vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from + i))));
}

// One column or row of B': [a - c, b + c, c - b, b - d].
inline void apply_b(const int16x8_t (&d)[4], int16x8_t (&out)[4]) {
  out[0] = vsubq_s16(d[0], d[2]);
  out[1] = vaddq_s16(d[1], d[2]);
  out[2] = vsubq_s16(d[2], d[1]);
  out[3] = vsubq_s16(d[1], d[3]);
}

void transform_tile(const uint8_t* const* pixels, int32_t zero_point, int64_t channels, int16_t* to, int64_t stride) {
  const uint8x8_t zero = vdup_n_u8(static_cast<uint8_t>(zero_point));
  for (int64_t c = 0; c < channels; c += 8) {
    int16x8_t rows[4][4];  // [column j of the tile][row i of B' d]
    for (int j = 0; j < 4; ++j) {
      int16x8_t d[4];
      for (int i = 0; i < 4; ++i) d[i] = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(pixels[i * 4 + j] + c), zero));
      apply_b(d, rows[j]);
    }
    for (int i = 0; i < 4; ++i) {
      const int16x8_t r[4] = {rows[0][i], rows[1][i], rows[2][i], rows[3][i]};
      int16x8_t out[4];
      apply_b(r, out);
      for (int j = 0; j < 4; ++j) vst1q_s16(to + (i * 4 + j) * stride + c, out[j]);
    }
  }
}

inline int32x4_t difference(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_u32(vsubq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}
inline Eight difference(Eight a, Eight b) { return {difference(a.front, b.front), difference(a.back, b.back)}; }

// One line of a tile of sums, at one of its columns.
inline Eight line_of(const int32_t* tile, int64_t stride, int64_t line, int64_t column) {
  const auto at = [&](int64_t row) { return integers(tile + (row * 4 + column) * stride); };
  return line == 0 ? sum(at(0), sum(at(1), at(2))) : difference(difference(at(1), at(2)), at(3));
}

inline Eight quartered(Eight four, Eight offset) { return {vsraq_n_s32(offset.front, four.front, 2), vsraq_n_s32(offset.back, four.back, 2)}; }

void untransform_line(const int32_t* sums, int64_t stride, int64_t line, int64_t pixels, const int32_t* bias, int64_t width,
                      int64_t columns, int32_t* out) {
  for (int64_t pixel = 0; pixel < pixels; pixel += 2) {
    for (int64_t column = 0; column < columns; column += kLanes) {
      Eight m[4];
      for (int j = 0; j < 4; ++j) m[j] = line_of(sums + pixel / 2 * width + column, stride, line, j);
      const Eight offset = integers(bias + column), even = sum(m[0], sum(m[1], m[2]));
      int32_t* to = out + pixel * columns + column;
      store_integers(quartered(even, offset), columns - column, to);
      if (pixel + 1 == pixels) continue;
      store_integers(quartered(difference(difference(m[1], m[2]), m[3]), offset), columns - column, to + columns);
    }
  }
}

int64_t peak(int64_t rounds) {
  return peak_of(rounds, 4, [](int32x4_t sums, int8x16_t x) {
    const int16x4_t words = vget_low_s16(vreinterpretq_s16_s8(x));
    return vmlal_s16(sums, words, words);
  });
}

constexpr ProductKernels kernels() {
  ProductKernels kernels = product_kernels<Words<int8_t>>(2, peak);
  kernels.widens = true;
  kernels.widen = widen;
  kernels.transform_tile = transform_tile;
  kernels.untransform_line = untransform_line;
  return kernels;
}

}  // namespace

extern const ProductKernels kProductsNeon;
constinit const ProductKernels kProductsNeon = kernels();

}  // namespace cvm
