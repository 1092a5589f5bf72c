// Places operands and results.
#include "fuzz/draft.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cvm::fuzz {
namespace {

// Dense, as inputs, outputs and constants are.
Operand dense(Room room, std::size_t position, DType dtype, const Shape& shape) {
  return {room, static_cast<std::int64_t>(position), dtype, shape, shape.last()};
}

void write_integer(std::byte* to, DType dtype, std::int64_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  const auto half = static_cast<std::uint16_t>(word);
  const auto byte = static_cast<std::uint8_t>(word);
  if (size_of(dtype) == 1) std::memcpy(to, &byte, 1);
  if (size_of(dtype) == 2) std::memcpy(to, &half, 2);
  if (size_of(dtype) == 4) std::memcpy(to, &word, 4);
}

}  // namespace

std::int64_t size_in_bytes(DType dtype, const Shape& shape) { return shape.elements() * size_of(dtype); }

Shape random_shape(Random& random, int rank, std::int64_t most) {
  Shape shape{rank, {}};
  for (int axis = rank - 1; axis >= 0; --axis) {
    const std::int64_t longest = most < 9 || random.one_in(8) ? most : 9;
    shape[axis] = random.one_in(4) ? 1 : random.between(1, longest);
    most /= shape[axis];
  }
  return shape;
}

std::int64_t Draft::constant(DType dtype, const Shape& shape, std::int64_t low, std::int64_t high) {
  const std::int64_t size = size_of(dtype), count = shape.elements();
  plan_.storage.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(count * size)));
  std::byte* data = plan_.storage.back().get();
  for (std::int64_t i = 0; i < count; ++i) write_integer(data + i * size, dtype, random_.between(low, high));
  plan_.spec.constants.push_back({dtype, shape, data});
  return static_cast<std::int64_t>(plan_.spec.constants.size()) - 1;
}

Operand Draft::input(DType dtype, const Shape& shape) {
  plan_.spec.inputs.push_back(dense(Room::input, plan_.spec.inputs.size(), dtype, shape));
  return plan_.spec.inputs.back();
}

// A new place in the arena, with `gap` elements between rows; half of them lie before the first one.
Operand Draft::place(DType dtype, const Shape& shape, std::int64_t gap) {
  std::int64_t& end = plan_.spec.arena_bytes;
  const std::int64_t size = size_of(dtype), alignment = random_.one_in(2) ? 64 : 4;
  end = (end + alignment - 1) / alignment * alignment;
  Operand operand{Room::arena, end + gap / 2 * size, dtype, shape, shape.last() + gap};
  end += operand.rows() * operand.pitch * size;
  return operand;
}

void Draft::copy(std::vector<StepSpec>& steps, const Operand& from, const Operand& to) {
  StepSpec step{Opcode::reshape_, {from}, {}, to, {}, {}};
  step.attributes.set("shape", {to.shape.dims.begin(), to.shape.dims.begin() + to.shape.rank});
  steps.push_back(std::move(step));
}

void Draft::operand(DType dtype, const Shape& shape, Bytes bytes, Rows rows) {
  const bool outside = dtype != DType::i8 || bytes == Bytes::any;
  Operand operand;
  if (random_.one_in(4)) {
    const std::int64_t number = constant(dtype, shape, lowest(dtype), highest(dtype));
    operand = dense(Room::constant, static_cast<std::size_t>(number), dtype, shape);
  } else if (outside && random_.one_in(2)) {
    operand = input(dtype, shape);
  } else {
    const Operand source = input(dtype, shape);
    operand = place(dtype, shape, rows == Rows::any && random_.one_in(3) ? random_.between(1, 40) : 0);
    copy(before_, source, operand);
  }
  step_.operands.push_back(operand);
}

void Draft::constant_operand(DType dtype, int rank, std::int64_t low, std::int64_t high) {
  Shape shape{rank, {}};
  std::fill_n(shape.dims.begin(), rank, 1);
  const auto number = static_cast<std::size_t>(constant(dtype, shape, low, high));
  step_.operands.push_back(dense(Room::constant, number, dtype, shape));
}

// In the arena, the result lies on a canvas that comes from an input and goes to an output, so that bytes beside it
// count.
void Draft::result(DType dtype, const Shape& shape, Bytes bytes, Rows rows) {
  if ((dtype != DType::i8 || bytes == Bytes::any) && random_.one_in(2)) {
    plan_.spec.outputs.push_back(dense(Room::output, plan_.spec.outputs.size(), dtype, shape));
    step_.result = plan_.spec.outputs.back();
    return;
  }
  const std::int64_t gap = rows == Rows::any && random_.one_in(2) ? random_.between(1, 40) : 0;
  step_.result = place(dtype, shape, gap);
  Operand canvas = step_.result;
  canvas.position -= gap / 2 * size_of(dtype);
  canvas.shape = {2, {step_.result.rows(), step_.result.pitch}};
  copy(before_, input(dtype, canvas.shape), canvas);
  plan_.spec.outputs.push_back(dense(Room::output, plan_.spec.outputs.size(), dtype, canvas.shape));
  copy(after_, canvas, plan_.spec.outputs.back());
}

void Draft::pass(DType dtype, const Shape& shape) {
  step_.result = dense(Room::passed, 0, dtype, shape);
  former_.push_back(std::exchange(step_, {}));
}

void Draft::passed_operand() { step_.operands.push_back(former_.back().result); }

// Perhaps moves a shortcut of products to where their sums are written.
void Draft::overwrite_shortcut() {
  const bool products = step_.opcode == Opcode::conv2d_ || step_.opcode == Opcode::dense_;
  if (!products || step_.result.room != Room::arena || random_.one_in(4)) return;
  for (std::size_t number = 1; number < step_.operands.size(); ++number) {
    Operand& shortcut = step_.operands[number];
    if (shortcut.room == Room::passed || shortcut.dtype != step_.result.dtype || shortcut.shape != step_.result.shape) continue;
    copy(before_, shortcut, step_.result);  // behind that of the canvas around it
    shortcut = step_.result;
    return;
  }
}

RandomPlan Draft::finish() {
  overwrite_shortcut();
  auto& steps = plan_.spec.steps;
  steps = std::move(before_);
  for (StepSpec& step : former_) steps.push_back(std::move(step));
  steps.push_back(std::move(step_));
  for (StepSpec& step : after_) steps.push_back(std::move(step));
  return std::move(plan_);
}

}  // namespace cvm::fuzz
