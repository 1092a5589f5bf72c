// Winograd's transforms of F(4x4, 3x3) in integers, for any vectors. `Ops` has what an instruction set differs in. Included by
// files that are compiled for different processors: nothing here may be shared between them.
#pragma once

#include <stdint.h>

#include "kernels/products.h"

namespace cvm {
namespace {

#if defined(__GNUC__)
#define CVM_TRANSFORM inline __attribute__((always_inline))  // a call would send every vector through memory
#else
#define CVM_TRANSFORM inline
#endif

// The inverse of 9 modulo 2^32. A sum is 576 times what is wanted: 9 by this product, 64 by a shift.
constexpr uint32_t kNinth = 0x38E38E39;

// B'd of one line of a tile. 16-bit integers hold it twice over: its coefficients sum to at most 10, and 255 * 10 * 10 fits.
template <typename Ops, typename Vector = typename Ops::Vector>
CVM_TRANSFORM void transform_six(const Vector (&d)[6], Vector (&out)[6]) {
  const Vector even = Ops::subtract(d[4], Ops::template shift_left<2>(d[2]));
  const Vector odd = Ops::subtract(d[3], Ops::template shift_left<2>(d[1]));
  const Vector outer = Ops::subtract(d[4], d[2]);
  const Vector inner = Ops::template shift_left<1>(Ops::subtract(d[3], d[1]));
  out[0] = Ops::add(Ops::template shift_left<2>(Ops::subtract(d[0], d[2])), outer);  // 4 d0 - 5 d2 + d4
  out[1] = Ops::add(even, odd);                                                      // -4 d1 - 4 d2 + d3 + d4
  out[2] = Ops::subtract(even, odd);                                                 // 4 d1 - 4 d2 - d3 + d4
  out[3] = Ops::add(outer, inner);                                                   // -2 d1 - d2 + 2 d3 + d4
  out[4] = Ops::subtract(outer, inner);                                              // 2 d1 - d2 - 2 d3 + d4
  out[5] = Ops::subtract(Ops::subtract(d[5], d[3]), Ops::template shift_left<1>(inner));  // 4 d1 - 5 d3 + d5
}

// A'm of one line of sums, 24 times, modulo 2^32.
template <typename Ops, typename Vector = typename Ops::Vector>
CVM_TRANSFORM void untransform_six(const Vector (&m)[6], Vector (&out)[4]) {
  const Vector near_sum = Ops::add(m[1], m[2]), near_difference = Ops::subtract(m[1], m[2]);
  const Vector far_sum = Ops::add(m[3], m[4]), far_difference = Ops::subtract(m[3], m[4]);
  out[0] = Ops::add(m[0], Ops::add(near_sum, far_sum));
  out[1] = Ops::add(near_difference, Ops::template shift_left<1>(far_difference));
  out[2] = Ops::add(near_sum, Ops::template shift_left<2>(far_sum));
  const Vector last = Ops::add(Ops::template shift_left<3>(far_difference), Ops::template shift_left<1>(m[5]));
  out[3] = Ops::add(near_difference, last);
}

// ProductKernels::transform_tile. Ops: lanes of 16 bits.
template <typename Ops>
void transform_tile(const uint8_t* const* pixels, int32_t zero_point, int64_t channels, int16_t* to, int64_t stride) {
  using Vector = typename Ops::Vector;
  const Vector zero = Ops::all(static_cast<int16_t>(zero_point));
  for (int64_t c = 0; c < channels; c += Ops::kLanes) {
    Vector columns[6][6];  // [column j of the tile][row i of B'd]
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      Vector d[6];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) d[i] = Ops::subtract(Ops::pixels(pixels[i * 6 + j] + c, channels - c), zero);
      transform_six<Ops>(d, columns[j]);
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      Vector row[6], out[6];
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) row[j] = columns[j][i];
      transform_six<Ops>(row, out);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) Ops::store(out[j], channels - c, to + (i * 6 + j) * stride + c);
    }
  }
}

// ProductKernels::untransform_tiles. Ops: lanes of 32 bits.
template <typename Ops>
void untransform_tiles(const int32_t* sums, int64_t stride, int64_t tiles, const int32_t* bias, int64_t width, int64_t columns,
                       int32_t* out) {
  using Vector = typename Ops::Vector;
  for (int64_t column = 0; column < columns; column += Ops::kLanes) {
    const Vector offset = Ops::load(bias + column);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int32_t* from = sums + tile * width + column;
      Vector lines[4][6];
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) {
        Vector m[6], y[4];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) m[i] = Ops::load(from + (i * 6 + j) * stride);
        untransform_six<Ops>(m, y);
#pragma GCC unroll 4
        for (int line = 0; line < 4; ++line) lines[line][j] = y[line];
      }
#pragma GCC unroll 4
      for (int line = 0; line < 4; ++line) {
        Vector y[4];
        untransform_six<Ops>(lines[line], y);
        int32_t* to = out + (line * tiles + tile) * 4 * columns + column;
#pragma GCC unroll 4
        for (int pixel = 0; pixel < 4; ++pixel) {
          Ops::store(Ops::add(Ops::divide_by_576(y[pixel]), offset), columns - column, to + pixel * columns);
        }
      }
    }
  }
}

#undef CVM_TRANSFORM

}  // namespace
}  // namespace cvm
