// Sums of one channel each: a few neighbouring output pixels against the taps of one block of channels.
#pragma once

#include <stdint.h>

namespace cvm {

constexpr int64_t kPixelGroup =
    4;  // kernels compute so many output pixels at once, though they write no more than asked

// Output pixels 0..count-1 of one row, and the block of `lanes` channels that begins at `channel`. Input pixels are
// found through a table, in which places outside x are a pixel of zero points. The table goes on to a multiple of
// kPixelGroup.
//   General: slot s of output pixel j is pixels[j * slots + s].
//   Square (3 x 3, to the right no dilation and stride 1 or 2, downwards any): tap (p, q) of output pixel j is
//   pixels[p * columns + j * stride + q]; a row of the table ends one place after the last of them.
// Weights lie in the order slot / step, lane, step.
struct DepthwiseTask {
  const void* const* pixels;
  int64_t slots;
  int64_t columns;
  int64_t stride;  // to the right, of a square; 0 if general
  int64_t channel;
  const void* weights;
  int64_t count;
};

// A rescale in registers, for one block: ((sum * multiplier + offset) >> 32 >> shift) + zero_point, saturated to bytes, or to 16 bits
// where the result has them, and then held between low and high. Bytes are in stored form; the offsets contain the bias. Even and
// odd lanes lie apart because products of 64 bits do. Or, to bytes only, where `offset` is there: (sum * multiplier + offset) >> shift, modulo 2^32, and the
// offset contains the zero point, too. Or, where it is `by_halves`, what ScaleForm::half_bytes and half_words are, with the offset
// for the constant, of the sum and the bias.
struct DepthwiseScale {
  const int32_t* multiplier;
  const int32_t* shift;
  const int32_t* offset;
  const int64_t* even_offset;
  const int64_t* odd_offset;
  int16_t zero_point;
  int16_t low;
  int16_t high;
  bool by_halves = false;
  const int32_t* bias = nullptr;  // the one that the offsets contain, for kernels that add it
};

// Squares for so many neighbouring blocks at once, whose weights and scales follow each other; lane i of all of them holds channel
// order[i]. One block: there are no such kernels.
struct DepthwiseRuns {
  int64_t blocks = 1;
  const int8_t* order = nullptr;
  void (*bytes)(const DepthwiseTask&, const DepthwiseScale&, uint8_t* to, int64_t pitch) = nullptr;
  void (*words)(const DepthwiseTask&, const DepthwiseScale&, int16_t* to, int64_t pitch) = nullptr;  // where there is words16
};

struct DepthwiseKernels {
  int64_t lanes;         // channels in a block
  const int8_t* order;   // the channel in each lane: of weights, biases and scales; null: in order
  int64_t step8;         // slots taken at once from 8-bit pixels; `slots` is a multiple of it
  int64_t step16;        // the same for 16-bit pixels
  bool wide_weights;     // weights of 8-bit pixels are int16 (else int8); those of 16-bit pixels always are
  const int8_t* square;  // the tap, 3 p + q, in each slot of a square, or -1 for none; null: squares are not special
  int64_t square_slots;
  // Sums plus bias to int32, the first `columns` lanes, rows `pitch` apart. x is u8, or i16; of i16 no more than
  // `columns` lanes are read.
  void (*sums8)(const DepthwiseTask&, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch);
  void (*sums16)(const DepthwiseTask&, const int32_t* bias, int64_t columns, int32_t* to, int64_t pitch);
  // Bytes, the first `columns` of a block. Sums without bias fit 32 bits.
  void (*bytes8)(const DepthwiseTask&, const DepthwiseScale&, int64_t columns, uint8_t* to, int64_t pitch);
  void (*bytes16)(const DepthwiseTask&, const DepthwiseScale&, int64_t columns, uint8_t* to, int64_t pitch);
  DepthwiseRuns runs8 = {};   // of 8-bit pixels
  DepthwiseRuns runs16 = {};  // of 16-bit pixels
  // 16-bit integers, the first `columns` of a block, or null. Sums without bias fit 32 bits.
  void (*words16)(const DepthwiseTask&, const DepthwiseScale&, int64_t columns, int16_t* to, int64_t pitch) = nullptr;
  bool halves = false;     // they have scales by halves
  bool adds_bias = false;  // bytes8 and bytes16 add the bias to the sum, which must fit 32 bits, and look at no offset
};

}  // namespace cvm
