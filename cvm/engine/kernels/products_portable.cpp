#include "kernels/products.h"

namespace cvm {

extern const ProductKernels kProductsPortable;
const ProductKernels kProductsPortable = {};

}  // namespace cvm
