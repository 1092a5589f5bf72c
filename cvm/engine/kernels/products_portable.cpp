// Sums of products in plain C++, laid out so that a compiler can make vectors of the columns.
#include "arithmetic.h"
#include "kernels/winograd.h"

namespace cvm {
namespace {

constexpr int kLanes = 8;
constexpr int kRows = 4;
constexpr int kStep = 2;

// Unsigned throughout: sums are proven to fit, and modulo 2^32 any order gives the same.
template <typename Weight>
void sums(const ProductTask& task, int32_t* out) {
  const int64_t columns = task.vectors * kLanes;
  for (int64_t r = 0; r < task.row_count; ++r) {
    uint32_t row_sums[2 * kLanes] = {};
    const Weight* weights = static_cast<const Weight*>(task.weights);
    for (int64_t tap = 0; tap < task.taps; ++tap) {
      const int16_t* x = static_cast<const int16_t*>(task.rows[tap * kMaxTileRows + r]);
      for (int64_t k = 0; k < task.depth; k += kStep, weights += columns * kStep) {
        const int32_t first = x[k], second = x[k + 1];
        for (int64_t column = 0; column < columns; ++column) {
          row_sums[column] += static_cast<uint32_t>(first * weights[column * 2]) + static_cast<uint32_t>(second * weights[column * 2 + 1]);
        }
      }
    }
    for (int64_t column = 0; column < columns; ++column) {
      out[r * columns + column] = static_cast<int32_t>(row_sums[column] + static_cast<uint32_t>(task.bias[column]));
    }
  }
}

// One channel of a block.
struct Lane {
  int32_t multiplier, last;
  int64_t half, shift;
};

Lane lane_of(const ScaleBlocks& scale, int64_t column) {
  const uint8_t* block = scale.data + column / kLanes * scale.stride;
  const int64_t lane = column % kLanes, odd = lane % 2;
  const int32_t* narrow = reinterpret_cast<const int32_t*>(block);
  const int64_t* wide = reinterpret_cast<const int64_t*>(block + 8 * kLanes) + lane / 2;
  return {narrow[lane], narrow[kLanes + lane], wide[odd * kLanes / 2], wide[kLanes + odd * kLanes / 2]};
}

// To 32 bits, in either form.
int32_t rescaled(const ScaleBlocks& scale, int64_t column, int32_t x) {
  const Lane lane = lane_of(scale, column);
  const uint64_t lifted = static_cast<uint64_t>(int64_t{x} * lane.multiplier) + static_cast<uint64_t>(lane.half);
  if (scale.form == ScaleForm::left) return static_cast<int32_t>((lifted << lane.shift) >> 32);
  return static_cast<int32_t>(static_cast<uint32_t>(lifted >> lane.shift) + static_cast<uint32_t>(lane.last));
}

// To a byte, modulo 2^32.
int32_t short_byte(const ScaleBlocks& scale, int64_t column, int32_t x) {
  const int32_t* block = reinterpret_cast<const int32_t*>(scale.data + column / kLanes * scale.stride) + column % kLanes;
  const uint32_t product = static_cast<uint32_t>(x) * static_cast<uint32_t>(block[0]);
  return static_cast<int32_t>(product + static_cast<uint32_t>(block[kLanes])) >> block[2 * kLanes];
}

uint8_t byte_of(const ToBytes& out, int64_t column, int32_t x) {
  if (out.scale.form == ScaleForm::short_bytes) {
    const int32_t y = short_byte(out.scale, column, x);
    return static_cast<uint8_t>(y < out.low ? out.low : y > out.high ? out.high : y);
  }
  const Lane lane = lane_of(out.scale, column);
  const int64_t y = ((int64_t{x} * lane.multiplier + lane.half) >> 32) >> lane.last;
  return static_cast<uint8_t>(y < out.low ? out.low : y > out.high ? out.high : y);
}

void bytes8(const ProductTask& task, const ToBytes& out, int64_t columns, uint8_t* to, int64_t pitch) {
  int32_t tile_sums[kMaxTileRows * 2 * kLanes];
  sums<int8_t>(task, tile_sums);
  for (int64_t r = 0; r < task.row_count; ++r) {
    for (int64_t column = 0; column < columns; ++column) {
      to[r * pitch + column] = byte_of(out, column, tile_sums[r * task.vectors * kLanes + column]);
    }
  }
}

// Sums and shortcut together, where neither needs a multiplier of 31 bits.
int32_t shifted_sum(const Residual& residual, int64_t place, int64_t column, int32_t sum) {
  const ShiftBlocks& shifted = residual.shifted;
  const int32_t* block = reinterpret_cast<const int32_t*>(shifted.data + column / kLanes * shifted.stride) + column % kLanes;
  const auto own = static_cast<int32_t>(static_cast<uint32_t>(sum) << block[0]);
  if (residual.shortcut_is_wide) return wrap_add(own, static_cast<const int32_t*>(residual.shortcut)[place]);
  const int32_t byte = static_cast<const uint8_t*>(residual.shortcut)[place];
  return wrap_add(wrap_add(own, block[kLanes]), byte * block[2 * kLanes]);
}

int32_t shortcut_at(const Residual& residual, int64_t place, int64_t column) {
  if (residual.shortcut_is_wide) return static_cast<const int32_t*>(residual.shortcut)[place];
  const int32_t byte = static_cast<const uint8_t*>(residual.shortcut)[place];
  const ByteBlocks& scale = residual.shortcut_scale;
  const int32_t* block = reinterpret_cast<const int32_t*>(scale.data + column / kLanes * scale.stride) + column % kLanes;
  const int32_t low = static_cast<int16_t>(block[0]), high = block[kLanes], low_add = block[2 * kLanes], high_add = block[3 * kLanes];
  return (byte * high + high_add + ((byte * low + low_add) >> 16)) >> block[4 * kLanes];
}

int32_t sum_of(const Residual& residual, int64_t place, int64_t column, int32_t sums) {
  if (residual.shifted.data != nullptr) return shifted_sum(residual, place, column, sums);
  return wrap_add(rescaled(residual.scale, column, sums), shortcut_at(residual, place, column));
}

void residual8(const ProductTask& task, const Residual& residual, int64_t columns, uint8_t* to, int64_t pitch) {
  int32_t tile_sums[kMaxTileRows * 2 * kLanes];
  sums<int8_t>(task, tile_sums);
  for (int64_t r = 0; r < task.row_count; ++r) {
    for (int64_t column = 0; column < columns; ++column) {
      to[r * pitch + column] = byte_of(residual.out, column,
                                       sum_of(residual, r * residual.shortcut_pitch + column, column,
                                              tile_sums[r * task.vectors * kLanes + column]));
    }
  }
}

void wide8(const ProductTask& task, const ToWide& out, int64_t columns, int32_t* to, int64_t pitch) {
  int32_t tile_sums[kMaxTileRows * 2 * kLanes];
  sums<int8_t>(task, tile_sums);
  const ToBytes bytes{out.scale, out.low, out.high};
  for (int64_t r = 0; r < task.row_count; ++r) {
    for (int64_t column = 0; column < columns; ++column) {
      const int32_t sum = tile_sums[r * task.vectors * kLanes + column];
      to[r * pitch + column] = out.scale.form == ScaleForm::bytes ? wrap_add(byte_of(bytes, column, sum), out.add) : rescaled(out.scale, column, sum);
    }
  }
}

// In the form words.
int32_t word_of(const ScaleBlocks& scale, int64_t column, int32_t x) {
  const Lane lane = lane_of(scale, column);
  return static_cast<int32_t>(((int64_t{x} * lane.multiplier + lane.half) >> 32) >> lane.last);
}

void words8(const ProductTask& task, const ToWords& out, int64_t columns, int16_t* to, int64_t pitch) {
  int32_t tile_sums[kMaxTileRows * 2 * kLanes];
  sums<int8_t>(task, tile_sums);
  for (int64_t r = 0; r < task.row_count; ++r) {
    for (int64_t column = 0; column < columns; ++column) {
      const int32_t sum = tile_sums[r * task.vectors * kLanes + column];
      const int32_t y = out.scale.form == ScaleForm::words ? word_of(out.scale, column, sum) : rescaled(out.scale, column, sum);
      to[r * pitch + column] = static_cast<int16_t>(y < out.low ? out.low : y > out.high ? out.high : y);
    }
  }
}

void widen(const uint8_t* from, int64_t count, int16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Single integers modulo 2^16 and 2^32 for Winograd's transforms.
struct ShortInteger {
  using Vector = uint32_t;
  static constexpr int64_t kLanes = 1;
  static Vector all(int16_t x) { return static_cast<uint32_t>(x); }
  static Vector pixels(const uint8_t* from, int64_t) { return *from; }
  static void store(Vector x, int64_t, int16_t* to) { *to = static_cast<int16_t>(x); }
  static Vector add(Vector x, Vector y) { return x + y; }
  static Vector subtract(Vector x, Vector y) { return x - y; }
  template <int kBits>
  static Vector shift_left(Vector x) {
    return x << kBits;
  }
};

struct Integer : ShortInteger {
  static Vector load(const int32_t* from) { return static_cast<uint32_t>(*from); }
  static void store(Vector x, int64_t, int32_t* to) { *to = static_cast<int32_t>(x); }
  static Vector divide_by_576(Vector x) { return static_cast<uint32_t>(static_cast<int32_t>(x * kNinth) >> 6); }
};

int64_t peak(int64_t rounds) {
  constexpr int64_t kDepth = 64;
  static int16_t x[kRows][kDepth];
  static int8_t weights[kDepth * 2 * kLanes];
  static int32_t bias[2 * kLanes];
  const void* rows[kMaxTileRows];
  for (int64_t r = 0; r < kRows; ++r) rows[r] = x[r];
  int32_t out[kRows * 2 * kLanes];
  const ProductTask task{rows, 1, kDepth, weights, bias, kRows, 2};
  for (int64_t round = 0; round < rounds; ++round) {
    sums<int8_t>(task, out);
    volatile int32_t sink = out[0];
    (void)sink;
  }
  return rounds * kRows * kDepth * 2 * kLanes;
}

}  // namespace

extern const ProductKernels kProductsPortable;
const ProductKernels kProductsPortable = {kLanes,        kRows,           kStep,  kStep,     true,
                                          sums<int8_t>,  sums<int16_t>,   bytes8, residual8, wide8,
                                          words8, nullptr, nullptr,       widen,         transform_tile<ShortInteger>, untransform_tiles<Integer>, peak};

}  // namespace cvm
