// Depthwise sums of AArch64 processors with the dot product (FEAT_DotProd), which takes signed bytes: stored ones less 128.
#include "kernels/depthwise_dotprod.h"

namespace cvm {
namespace {

struct Signed {
  static inline uint8x16_t taken(uint8x16_t stored) { return veorq_u8(stored, vdupq_n_u8(128)); }
  static inline int32x4_t dot(int32x4_t sums, uint8x16_t x, int8x16_t w) { return vdotq_s32(sums, vreinterpretq_s8_u8(x), w); }
  // 128 times the weights more.
  static inline int32x4_t started(int32x4_t bias, int8x16_t w) {
    const int32x4_t less = vdotq_s32(vdupq_n_s32(0), vdupq_n_s8(-128), w);
    return vreinterpretq_s32_u32(vsubq_u32(vreinterpretq_u32_s32(bias), vreinterpretq_u32_s32(less)));
  }
};

}  // namespace

extern const DepthwiseKernels kDepthwiseDotprod;
constinit const DepthwiseKernels kDepthwiseDotprod = dot_kernels<Signed>();

}  // namespace cvm
