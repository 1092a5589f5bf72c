// What stages, loads and stores of element-wise chains ask of an instruction set.
#pragma once

#include <stdint.h>

namespace cvm {

// A tile of 32-bit integers, dense: `rows` x `width`. `channel` is the place of column 0 on the last axis.
struct Tile {
  int64_t rows;
  int64_t width;
  int64_t channel;
};

// A rescale, ready to run: per tensor (count 1) or per channel. `wide`: some result may leave 32 bits before it
// saturates. Every shift lies from least_shift to most_shift.
struct Rescale {
  const int32_t* multiplier;
  const int32_t* shift;
  int64_t count;
  int32_t input_zero_point;
  int32_t output_zero_point;
  int32_t low;  // of the result, which saturates there
  int32_t high;
  bool wide;
  int32_t least_shift = 2;
  int32_t most_shift = 62;
  const int32_t* input_zero_points = nullptr;  // one for each channel, instead of input_zero_point
};

// Rows of elements in memory, `pitch` of them apart: with a sign in 2 or 4 bytes, without one in 1.
template <typename Byte>
struct RowsOf {
  Byte* data;
  int64_t pitch;
  int64_t size;  // bytes of an element
};
using FromRows = RowsOf<const unsigned char>;
using ToRows = RowsOf<unsigned char>;

// The second integers of a tile: a row of them for each of its rows, `pitch` apart, or one integer that is repeated over it. The
// pitch is 0 where all rows share it.
struct Second {
  const int32_t* data;
  int64_t pitch;
  bool repeated;
};

struct ElementKernels {
  void (*rescale)(const Rescale&, const Tile&, const int32_t* x, int32_t* out);
  // The same from and to elements of any size; what does not fit wraps. Wide rescales go from 4 bytes to 4 bytes only.
  void (*rescale_rows)(const Rescale&, const Tile&, const FromRows& x, const ToRows& out);
  void (*clamp)(int32_t low, int32_t high, int64_t count, const int32_t* x, int32_t* out);
  void (*add)(const Tile&, const int32_t* x, const Second& y, int32_t* out);
  void (*sub)(const Tile&, const int32_t* x, const Second& y, int32_t* out);
  void (*mul)(const Tile&, const int32_t* x, const Second& y, int32_t* out);
  // floor(x y / 2^amount + 1/2), 1 <= amount <= 63.
  void (*mul_shifted)(int amount, const Tile&, const int32_t* x, const Second& y, int32_t* out);
  // x / divisor, rounded toward zero, 2 <= divisor.
  void (*divide)(int32_t divisor, int64_t count, const int32_t* x, int32_t* out);
  void (*maximum)(int64_t count, const int32_t* x, const int32_t* y, int32_t* out);
  void (*minimum)(int64_t count, const int32_t* x, const int32_t* y, int32_t* out);
  void (*abs)(int64_t count, const int32_t* x, int32_t* out);
  // By s modulo 32.
  void (*shift_left)(const Tile&, const int32_t* x, const Second& s, int32_t* out);
  void (*shift_right)(const Tile&, const int32_t* x, const Second& s, int32_t* out);
  void (*shift_right_rounded)(const Tile&, const int32_t* x, const Second& s, int32_t* out);
  // Rows of bytes to integers (byte - bias) and back (integer + bias, which must fit).
  void (*load8)(int32_t bias, int64_t width, const uint8_t* from, int32_t* out);
  void (*store8)(int32_t bias, int64_t width, const int32_t* x, uint8_t* to);
  void (*load16)(int64_t width, const int16_t* from, int32_t* out);
  void (*store16)(int64_t width, const int32_t* x, int16_t* to);
  // The low 8 or 16 bits, with their sign.
  void (*wrap8)(int64_t count, const int32_t* x, int32_t* out);
  void (*wrap16)(int64_t count, const int32_t* x, int32_t* out);
  // 128 times the value at x of the lines between 513 points, which stand at every 128th of the 2^16 integers.
  void (*interpolate)(const int16_t* points, int64_t count, const int32_t* x, int32_t* out);
  // Of at least one integer; sums wrap.
  int32_t (*sum)(int64_t count, const int32_t* x);
  int32_t (*greatest)(int64_t count, const int32_t* x);
  int32_t (*least)(int64_t count, const int32_t* x);
  void (*fill)(int32_t value, int64_t count, int32_t* out);
  // Rows of a matrix as 16-bit integers around a zero point; or two rows as pairs, from column to column.
  void (*centre8)(int32_t zero_point, int64_t count, const uint8_t* from, int16_t* to);
  void (*pair8)(int32_t zero_point, int64_t count, const uint8_t* first, const uint8_t* second, int16_t* to);
  void (*pair16)(int64_t count, const int16_t* first, const int16_t* second, int16_t* to);
  // Four rows of stored bytes as signed ones, side by side for each column; their sums are added to `sums`. Null where products
  // take no bytes.
  void (*quads8)(int64_t count, const uint8_t* const* rows, int8_t* to, int32_t* sums);
};

}  // namespace cvm
