// What becomes of sums by a look-up and the rescales beside it, at once.
#pragma once

#include <stdint.h>

#include "kernels/elements.h"

namespace cvm {

constexpr int64_t kPoints = 513;

// A value times a gate that the same integers open: what a SiLU is, where values have a scale for each channel. Both rescales are
// to 16 bits, and neither is wide. Points are those that ElementKernels::interpolate takes.
struct Gate {
  Rescale place;
  Rescale value;
  const int16_t* points;
  bool mirrored;  // every point and its mirror image about the middle have the same sum, and the outer two on a side are equal
};

// A rescale to i8, which is not wide, and an entry for each result, that of 0 first and that of -1 last; entries are i8.
struct ByteTable {
  Rescale index;
  const int16_t* entries;
};

// On dense tiles. Null: there are no such kernels.
struct LookupKernels {
  // floor(value(x) interpolated(points, place(x)) / 128 + 1/2); `out` may be x.
  void (*gate)(const Gate&, const Tile&, const int32_t* x, int32_t* out);
  // Entries as 32-bit integers, `out` may be x; or as bytes that hold `bias` more.
  void (*table)(const ByteTable&, const Tile&, const int32_t* x, int32_t bias, const ToRows& out);
};

}  // namespace cvm
