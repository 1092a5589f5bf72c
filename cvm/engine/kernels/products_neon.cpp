// Products of every AArch64 processor: 16-bit integers by smlal, four in an instruction.
#include "kernels/products_neon.h"
#include "kernels/winograd.h"

namespace cvm {
namespace {

void widen(const uint8_t* from, int64_t count, int16_t* to) {
  for (int64_t i = 0; i < count; i += 8) vst1q_s16(to + i, vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from + i))));
}

// What Winograd's transforms are made of.
struct ShortVectors {
  using Vector = int16x8_t;
  static constexpr int64_t kLanes = 8;
  static Vector all(int16_t x) { return vdupq_n_s16(x); }
  static Vector pixels(const uint8_t* from, int64_t) { return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from))); }
  static void store(Vector x, int64_t, int16_t* to) { vst1q_s16(to, x); }
  static Vector add(Vector x, Vector y) { return vaddq_s16(x, y); }
  static Vector subtract(Vector x, Vector y) { return vsubq_s16(x, y); }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return vshlq_n_s16(x, kBits);
  }
};

// Unsigned, since they wrap.
struct IntegerVectors {
  struct Vector {
    uint32x4_t front, back;
  };
  static constexpr int64_t kLanes = 8;
  static Vector load(const int32_t* from) {
    const Eight x = integers(from);
    return {vreinterpretq_u32_s32(x.front), vreinterpretq_u32_s32(x.back)};
  }
  static void store(Vector x, int64_t left, int32_t* to) { store_integers(signed_of(x), left, to); }
  static Vector add(Vector x, Vector y) { return {vaddq_u32(x.front, y.front), vaddq_u32(x.back, y.back)}; }
  static Vector subtract(Vector x, Vector y) { return {vsubq_u32(x.front, y.front), vsubq_u32(x.back, y.back)}; }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return {vshlq_n_u32(x.front, kBits), vshlq_n_u32(x.back, kBits)};
  }
  static Vector divide_by_576(Vector x) {
    const Eight wide = signed_of({vmulq_n_u32(x.front, kNinth), vmulq_n_u32(x.back, kNinth)});
    return {vreinterpretq_u32_s32(vshrq_n_s32(wide.front, 6)), vreinterpretq_u32_s32(vshrq_n_s32(wide.back, 6))};
  }

 private:
  static Eight signed_of(Vector x) { return {vreinterpretq_s32_u32(x.front), vreinterpretq_s32_u32(x.back)}; }
};

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
  kernels.transform_tile = transform_tile<ShortVectors>;
  kernels.untransform_tiles = untransform_tiles<IntegerVectors>;
  return kernels;
}

}  // namespace

extern const ProductKernels kProductsNeon;
constinit const ProductKernels kProductsNeon = kernels();

}  // namespace cvm
