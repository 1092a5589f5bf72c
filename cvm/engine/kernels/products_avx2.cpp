#include "kernels/products.h"

namespace cvm {

extern const ProductKernels kProductsAvx2;
const ProductKernels kProductsAvx2 = {};

}  // namespace cvm
