// Checks the operands, parameters and attributes that convolutions and dense share.
#include "geometry.h"

#include "linear_weights.h"

namespace cvm {
namespace {

constexpr std::int64_t kMaxStep = std::int64_t{1} << 20;  // SPEC conv2d.C5

bool inside(const std::vector<std::int64_t>* values, std::int64_t low, std::int64_t high) {
  if (values == nullptr) return false;
  for (std::int64_t value : *values) {
    if (value < low || value > high) return false;
  }
  return true;
}

// What x, w, b and the zero point must be, whatever the instruction; fills in the zero point and pitch.
Problem check_tensors(const StepCall& call, int rank, bool halves, ConvGeometry& geometry) {
  CVM_REQUIRE(!call.spec.operands.empty(), "takes x, w and b");
  const Problem wrong = check_weights(call, halves);
  if (!wrong.empty()) return wrong;
  const Operand& x = call.operand(0);
  const bool bytes = x.dtype == DType::i8 && !x.external();
  CVM_REQUIRE(x.shape.rank == rank && (bytes || (x.dtype == DType::i16 && x.dense())),
              "x is neither a stored i8 nor a dense i16 of the right rank");
  CVM_REQUIRE(call.parameter(0).shape.rank == rank, "w is not of the right rank");
  const auto* zero_point = call.ints("input_zp", 1);
  CVM_REQUIRE(zero_point && (bytes ? inside(zero_point, -128, 127) : (*zero_point)[0] == 0), "input_zp does not fit x");
  geometry.zero_point = (*zero_point)[0] + (bytes ? 128 : 0);
  geometry.pixel_pitch = x.pitch;
  return {};
}

Problem check_result(const StepCall& call, const Shape& expected) {
  CVM_REQUIRE(call.result().shape == expected, "the result's shape is wrong");
  return {};
}

// Shapes and groups of both convolutions.
Problem read_image(const StepCall& call, bool halves, ConvGeometry& geometry) {
  const Problem wrong = check_tensors(call, 4, halves, geometry);
  if (!wrong.empty()) return wrong;
  const Shape &x = call.operand(0).shape, &w = call.parameter(0).shape;
  const auto* groups = call.ints("groups", 1);
  CVM_REQUIRE(inside(groups, 1, kMaxElements) && w[0] % (*groups)[0] == 0 && x[3] % (*groups)[0] == 0 &&
                  w[3] == x[3] / (*groups)[0],
              "groups do not divide the channels");
  geometry.batch = x[0], geometry.height = x[1], geometry.width = x[2], geometry.channels = x[3];
  geometry.outputs = w[0], geometry.kernel_height = w[1], geometry.kernel_width = w[2];
  geometry.groups = (*groups)[0];
  return {};
}

// Places of the kernel along one axis of size `size` with pads; -1 unless they divide exactly. A plan that left out the
// `slice` before a convolution `trims`: what no whole step reaches is not read.
std::int64_t places(std::int64_t size, std::int64_t pads, std::int64_t kernel, std::int64_t stride,
                    std::int64_t dilation, bool trims) {
  const std::int64_t room = size + pads - (kernel - 1) * dilation - 1;
  return room < 0 || (room % stride != 0 && !trims) ? -1 : room / stride + 1;
}

}  // namespace

Expected<ConvGeometry> conv2d_geometry(const StepCall& call) {
  ConvGeometry geometry{};
  Problem wrong = read_image(call, true, geometry);
  if (!wrong.empty()) return wrong;
  const auto *pad = call.ints("pad", 4), *stride = call.ints("stride", 2), *dilation = call.ints("dilation", 2);
  CVM_REQUIRE(inside(pad, 0, kMaxStep) && inside(stride, 1, kMaxStep) && inside(dilation, 1, kMaxStep),
              "pad, stride or dilation is missing or out of range");
  geometry.pad_top = (*pad)[0], geometry.pad_left = (*pad)[2];
  geometry.stride_down = (*stride)[0], geometry.stride_right = (*stride)[1];
  geometry.dilation_down = (*dilation)[0], geometry.dilation_right = (*dilation)[1];
  const auto* trimmed = call.ints("trims", 1);
  const bool trims = trimmed && (*trimmed)[0] == 1;
  geometry.out_height =
      places(geometry.height, (*pad)[0] + (*pad)[1], geometry.kernel_height, (*stride)[0], (*dilation)[0], trims);
  geometry.out_width =
      places(geometry.width, (*pad)[2] + (*pad)[3], geometry.kernel_width, (*stride)[1], (*dilation)[1], trims);
  CVM_REQUIRE(geometry.out_height >= 1 && geometry.out_width >= 1, "the output size does not divide exactly");
  wrong = check_result(call, {4, {geometry.batch, geometry.out_height, geometry.out_width, geometry.outputs}});
  if (!wrong.empty()) return wrong;
  return geometry;
}

Expected<ConvGeometry> conv2d_transpose_geometry(const StepCall& call) {
  ConvGeometry geometry{};
  Problem wrong = read_image(call, false, geometry);
  if (!wrong.empty()) return wrong;
  const auto *pad = call.ints("out_pad", 4), *stride = call.ints("stride", 2);
  CVM_REQUIRE(inside(pad, -kMaxElements, kMaxStep) && inside(stride, 1, kMaxStep),
              "out_pad or stride is missing or out of range");
  CVM_REQUIRE((*pad)[0] > -geometry.kernel_height && (*pad)[1] > -geometry.kernel_height &&
                  (*pad)[2] > -geometry.kernel_width && (*pad)[3] > -geometry.kernel_width,
              "out_pad cuts more than the kernel");
  geometry.pad_top = (*pad)[0], geometry.pad_left = (*pad)[2];
  geometry.stride_down = (*stride)[0], geometry.stride_right = (*stride)[1];
  geometry.dilation_down = geometry.dilation_right = 1;
  geometry.out_height = (geometry.height - 1) * (*stride)[0] + (*pad)[0] + (*pad)[1] + geometry.kernel_height;
  geometry.out_width = (geometry.width - 1) * (*stride)[1] + (*pad)[2] + (*pad)[3] + geometry.kernel_width;
  CVM_REQUIRE(geometry.out_height >= 1 && geometry.out_width >= 1, "the output size is not positive");
  wrong = check_result(call, {4, {geometry.batch, geometry.out_height, geometry.out_width, geometry.outputs}});
  if (!wrong.empty()) return wrong;
  return geometry;
}

Expected<ConvGeometry> dense_geometry(const StepCall& call) {
  ConvGeometry geometry{};
  Problem wrong = check_tensors(call, 2, true, geometry);
  if (!wrong.empty()) return wrong;
  const Shape &x = call.operand(0).shape, &w = call.parameter(0).shape;
  CVM_REQUIRE(w[1] == x[1], "w does not have as many columns as x");
  geometry.batch = x[0], geometry.channels = x[1], geometry.outputs = w[0];
  geometry.height = geometry.width = geometry.out_height = geometry.out_width = 1;
  geometry.kernel_height = geometry.kernel_width = geometry.groups = 1;
  geometry.stride_down = geometry.stride_right = geometry.dilation_down = geometry.dilation_right = 1;
  const Operand& result = call.result();
  CVM_REQUIRE(result.shape.last() == w[0] && result.rows() == x[0], "the result has not x's rows of w's rows");
  return geometry;
}

}  // namespace cvm
