#include "kernels/depthwise.h"

namespace cvm {

extern const DepthwiseKernels kDepthwiseAvx2;
const DepthwiseKernels kDepthwiseAvx2 = {};

}  // namespace cvm
