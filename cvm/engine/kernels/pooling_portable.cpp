// Pooling in plain C++: right on any processor, and what the others are compared with.
#include "kernels/pooling.h"

namespace cvm {
namespace {

// `__restrict`, which every compiler has: without it bytes might alias, and gcc takes the loops one byte at a time.
template <typename T>
void greatest(const PoolRun& run, const T* from, T* __restrict to) {
  for (int64_t place = 0; place < run.count; ++place, from += run.from_step, to += run.to_step) {
    for (int64_t i = 0; i < run.width; ++i) to[i] = from[i];
    for (int64_t row = 0; row < run.rows; ++row) {
      for (int64_t column = 0; column < run.columns; ++column) {
        const T* x = from + row * run.row_step + column * run.column_step;
        for (int64_t i = 0; i < run.width; ++i) to[i] = x[i] > to[i] ? x[i] : to[i];
      }
    }
  }
}

template <typename T>
void sum(const PoolRun& run, const T* from, int32_t* __restrict to) {
  for (int64_t place = 0; place < run.count; ++place, from += run.from_step, to += run.to_step) {
    for (int64_t i = 0; i < run.width; ++i) to[i] = 0;
    for (int64_t row = 0; row < run.rows; ++row) {
      for (int64_t column = 0; column < run.columns; ++column) {
        const T* x = from + row * run.row_step + column * run.column_step;
        for (int64_t i = 0; i < run.width; ++i) to[i] += x[i];
      }
    }
  }
}

}  // namespace

extern const PoolingKernels kPoolingPortable;
const PoolingKernels kPoolingPortable = {greatest<uint8_t>, greatest<int16_t>, greatest<int32_t>, sum<uint8_t>,
                                         sum<int16_t>};

}  // namespace cvm
