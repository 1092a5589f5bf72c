#include "kernels/products.h"

namespace cvm {

extern const ProductKernels kProductsAvx512vnni;
const ProductKernels kProductsAvx512vnni = {};

}  // namespace cvm
