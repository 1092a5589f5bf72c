// mrt._counting: what mrt/calibrate/counting.py says, for float32, while other Python threads run. Every function takes
// the same numbers to the same bits as the one of its name there.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace mrt {
namespace {

constexpr std::size_t kLanes = 8;       // of a sum, as in counting.py
constexpr std::size_t kExtremeLanes = 4;    // of the least and the greatest; what there are leaves no trace
constexpr std::size_t kBlock = 512;     // numbers whose places are found before they are counted
constexpr std::size_t kWorthTwo = 2;    // numbers to a place of a table, from which a second table pays
constexpr int kFractionBits = 23 - 4;   // of float32, behind those that choose a bin of magnitude
constexpr int kAllBins = (1 << 12) - 1;
constexpr int kLeastNarrow = -119;      // the exponent from which the factor of a bin's width is a float32

template <typename Number, int Rank>
using Array = nb::ndarray<Number, nb::ndim<Rank>, nb::c_contig, nb::device::cpu>;
using Rows = Array<const float, 2>;

void require(bool good) {
  if (!good) throw std::invalid_argument("arrays that do not fit each other");
}

float without_sign_of_zero(float number) { return number + 0.0F; }

struct Extremes {
  float least = std::numeric_limits<float>::infinity();
  float greatest = -std::numeric_limits<float>::infinity();
  float noise = 0;  // NaN as soon as a number is not finite

  void observe(float number) {
    least = number < least ? number : least;
    greatest = number > greatest ? number : greatest;
    noise += number - number;
  }
};

// The lanes are arrays of their own, not of Extremes, for the sake of vectors.
Extremes extremes_of(const float* numbers, std::size_t count) {
  float least[kExtremeLanes], greatest[kExtremeLanes], noise[kExtremeLanes];
  std::fill_n(least, kExtremeLanes, Extremes().least);
  std::fill_n(greatest, kExtremeLanes, Extremes().greatest);
  std::fill_n(noise, kExtremeLanes, 0.0F);
  std::size_t at = 0;
  for (; at + kExtremeLanes <= count; at += kExtremeLanes) {
    for (std::size_t lane = 0; lane < kExtremeLanes; ++lane) {
      const float number = numbers[at + lane];
      least[lane] = number < least[lane] ? number : least[lane];
      greatest[lane] = number > greatest[lane] ? number : greatest[lane];
      noise[lane] += number - number;
    }
  }
  Extremes extremes;
  for (; at < count; ++at) extremes.observe(numbers[at]);
  for (std::size_t lane = 0; lane < kExtremeLanes; ++lane) {
    extremes.least = std::min(extremes.least, least[lane]);
    extremes.greatest = std::max(extremes.greatest, greatest[lane]);
    extremes.noise += noise[lane];
  }
  return extremes;
}

bool has_nan(const float* numbers, std::size_t count) {
  return std::any_of(numbers, numbers + count, [](float number) { return std::isnan(number); });
}

void extremes(const Rows& rows, const Array<float, 1>& low, const Array<float, 1>& high) {
  const std::size_t count = rows.shape(0), length = rows.shape(1);
  require(low.shape(0) == count && high.shape(0) == count);
  const float* row = rows.data();
  float *least = low.data(), *greatest = high.data();
  const nb::gil_scoped_release unlocked;
  for (std::size_t index = 0; index < count; ++index, row += length) {
    const Extremes extremes = extremes_of(row, length);
    const bool bad = std::isnan(extremes.noise) && has_nan(row, length);
    least[index] = bad ? std::numeric_limits<float>::quiet_NaN() : without_sign_of_zero(extremes.least);
    greatest[index] = bad ? std::numeric_limits<float>::quiet_NaN() : without_sign_of_zero(extremes.greatest);
  }
}

void moments(const Rows& rows, const Array<double, 1>& sums, const Array<double, 1>& squares) {
  const std::size_t count = rows.shape(0), length = rows.shape(1);
  require(sums.shape(0) == count && squares.shape(0) == count);
  const float* row = rows.data();
  double *sum = sums.data(), *square = squares.data();
  const nb::gil_scoped_release unlocked;
  for (std::size_t index = 0; index < count; ++index, row += length) {
    double lane_sums[kLanes] = {}, lane_squares[kLanes] = {};
    std::size_t at = 0;
    for (; at + kLanes <= length; at += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double number = row[at + lane];
        lane_sums[lane] += number;
        lane_squares[lane] += number * number;
      }
    }
    for (std::size_t lane = 0; at < length; ++at, ++lane) {
      const double number = row[at];
      lane_sums[lane] += number;
      lane_squares[lane] += number * number;
    }
    for (std::size_t lane = 1; lane < kLanes; ++lane) {
      lane_sums[0] += lane_sums[lane];
      lane_squares[0] += lane_squares[lane];
    }
    sum[index] = lane_sums[0];
    square[index] = lane_squares[0];
  }
}

// Counts numbers by place. Neighbours often have the same place, and one increment would wait for the other: every
// other number is counted in a second table, if there are enough to pay for it.
class Tally {
 public:
  explicit Tally(std::size_t places) : places_(places) {}

  template <typename Count, typename PlaceOf>
  void add(const float* numbers, std::size_t count, Count* counts, PlaceOf place_of) {
    const bool two = count >= kWorthTwo * places_;
    if (two) second_.assign(places_, 0);
    std::int32_t places[kBlock];
    for (std::size_t start = 0; start < count; start += kBlock) {
      const std::size_t size = std::min(kBlock, count - start);
      for (std::size_t index = 0; index < size; ++index) places[index] = place_of(numbers[start + index]);
      std::size_t index = 0;
      for (; two && index + 1 < size; index += 2) {
        ++counts[places[index]];
        ++second_[static_cast<std::size_t>(places[index + 1])];
      }
      for (; index < size; ++index) ++counts[places[index]];
    }
    if (two) {
      for (std::size_t place = 0; place < places_; ++place) counts[place] += static_cast<Count>(second_[place]);
    }
  }

 private:
  std::size_t places_;
  std::vector<std::uint32_t> second_;
};

template <typename Real>
void count_in_bins(const float* numbers, std::size_t count, int exponent, std::int64_t* counts, std::size_t bins) {
  const Real factor = std::ldexp(Real{1}, -exponent), limit = static_cast<Real>(bins / 2);
  const auto centre = static_cast<std::int32_t>(bins / 2);
  Tally(bins).add(numbers, count, counts, [=](float number) {
    const Real real = static_cast<Real>(number) * factor;
    const Real above = real > -limit ? real : -limit;  // of NaN, the limit
    return static_cast<std::int32_t>(above < limit ? above : limit) + centre;
  });
}

void count_bins(const Array<std::int64_t, 1>& counts, const Array<const float, 1>& numbers, int exponent) {
  const std::size_t bins = counts.shape(0), count = numbers.shape(0);
  require(bins % 2 == 1);
  std::int64_t* table = counts.data();
  const float* data = numbers.data();
  const nb::gil_scoped_release unlocked;
  if (exponent >= kLeastNarrow) {
    count_in_bins<float>(data, count, exponent, table, bins);
  } else {
    count_in_bins<double>(data, count, exponent, table, bins);
  }
}

template <typename Count>
void count_magnitudes(const Array<Count, 3>& counts, const Rows& rows, int highest) {
  const std::size_t count = rows.shape(0), length = rows.shape(1), bins = counts.shape(2);
  require(counts.shape(0) == count && counts.shape(1) == 2 && bins > 0);
  const auto last = static_cast<std::int32_t>(bins) - 1;
  const std::int32_t lowest = highest - last;
  Count* table = counts.data();
  const float* row = rows.data();
  const nb::gil_scoped_release unlocked;
  Tally tally(2 * bins);
  for (std::size_t index = 0; index < count; ++index, row += length, table += 2 * bins) {
    tally.add(row, length, table, [=](float number) {
      const auto bits = std::bit_cast<std::int32_t>(without_sign_of_zero(number));
      const std::int32_t bin = std::clamp(((bits >> kFractionBits) & kAllBins) - lowest, 0, last);
      return bin + (bits < 0 ? last + 1 : 0);
    });
  }
}

}  // namespace

NB_MODULE(_counting, module) {
  module.doc() = "Counts and sums of float32. mrt.calibrate.counting is its Python side.";
  module.def("extremes", &extremes, nb::arg("rows").noconvert(), nb::arg("low").noconvert(), nb::arg("high").noconvert());
  module.def("moments", &moments, nb::arg("rows").noconvert(), nb::arg("sums").noconvert(),
             nb::arg("squares").noconvert());
  module.def("count_bins", &count_bins, nb::arg("counts").noconvert(), nb::arg("numbers").noconvert(),
             nb::arg("exponent"));
  module.def("count_magnitudes", &count_magnitudes<std::int32_t>, nb::arg("counts").noconvert(),
             nb::arg("rows").noconvert(), nb::arg("highest"));
  module.def("count_magnitudes", &count_magnitudes<std::int64_t>, nb::arg("counts").noconvert(),
             nb::arg("rows").noconvert(), nb::arg("highest"));
}

}  // namespace mrt
