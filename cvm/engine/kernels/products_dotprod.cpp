// Products of AArch64 processors with the dot product (FEAT_DotProd).
#include "kernels/products_dotprod.h"

namespace cvm {

namespace {

int64_t peak(int64_t rounds) {
  return peak_of(rounds, 16, [](int32x4_t sums, int8x16_t x) { return vdotq_s32(sums, x, x); });
}

}  // namespace

extern const ProductKernels kProductsDotprod;
const ProductKernels kProductsDotprod = {
    .lanes = kLanes,
    .rows = Dots::kRows,
    .step8 = 4,
    .step16 = 2,
    .widens = false,
    .sums8 = sums_of<Dots>,
    .sums16 = sums_of<Words<int16_t>>,
    .bytes8 = bytes_of<Dots>,
    .residual8 = residual_of<Dots>,
    .wide8 = wide_of<Dots>,
    .words8 = words_of<Dots>,
    .bytes16 = bytes_of<Words<int16_t>>,
    .words16 = words_of<Words<int16_t>>,
    .widen = nullptr,
    .transform_tile = nullptr,
    .untransform_line = nullptr,
    .peak = peak,
    .less_128 = true,
};

}  // namespace cvm
