// Products of AArch64 processors with the dot product (FEAT_DotProd).
#include "kernels/products_dotprod.h"

namespace cvm {

namespace {

int64_t peak(int64_t rounds) {
  return peak_of(rounds, 16, [](int32x4_t sums, int8x16_t x) { return vdotq_s32(sums, x, x); });
}

constexpr ProductKernels kernels() {
  ProductKernels kernels = product_kernels<Dots>(4, peak);
  kernels.less_128 = true;
  return kernels;
}

}  // namespace

extern const ProductKernels kProductsDotprod;
constinit const ProductKernels kProductsDotprod = kernels();

}  // namespace cvm
