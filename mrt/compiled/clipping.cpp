// The functions of mrt/refine/clipping_errors.py, to the same bits.
#include <cstddef>
#include <functional>

#include "arrays.h"

namespace mrt {
namespace {

constexpr std::size_t kPowers = 3;

// Returns how many of the sorted numbers come before this one. Neighbours have places near each other: it looks from `place` on.
template <typename Before>
std::size_t place_among(const double* sorted, std::size_t count, double number, std::size_t place, Before before) {
  while (place < count && before(sorted[place], number)) ++place;
  while (place > 0 && !before(sorted[place - 1], number)) --place;
  return place;
}

void power_sums(const Array<const double, 2>& counts, const Array<const double, 1>& midpoints,
                const Array<double, 3>& sums) {
  const std::size_t channels = counts.shape(0), bins = counts.shape(1);
  require(midpoints.shape(0) == bins && sums.shape(0) == kPowers && sums.shape(1) == channels && sums.shape(2) == bins + 1);
  const double *count = counts.data(), *midpoint = midpoints.data();
  double* numbers = sums.data();
  double* linear = numbers + channels * (bins + 1);
  double* squares = linear + channels * (bins + 1);
  const nb::gil_scoped_release unlocked;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    double number = 0, first = 0, second = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      *numbers++ = number, *linear++ = first, *squares++ = second;
      number += count[bin];
      first += count[bin] * midpoint[bin];
      second += count[bin] * (midpoint[bin] * midpoint[bin]);
    }
    *numbers++ = number, *linear++ = first, *squares++ = second;
    count += bins;
  }
}

void clipping_errors(const Array<const double, 3>& sums, const Array<const double, 1>& midpoints,
                     const Array<const double, 2>& thresholds, double steps, double rounding_variance,
                     const Array<double, 2>& errors) {
  const std::size_t channels = sums.shape(1), bins = midpoints.shape(0), tried = thresholds.shape(1);
  require(sums.shape(0) == kPowers && sums.shape(2) == bins + 1 && bins > 0 && thresholds.shape(0) == channels &&
          errors.shape(0) == channels && errors.shape(1) == tried);
  const double *midpoint = midpoints.data(), *threshold = thresholds.data();
  const double* numbers = sums.data();
  const double* linear = numbers + channels * (bins + 1);
  const double* squares = linear + channels * (bins + 1);
  double* error = errors.data();
  const nb::gil_scoped_release unlocked;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    std::size_t rounded = 0, clipped = bins;
    for (std::size_t index = 0; index < tried; ++index) {
      const double end = *threshold++, step = end / steps;
      rounded = place_among(midpoint, bins, step / 2, rounded, std::less<>());
      clipped = place_among(midpoint, bins, end, clipped, std::less_equal<>());
      const double by_clipping = (squares[bins] - squares[clipped]) - 2 * end * (linear[bins] - linear[clipped]) +
                                 end * end * (numbers[bins] - numbers[clipped]);
      const double by_rounding = rounding_variance * (step * step) * (numbers[clipped] - numbers[rounded]);
      *error++ = squares[rounded] + by_rounding + by_clipping;
    }
    numbers += bins + 1, linear += bins + 1, squares += bins + 1;
  }
}

}  // namespace

void add_clipping(nb::module_& module) {
  module.def("power_sums", &power_sums, nb::arg("counts").noconvert(), nb::arg("midpoints").noconvert(),
             nb::arg("sums").noconvert());
  module.def("clipping_errors", &clipping_errors, nb::arg("sums").noconvert(), nb::arg("midpoints").noconvert(),
             nb::arg("thresholds").noconvert(), nb::arg("steps"), nb::arg("rounding_variance"),
             nb::arg("errors").noconvert());
}

}  // namespace mrt
