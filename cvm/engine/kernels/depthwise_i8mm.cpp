// Depthwise sums of AArch64 processors with FEAT_I8MM, whose usdot takes stored bytes as they are.
#include "kernels/depthwise_dotprod.h"

namespace cvm {
namespace {

struct Mixed {
  static inline uint8x16_t taken(uint8x16_t stored) { return stored; }
  static inline int32x4_t dot(int32x4_t sums, uint8x16_t x, int8x16_t w) { return vusdotq_s32(sums, x, w); }
  static inline int32x4_t started(int32x4_t bias, int8x16_t) { return bias; }
};

}  // namespace

extern const DepthwiseKernels kDepthwiseI8mm;
constinit const DepthwiseKernels kDepthwiseI8mm = dot_kernels<Mixed>();

}  // namespace cvm
