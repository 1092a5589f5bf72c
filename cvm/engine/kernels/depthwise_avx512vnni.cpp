#include "kernels/depthwise.h"

namespace cvm {

extern const DepthwiseKernels kDepthwiseAvx512vnni;
const DepthwiseKernels kDepthwiseAvx512vnni = {};

}  // namespace cvm
