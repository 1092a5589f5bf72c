// Depthwise sums of every AArch64 processor: products of 16-bit integers.
#include "kernels/depthwise_neon.h"

namespace cvm {

extern const DepthwiseKernels kDepthwiseNeon;
constinit const DepthwiseKernels kDepthwiseNeon = word_kernels();

}  // namespace cvm
