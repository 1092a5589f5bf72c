// mrt._compiled: what numpy is slow at. Other Python threads run meanwhile.
#include "arrays.h"

namespace mrt {
void add_counting(nb::module_& module);
void add_clipping(nb::module_& module);
void add_rounding(nb::module_& module);
}  // namespace mrt

NB_MODULE(_compiled, module) {
  module.doc() = "What numpy is slow at, to the same bits. mrt.calibrate and mrt.refine have its Python side.";
  mrt::add_counting(module);
  mrt::add_clipping(module);
  mrt::add_rounding(module);
}
