// Convolutions, dense and matmul, with sizes on both sides of what kernels cut at.
#include "fuzz/random_plan.h"

namespace cvm::fuzz {
namespace {

Shape vector_of(std::int64_t length) { return {1, {length}}; }

DType draw_x(Draft& d) { return d.random().one_in(3) ? DType::i16 : DType::i8; }

// What stands for places outside x: of bytes often the least, which is stored as 0.
std::int64_t draw_zero_point(Draft& d, DType dtype) {
  if (dtype == DType::i16) return 0;
  return d.random().one_in(3) ? -128 : d.random().between(-128, 127);
}

// x, which is stored if i8 and dense if i16; its zero point.
void draw_x_operand(Draft& d, DType dtype, const Shape& shape) {
  d.operand(dtype, shape, Bytes::stored, dtype == DType::i16 ? Rows::dense : Rows::any);
  d.step().attributes.set("input_zp", {draw_zero_point(d, dtype)});
}

// w and b, as the step's parameters. Small weights suit kernels that add products of bytes in 16 bits.
void draw_weights(Draft& d, const Shape& shape) {
  const std::int64_t most = 128 >> (d.random().one_in(2) ? d.random().between(1, 3) : 0);
  const std::int64_t w = d.constant(DType::i8, shape, -most, most - 1);
  const std::int64_t b = d.constant(DType::i32, vector_of(shape[0]), -100000, 100000);
  d.step().parameters = {w, b};
}

// The same, perhaps in halves, which only an x of 16 bits may have.
void draw_weights_of(Draft& d, DType x, const Shape& shape) {
  draw_weights(d, shape);
  if (x != DType::i16 || d.random().one_in(2)) return;
  const std::vector<std::int64_t> low = d.step().parameters;
  draw_weights(d, shape);
  d.step().parameters.insert(d.step().parameters.begin(), low.begin(), low.end());
  d.step().attributes.set("low_bits", {d.random().between(1, 7)});
}

struct Side {  // one axis of a convolution
  std::int64_t size, out, kernel, stride, dilation, before, after;
};

// Chooses the output first, so that every division is exact; what is missing becomes padding.
Side draw_side(Random& random) {
  Side side{1, random.between(1, 9), random.between(1, 4), random.between(1, 3), random.between(1, 2), 0, 0};
  if (random.one_in(8)) side.out = random.between(1, 40);
  const std::int64_t span = (side.out - 1) * side.stride + (side.kernel - 1) * side.dilation + 1;
  side.before = random.between(0, 2), side.after = random.between(0, 2);
  while (side.before + side.after >= span) side.before /= 2, side.after /= 2;
  side.size = span - side.before - side.after;
  return side;
}

void draw_conv2d(Draft& d, std::int64_t groups, std::int64_t group_channels, std::int64_t group_outputs) {
  Random& random = d.random();
  d.step().opcode = Opcode::conv2d_;
  Side down = draw_side(random), right = draw_side(random);
  if (random.one_in(3)) {  // a plain 3 x 3, which has kernels of its own
    const std::int64_t stride = random.between(1, 2), height = random.between(1, 5), width = random.between(1, 20);
    down = {(height - 1) * stride + 1, height, 3, stride, 1, 1, 1};
    right = {(width - 1) * stride + 1, width, 3, stride, 1, 1, 1};
  }
  const std::int64_t batch = random.between(1, 2);
  const DType x = draw_x(d);
  draw_x_operand(d, x, {4, {batch, down.size, right.size, groups * group_channels}});
  const bool multiplied = groups > 1 && group_channels == 1 && group_outputs > 1;
  draw_weights_of(d, multiplied ? DType::i8 : x, {4, {groups * group_outputs, down.kernel, right.kernel, group_channels}});
  auto& attributes = d.step().attributes;
  attributes.set("pad", {down.before, down.after, right.before, right.after});
  attributes.set("stride", {down.stride, right.stride});
  attributes.set("dilation", {down.dilation, right.dilation});
  attributes.set("groups", {groups});
  draw_epilogue(d, {4, {batch, down.out, right.out, groups * group_outputs}});
}

void draw_products(Draft& d) {
  const std::int64_t groups = d.random().one_in(4) ? d.random().between(2, 3) : 1;
  const std::int64_t channels = d.random().one_in(2) ? 4 * d.random().between(1, 8) : d.random().between(1, 33);
  const std::int64_t outputs = d.random().between(1, 70);
  draw_conv2d(d, groups, groups > 1 ? channels + 1 : channels, outputs);
}

// 1 x 1, or 3 x 3 that keeps the size, to these pixels and outputs; perhaps of every second pixel.
void draw_conv2d_to(Draft& d, const Shape& y) {
  Random& random = d.random();
  d.step().opcode = Opcode::conv2d_;
  const std::int64_t kernel = random.one_in(3) ? 3 : 1, stride = random.one_in(3) ? 2 : 1, pad = kernel / 2;
  const std::int64_t channels = random.one_in(3) ? 64 * random.between(1, 3) : random.between(1, 40);
  draw_x_operand(d, random.one_in(6) ? DType::i16 : DType::i8, {4, {y[0], (y[1] - 1) * stride + 1, (y[2] - 1) * stride + 1, channels}});
  draw_weights(d, {4, {y[3], kernel, kernel, channels}});
  auto& attributes = d.step().attributes;
  attributes.set("pad", {pad, pad, pad, pad});
  attributes.set("stride", {stride, stride});
  attributes.set("dilation", {1, 1});
  attributes.set("groups", {1});
}

void draw_passed(Draft& d) {
  Random& random = d.random();
  const Shape shape{4, {random.between(1, 2), random.between(1, 6), random.between(1, 20), random.between(1, 70)}};
  draw_conv2d_to(d, shape);
  draw_passed_sums(d, shape);
  draw_conv2d_to(d, shape);
  draw_sum_with_passed(d, shape);
}

// Depths for which kernels take whole blocks of rows.
void draw_deep_products(Draft& d) {
  const std::int64_t channels = d.random().one_in(2) ? 64 * d.random().between(1, 4) : d.random().between(190, 260);
  draw_conv2d(d, 1, channels, d.random().between(1, 40));
}

// 3 x 3 of stride 1 with channels enough that products are worth saving; the sums fit 26 bits, as `fits26` claims.
void draw_winograd(Draft& d) {
  Random& random = d.random();
  d.step().opcode = Opcode::conv2d_;
  const bool large = random.one_in(4);  // enough for processors that multiply bytes fast
  const std::int64_t batch = random.between(1, 2), height = random.between(1, large ? 12 : 7), width = random.between(1, 12);
  const std::int64_t channels = random.between(16, large ? 72 : 40), outputs = random.between(16, large ? 72 : 40);
  draw_x_operand(d, DType::i8, {4, {batch, height, width, channels}});
  draw_weights(d, {4, {outputs, 3, 3, channels}});
  auto& attributes = d.step().attributes;
  attributes.set("pad", {1, 1, 1, 1});
  attributes.set("stride", {1, 1});
  attributes.set("dilation", {1, 1});
  attributes.set("groups", {1});
  attributes.set("fits26", {1});
  draw_epilogue(d, {4, {batch, height, width, outputs}});
}

void draw_depthwise(Draft& d) { draw_conv2d(d, d.random().between(2, 140), 1, 1); }

void draw_multiplied(Draft& d) {
  const std::int64_t groups = d.random().between(2, 80);
  draw_conv2d(d, groups, 1, d.random().between(2, 3));
}

// One axis of a transposed convolution with one output or more.
Side draw_transposed_side(Random& random, std::int64_t most) {
  Side side{random.between(1, most), 0, random.between(1, 5), random.between(1, 3), 1, 0, 0};
  side.before = random.between(1 - side.kernel, 2), side.after = random.between(1 - side.kernel, 2);
  const auto out = [&] { return (side.size - 1) * side.stride + side.before + side.after + side.kernel; };
  while (out() < 1) ++(side.before < side.after ? side.before : side.after);
  side.out = out();
  return side;
}

void draw_transposed(Draft& d) {
  Random& random = d.random();
  d.step().opcode = Opcode::conv2d_transpose_;
  const Side down = draw_transposed_side(random, 6), right = draw_transposed_side(random, random.one_in(4) ? 90 : 6);
  const std::int64_t groups = random.one_in(3) ? random.between(2, 20) : 1, channels = random.between(1, groups > 1 ? 17 : 40);
  const std::int64_t group_channels = groups > 3 ? 1 : channels, batch = random.between(1, 2);
  const std::int64_t outputs = groups * random.between(1, random.one_in(3) ? 1 : groups > 3 ? 2 : groups > 1 ? 20 : 40);
  draw_x_operand(d, draw_x(d), {4, {batch, down.size, right.size, groups * group_channels}});
  draw_weights(d, {4, {outputs, down.kernel, right.kernel, group_channels}});
  d.step().attributes.set("out_pad", {down.before, down.after, right.before, right.after});
  d.step().attributes.set("stride", {down.stride, right.stride});
  d.step().attributes.set("groups", {groups});
  draw_epilogue(d, {4, {batch, down.out, right.out, outputs}});
}

// The same rows under one more axis, perhaps.
Shape reshaped(Random& random, const Shape& shape) {
  if (!random.one_in(3)) return shape;
  if (shape.rank == 2) return {3, {1, shape[0], shape[1]}};
  return random.one_in(2) ? Shape{2, {shape[0] * shape[1], shape[2]}} : Shape{4, {1, shape[0], shape[1], shape[2]}};
}

void draw_dense(Draft& d) {
  Random& random = d.random();
  d.step().opcode = Opcode::dense_;
  const std::int64_t rows = random.between(1, 9), depth = random.between(1, 70), outputs = random.between(1, 70);
  const DType x = draw_x(d);
  draw_x_operand(d, x, {2, {rows, depth}});
  draw_weights_of(d, x, {2, {outputs, depth}});
  draw_epilogue(d, reshaped(random, {2, {rows, outputs}}));
}

void draw_matmul(Draft& d) {
  Random& random = d.random();
  d.step().opcode = Opcode::matmul_;
  const DType dtype = draw_x(d);
  const std::int64_t batch = random.between(1, 3), rows = random.between(1, random.one_in(4) ? 70 : 9);
  const std::int64_t depth = random.one_in(8) ? random.between(1000, 1100) : random.between(1, 40);
  const std::int64_t columns = random.between(1, depth > 100 ? 5 : 140);
  d.operand(dtype, {3, {batch, rows, depth}}, Bytes::stored);
  d.operand(dtype, {3, {batch, depth, columns}}, Bytes::stored);
  for (const char* name : {"a_zp", "b_zp"}) {
    d.step().attributes.set(name, {dtype == DType::i8 && !random.one_in(3) ? random.between(-128, 127) : 0});
  }
  draw_epilogue(d, reshaped(random, {3, {batch, rows, columns}}));
}

}  // namespace

void add_linear_subjects(std::vector<Subject>& list) {
  list.insert(list.end(), {{"conv2d", draw_products},
                           {"conv2d, deep", draw_deep_products},
                           {"conv2d, passed", draw_passed},
                           {"conv2d, 3 x 3", draw_winograd},
                           {"conv2d, depthwise", draw_depthwise},
                           {"conv2d, depthwise multiplied", draw_multiplied},
                           {"conv2d_transpose", draw_transposed},
                           {"dense", draw_dense},
                           {"matmul", draw_matmul}});
}

}  // namespace cvm::fuzz
