// The rounding of neighbouring weights in mrt/refine/second_order.py, to the same bits.
#include <cmath>
#include <cstddef>

#include "arrays.h"

namespace mrt {
namespace {

using Columns = Array<double, 3>;

struct Weights {
  double *remaining, *rounded, *errors;  // [K, O]
  const double *real, *factors;          // [K, O], [K, K]
  std::size_t length, outputs;
};

MRT_CLONED void round_weights(const Weights& weights, std::size_t start, std::size_t stop, double most) {
  const std::size_t outputs = weights.outputs;
  for (std::size_t index = start; index < stop; ++index) {
    const double* const real = weights.real + index * outputs;
    double* const remaining = weights.remaining + index * outputs;
    double* const rounded = weights.rounded + index * outputs;
    double* const error = weights.errors + index * outputs;
    for (std::size_t output = 0; output < outputs; ++output) {
      const double nearest = std::floor(remaining[output] + 0.5);
      const double above = nearest > -most ? nearest : -most;
      rounded[output] = above < most ? above : most;
      error[output] = real[output] - rounded[output];
    }
    for (std::size_t later = index + 1; later < stop; ++later) {
      const double share = weights.factors[index * weights.length + later];
      double* const passed_on = weights.remaining + later * outputs;
      for (std::size_t output = 0; output < outputs; ++output) passed_on[output] += share * error[output];
    }
  }
}

void round_each(const Columns& remaining, const Columns& rounded, const Columns& errors,
                const Array<const double, 3>& real, const Array<const double, 3>& factors, std::size_t start,
                std::size_t stop, double most) {
  const std::size_t groups = real.shape(0), length = real.shape(1), outputs = real.shape(2);
  for (const Columns* columns : {&remaining, &rounded, &errors}) {
    require(columns->shape(0) == groups && columns->shape(1) == length && columns->shape(2) == outputs);
  }
  require(factors.shape(0) == groups && factors.shape(1) == length && factors.shape(2) == length);
  require(start <= stop && stop <= length);
  Weights weights{remaining.data(), rounded.data(), errors.data(), real.data(), factors.data(), length, outputs};
  const nb::gil_scoped_release unlocked;
  for (std::size_t group = 0; group < groups; ++group) {
    round_weights(weights, start, stop, most);
    for (double** columns : {&weights.remaining, &weights.rounded, &weights.errors}) *columns += length * outputs;
    weights.real += length * outputs;
    weights.factors += length * length;
  }
}

}  // namespace

void add_rounding(nb::module_& module) {
  module.def("round_each", &round_each, nb::arg("remaining").noconvert(), nb::arg("rounded").noconvert(),
             nb::arg("errors").noconvert(), nb::arg("real").noconvert(), nb::arg("factors").noconvert(),
             nb::arg("start"), nb::arg("stop"), nb::arg("most"));
}

}  // namespace mrt
