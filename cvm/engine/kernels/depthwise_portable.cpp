// Depthwise sums in plain C++: right on any processor, and what the others are compared with.
#include "kernels/depthwise.h"

#include "arithmetic.h"

namespace cvm {
namespace {

constexpr int kLanes = 8;

// Adds the sums of `kCount` lanes, or of `columns` where that is 0, to `sums`.
template <int kCount, typename X, typename Weight>
void sum_lanes(const DepthwiseTask& task, int64_t pixel, int64_t columns, int32_t* sums) {
  const void* const* slots = task.pixels + pixel * task.slots;
  const Weight* weights = static_cast<const Weight*>(task.weights);
  const int64_t count = kCount == 0 ? columns : kCount;
  int32_t totals[kLanes] = {};
  for (int64_t slot = 0; slot < task.slots; ++slot, weights += kLanes) {
    const X* x = static_cast<const X*>(slots[slot]) + task.channel;
    for (int64_t lane = 0; lane < count; ++lane) totals[lane] = wrap_add(totals[lane], x[lane] * weights[lane]);
  }
  for (int64_t lane = 0; lane < count; ++lane) sums[lane] = wrap_add(sums[lane], totals[lane]);
}

template <typename X, typename Weight>
void sum_pixel(const DepthwiseTask& task, int64_t pixel, int64_t columns, int32_t* sums) {
  (columns == kLanes ? sum_lanes<kLanes, X, Weight> : sum_lanes<0, X, Weight>)(task, pixel, columns, sums);
}

template <typename X, typename Weight>
void sums(const DepthwiseTask& task, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch) {
  for (int64_t pixel = 0; pixel < task.count; ++pixel, to += pitch) {
    for (int64_t lane = 0; lane < columns; ++lane) to[lane] = bias[lane];
    sum_pixel<X, Weight>(task, pixel, columns, to);
  }
}

// The product and its offset are added without sign: what a proof excludes wraps.
uint8_t scaled(const DepthwiseScale& scale, int32_t sum, int64_t lane) {
  if (scale.offset != nullptr) {
    const uint32_t product = static_cast<uint32_t>(sum) * static_cast<uint32_t>(scale.multiplier[lane]);
    const int32_t byte = static_cast<int32_t>(product + static_cast<uint32_t>(scale.offset[lane])) >> scale.shift[lane];
    return static_cast<uint8_t>(clamp64(byte, scale.low, scale.high));
  }
  const int64_t* offsets = lane % 2 == 0 ? scale.even_offset : scale.odd_offset;
  const uint64_t wide =
      static_cast<uint64_t>(int64_t{sum} * scale.multiplier[lane]) + static_cast<uint64_t>(offsets[lane / 2]);
  const int64_t value = (static_cast<int64_t>(wide) >> 32 >> scale.shift[lane]) + scale.zero_point;
  return static_cast<uint8_t>(clamp64(value, scale.low, scale.high));
}

template <typename X, typename Weight>
void bytes(const DepthwiseTask& task, const DepthwiseScale& scale, int64_t columns, uint8_t* to, int64_t pitch) {
  for (int64_t pixel = 0; pixel < task.count; ++pixel, to += pitch) {
    int32_t sums[kLanes] = {};
    sum_pixel<X, Weight>(task, pixel, columns, sums);
    for (int64_t lane = 0; lane < columns; ++lane) to[lane] = scaled(scale, sums[lane], lane);
  }
}

}  // namespace

extern const DepthwiseKernels kDepthwisePortable;
const DepthwiseKernels kDepthwisePortable = {
    kLanes,
    nullptr,
    1,
    1,
    false,
    nullptr,
    0,
    sums<uint8_t, int8_t>,
    sums<int16_t, int16_t>,
    bytes<uint8_t, int8_t>,
    bytes<int16_t, int16_t>};

}  // namespace cvm
