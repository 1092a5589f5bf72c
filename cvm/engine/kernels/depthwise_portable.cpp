#include "kernels/depthwise.h"

namespace cvm {

extern const DepthwiseKernels kDepthwisePortable;
const DepthwiseKernels kDepthwisePortable = {};

}  // namespace cvm
