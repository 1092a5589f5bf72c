// What pooling needs of an instruction set: windows over places whose channels lie side by side.
#pragma once

#include <stdint.h>

namespace cvm {

// `count` places of the result, side by side, whose windows have one shape. Steps count elements. Kernels read `width`
// elements at each place and nothing beyond.
struct PoolRun {
  int64_t rows, columns;          // of a window, at least 1 each
  int64_t row_step, column_step;  // from one row or column of x to the next
  int64_t count;
  int64_t from_step, to_step;  // from one window to the next in x, and from one place to the next in the result
  int64_t width;               // channels
};

struct PoolingKernels {
  void (*max8)(const PoolRun&, const uint8_t* from, uint8_t* to);
  void (*max16)(const PoolRun&, const int16_t* from, int16_t* to);
  void (*max32)(const PoolRun&, const int32_t* from, int32_t* to);
  // Sums of bytes over at most 2^23 places of a window, and of 16-bit integers over at most 2^16, so that they fit.
  void (*sum8)(const PoolRun&, const uint8_t* from, int32_t* to);
  void (*sum16)(const PoolRun&, const int16_t* from, int32_t* to);
};

}  // namespace cvm
