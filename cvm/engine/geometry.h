// The sizes of a convolution, read from a step and checked: every later computation with them fits 64 bits.
#pragma once

#include "step.h"

namespace cvm {

constexpr std::int64_t divide_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

struct ConvGeometry {
  std::int64_t batch, height, width, channels;  // x[N,H,W,C]
  std::int64_t out_height, out_width, outputs;  // y[N,OH,OW,O]
  std::int64_t kernel_height, kernel_width;     // w[O,KH,KW,C/groups]
  std::int64_t pad_top, pad_left;               // conv2d: pad; conv2d_transpose: out_pad, which may be negative
  std::int64_t stride_down, stride_right;
  std::int64_t dilation_down, dilation_right;  // conv2d_transpose: 1
  std::int64_t groups;
  std::int64_t pixel_pitch;  // elements from one pixel of x to the next
  std::int64_t zero_point;   // in the form in which x is stored

  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t group_outputs() const { return outputs / groups; }
  std::int64_t row() const { return kernel_height * kernel_width * group_channels(); }  // weights of an output
  std::int64_t out_pixels() const { return batch * out_height * out_width; }
  bool depthwise() const { return groups > 1 && groups == channels; }
};

// x is i8 (in the arena or a constant, so in stored form) or i16 (dense, anywhere); w and b are the parameters; the
// result has the last axis O, any pitch, and the dtype that the stages end with.
Expected<ConvGeometry> conv2d_geometry(const StepCall& call);
Expected<ConvGeometry> conv2d_transpose_geometry(const StepCall& call);

// dense as a convolution of one pixel per row: x[M,K] is x[M,1,1,K].
Expected<ConvGeometry> dense_geometry(const StepCall& call);

}  // namespace cvm
