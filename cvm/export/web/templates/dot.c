#include <wasm_simd128.h>

/* The sum of (x + above) * w. A lane sums a subset of the products, and the proof holds each subset inside 32 bits. */
static inline v128_t products(const int8_t *x, const int8_t *w, v128_t above)
{
  return wasm_i32x4_dot_i16x8(wasm_i16x8_add(wasm_i16x8_load8x8(x), above), wasm_i16x8_load8x8(w));
}

static inline int32_t dot(const int8_t *x, const int8_t *w, int32_t above, int32_t count)
{
  const v128_t shift = wasm_i16x8_splat((int16_t)above);
  v128_t sums = wasm_i32x4_splat(0), more = wasm_i32x4_splat(0);
  int32_t c = 0, sum = 0;
  for (; c + 16 <= count; c += 16) {
    sums = wasm_i32x4_add(sums, products(x + c, w + c, shift));
    more = wasm_i32x4_add(more, products(x + c + 8, w + c + 8, shift));
  }
  if (c + 8 <= count) {
    sums = wasm_i32x4_add(sums, products(x + c, w + c, shift));
    c += 8;
  }
  sums = wasm_i32x4_add(sums, more);
  for (; c < count; c++) sum += (x[c] + above) * w[c];
  sum += wasm_i32x4_extract_lane(sums, 0) + wasm_i32x4_extract_lane(sums, 1);
  return sum + wasm_i32x4_extract_lane(sums, 2) + wasm_i32x4_extract_lane(sums, 3);
}
