// Element-wise kernels in plain C++: right on any processor, and what the others are compared with.
#include "kernels/elements.h"

#include "arithmetic.h"
#include "kernels/integer_loops.h"
#include "kernels/rescale_rows.h"

namespace cvm {
namespace {

int64_t rescale_one(const Rescale& r, int32_t x, int64_t channel) {
  const int64_t index = r.count == 1 ? 0 : channel;
  const int32_t zero_point = r.input_zero_points != nullptr ? r.input_zero_points[channel] : r.input_zero_point;
  const int64_t scaled = multiply_shift(int64_t{x} - zero_point, r.multiplier[index], r.shift[index]);
  return clamp64(scaled + r.output_zero_point, r.low, r.high);
}

struct Loop {
  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_channels(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    for (int64_t row = 0; row < tile.rows; ++row, x += x_pitch, out += pitch) {
      for (int64_t column = 0; column < tile.width; ++column) {
        out[column] = static_cast<Out>(rescale_one(r, x[column], tile.channel + column));
      }
    }
  }

  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_tensor(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    by_channels<kShifts, kNarrow>(r, tile, x, x_pitch, out, pitch);
  }
};

void clamp(int32_t low, int32_t high, int64_t count, const int32_t* x, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}

void mul_shifted(int amount, const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  pairs(tile, x, y, out, [amount](int32_t a, int32_t b) { return product_shifted(a, b, amount); });
}

void interpolate(const int16_t* points, int64_t count, const int32_t* x, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = interpolated(points, x[i]);
}

void load8(int32_t bias, int64_t width, const uint8_t* from, int32_t* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = from[i] - bias;
}

void store8(int32_t bias, int64_t width, const int32_t* x, uint8_t* to) {
  for (int64_t i = 0; i < width; ++i) to[i] = static_cast<uint8_t>(wrap_add(x[i], bias));
}

void load16(int64_t width, const int16_t* from, int32_t* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = from[i];
}

void store16(int64_t width, const int32_t* x, int16_t* to) {
  for (int64_t i = 0; i < width; ++i) to[i] = static_cast<int16_t>(x[i]);
}

}  // namespace

extern const ElementKernels kElementsPortable;
const ElementKernels kElementsPortable = {
    rescale_tile<Loop>, rescale_any<Loop>, clamp, add, sub, mul, mul_shifted, divide, maximum, minimum, abs,
    shift_left, shift_right, shift_right_rounded, load8, store8, load16, store16, wrap8, wrap16, interpolate,
    sum, greatest, least, fill, centre8, pair8, pair16, nullptr};

}  // namespace cvm
