// The functions of mrt/calibrate/counting.py for float32, to the same bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arrays.h"

namespace mrt {
namespace {

constexpr std::size_t kLanes = 8;       // of a sum, as in counting.py
constexpr std::size_t kExtremeLanes = 4;    // of the least and the greatest; what there are leaves no trace
constexpr std::size_t kBlock = 512;     // numbers whose places are found before they are counted
constexpr std::size_t kShort = kBlock / 4;  // of a row, so that four rows are in a block
constexpr std::size_t kWorthTwo = 2;    // numbers to a place of a table, from which a second table pays
constexpr std::size_t kWorthFour = 4;   // and four
constexpr int kFractionBits = 23 - 4;   // of float32, behind those that choose a bin of magnitude
constexpr int kAllBins = (1 << 12) - 1;
constexpr std::size_t kMostBins = kAllBins + 1;
constexpr int kLeastNarrow = -119;      // the exponent from which the factor of a bin's width is a float32

using Rows = Array<const float, 2>;

MRT_INLINE void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, 1);
#endif
}

MRT_INLINE float without_sign_of_zero(float number) { return number + 0.0F; }

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

// Adds a row's sum and the sum of its squares.
MRT_CLONED void moments_of(const float* row, std::size_t length, double* sum, double* square) {
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
  *sum = lane_sums[0];
  *square = lane_squares[0];
}

void moments(const Rows& rows, const Array<double, 1>& sums, const Array<double, 1>& squares) {
  const std::size_t count = rows.shape(0), length = rows.shape(1);
  require(sums.shape(0) == count && squares.shape(0) == count);
  const float* row = rows.data();
  double *sum = sums.data(), *square = squares.data();
  const nb::gil_scoped_release unlocked;
  for (std::size_t index = 0; index < count; ++index, row += length) moments_of(row, length, sum++, square++);
}

// Counts numbers by place. Neighbours often have the same place, and one increment would wait for the other: they take
// turns at several tables, as many as there are numbers to pay for.
class Tally {
 public:
  explicit Tally(std::size_t places) : places_(places) {}

  template <typename Count, typename PlaceOf>
  MRT_INLINE void add(const float* numbers, std::size_t count, Count* counts, PlaceOf place_of) {
    if (count >= kWorthFour * places_) {
      add_to<4>(numbers, count, counts, place_of);
    } else if (count >= kWorthTwo * places_) {
      add_to<2>(numbers, count, counts, place_of);
    } else {
      add_to<1>(numbers, count, counts, place_of);
    }
  }

 private:
  template <std::size_t kTables, typename Count, typename PlaceOf>
  MRT_INLINE void add_to(const float* numbers, std::size_t count, Count* counts, PlaceOf place_of) {
    others_.assign((kTables - 1) * places_, 0);
    std::uint32_t* const others = others_.data();
    const std::size_t third = places_, fourth = 2 * places_;
    std::int32_t places[kBlock];
    for (std::size_t start = 0; start < count; start += kBlock) {
      const std::size_t size = std::min(kBlock, count - start);
      for (std::size_t index = 0; index < size; ++index) places[index] = place_of(numbers[start + index]);
      std::size_t index = 0;
      for (; index + kTables <= size; index += kTables) {
        const auto place = [&](std::size_t after) { return static_cast<std::size_t>(places[index + after]); };
        ++counts[place(0)];
        if constexpr (kTables >= 2) ++others[place(1)];
        if constexpr (kTables >= 4) {
          ++others[third + place(2)];
          ++others[fourth + place(3)];
        }
      }
      for (; index < size; ++index) ++counts[places[index]];
    }
    for (std::size_t other = 0; other < others_.size(); other += places_) {
      for (std::size_t place = 0; place < places_; ++place) counts[place] += static_cast<Count>(others[other + place]);
    }
  }

  std::size_t places_;
  std::vector<std::uint32_t> others_;
};

template <typename Real>
MRT_INLINE void count_in_bins(const float* numbers, std::size_t count, int exponent, std::int64_t* counts,
                              std::size_t bins) {
  const Real factor = std::ldexp(Real{1}, -exponent), limit = static_cast<Real>(bins / 2);
  const auto centre = static_cast<std::int32_t>(bins / 2);
  Tally(bins).add(numbers, count, counts, [=](float number) {
    const Real real = static_cast<Real>(number) * factor;
    const Real above = real > -limit ? real : -limit;  // of NaN, the limit
    return static_cast<std::int32_t>(above < limit ? above : limit) + centre;
  });
}

MRT_CLONED void count_in_float_bins(const float* numbers, std::size_t count, int exponent, std::int64_t* counts,
                                   std::size_t bins) {
  count_in_bins<float>(numbers, count, exponent, counts, bins);
}

void count_bins(const Array<std::int64_t, 1>& counts, const Array<const float, 1>& numbers, int exponent) {
  const std::size_t bins = counts.shape(0), count = numbers.shape(0);
  require(bins % 2 == 1);
  std::int64_t* table = counts.data();
  const float* data = numbers.data();
  const nb::gil_scoped_release unlocked;
  if (exponent >= kLeastNarrow) {
    count_in_float_bins(data, count, exponent, table, bins);
  } else {
    count_in_bins<double>(data, count, exponent, table, bins);
  }
}

// Returns the place of a magnitude in the table of its channel: first those that are not negative, then the negative ones.
struct MagnitudePlace {
  std::int32_t lowest, last;

  MRT_INLINE std::int32_t operator()(float number) const {
    const auto bits = std::bit_cast<std::int32_t>(without_sign_of_zero(number));
    const std::int32_t bin = std::clamp(((bits >> kFractionBits) & kAllBins) - lowest, 0, last);
    return bin + (bits < 0 ? last + 1 : 0);
  }
};

// Counts long rows: one after another, in several tables.
template <typename Count>
MRT_INLINE void count_long_rows(const float* row, std::size_t count, std::size_t length, Count* table,
                                std::size_t places, MagnitudePlace place_of) {
  Tally tally(places);
  for (std::size_t index = 0; index < count; ++index, row += length, table += places) {
    tally.add(row, length, table, place_of);
  }
}

// Counts short rows: their tables are fetched ahead, and four rows take turns.
template <typename Count>
MRT_INLINE void count_short_rows(const float* numbers, std::size_t count, std::size_t length, Count* table,
                                 std::size_t places, MagnitudePlace place_of) {
  const std::size_t at_once = kBlock / length;
  std::vector<std::int32_t> found(at_once * length);
  for (std::size_t start = 0; start < count; start += at_once) {
    const std::size_t rows = std::min(at_once, count - start), size = rows * length;
    for (std::size_t row = 0, at = 0; row < rows; ++row) {
      const auto first = static_cast<std::int32_t>(row * places);
      for (const std::size_t end = at + length; at < end; ++at) found[at] = first + place_of(*numbers++);
    }
    for (std::size_t at = 0; at < size; ++at) prefetch(table + found[at]);
    const std::size_t quarter = size / 4;
    const std::int32_t *one = found.data(), *two = one + quarter, *three = two + quarter, *four = three + quarter;
    for (std::size_t at = 0; at < quarter; ++at) {
      ++table[one[at]];
      ++table[two[at]];
      ++table[three[at]];
      ++table[four[at]];
    }
    for (std::size_t at = 4 * quarter; at < size; ++at) ++table[found[at]];
    table += rows * places;
  }
}

template <typename Count>
MRT_INLINE void count_rows(const float* rows, std::size_t count, std::size_t length, Count* table, std::size_t places,
                           MagnitudePlace place_of) {
  if (0 < length && length <= kShort) {
    count_short_rows(rows, count, length, table, places, place_of);
  } else {
    count_long_rows(rows, count, length, table, places, place_of);
  }
}

MRT_CLONED void count_rows_in_32(const float* rows, std::size_t count, std::size_t length, std::int32_t* table,
                                 std::size_t places, MagnitudePlace place_of) {
  count_rows(rows, count, length, table, places, place_of);
}

MRT_CLONED void count_rows_in_64(const float* rows, std::size_t count, std::size_t length, std::int64_t* table,
                                 std::size_t places, MagnitudePlace place_of) {
  count_rows(rows, count, length, table, places, place_of);
}

template <typename Count, void (*kCountRows)(const float*, std::size_t, std::size_t, Count*, std::size_t, MagnitudePlace)>
void count_magnitudes(const Array<Count, 3>& counts, const Rows& rows, int highest) {
  const std::size_t count = rows.shape(0), length = rows.shape(1), bins = counts.shape(2);
  require(counts.shape(0) == count && counts.shape(1) == 2 && bins > 0 && bins <= kMostBins);
  const auto last = static_cast<std::int32_t>(bins) - 1;
  Count* const table = counts.data();
  const float* const numbers = rows.data();
  const nb::gil_scoped_release unlocked;
  kCountRows(numbers, count, length, table, 2 * bins, MagnitudePlace{highest - last, last});
}

}  // namespace

void add_counting(nb::module_& module) {
  module.def("extremes", &extremes, nb::arg("rows").noconvert(), nb::arg("low").noconvert(), nb::arg("high").noconvert());
  module.def("moments", &moments, nb::arg("rows").noconvert(), nb::arg("sums").noconvert(),
             nb::arg("squares").noconvert());
  module.def("count_bins", &count_bins, nb::arg("counts").noconvert(), nb::arg("numbers").noconvert(),
             nb::arg("exponent"));
  module.def("count_magnitudes", &count_magnitudes<std::int32_t, &count_rows_in_32>, nb::arg("counts").noconvert(),
             nb::arg("rows").noconvert(), nb::arg("highest"));
  module.def("count_magnitudes", &count_magnitudes<std::int64_t, &count_rows_in_64>, nb::arg("counts").noconvert(),
             nb::arg("rows").noconvert(), nb::arg("highest"));
}

}  // namespace mrt
