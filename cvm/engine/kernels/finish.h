// What follows sums that lie in a tile in the nearest cache: each kernel takes them through registers once.
#pragma once

#include <stdint.h>

#include "kernels/scales.h"

namespace cvm {

struct SumTile {
  int32_t* sums;
  int64_t pitch;  // integers from one row to the next
  int64_t rows;
  int64_t columns;
};

// A tensor that is added to the rescaled sums, at the tile's first row and column. Elements have 1 byte (stored ones, rescaled by
// `bytes`), 2 (rescaled by `words`, which is left or integers) or 4 (added as they are).
struct Shortcut {
  const void* data;
  int64_t pitch;  // elements
  int64_t size;
  ByteBlocks bytes;
  ScaleBlocks words;
  ShiftBlocks shifted;  // of bytes or int32: in place of the rescales of sums and bytes, unless its data is null
};

// Rescaled, held between low and high (of bytes in stored form), and `add` more; elements of the result have `size` bytes.
struct Finish {
  ScaleBlocks scale;
  int32_t low;
  int32_t high;
  int32_t add;
  int64_t size;
};

// Blocks of scales are those of the tile's first column. Null: there are no such kernels.
struct FinishKernels {
  // The sums become rescale(sums) + shortcut; the scale is left or integers.
  void (*add_shortcut)(const SumTile&, const ScaleBlocks&, const Shortcut&);
  // To rows of results, `pitch` elements apart.
  void (*store)(const SumTile&, const Finish&, void* to, int64_t pitch);
};

}  // namespace cvm
