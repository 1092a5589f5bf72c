#pragma once

#include <stdint.h>

namespace cvm {

struct DepthwiseKernels {
};

}  // namespace cvm
