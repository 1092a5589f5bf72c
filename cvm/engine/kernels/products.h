#pragma once

#include <stdint.h>

namespace cvm {

struct ProductKernels {
};

}  // namespace cvm
