// The checks that every step shares.
#include "door.h"

namespace cvm {
namespace {

constexpr std::int64_t kMaxArenaBytes = std::int64_t{1} << 40;
constexpr std::size_t kMaxSteps = std::size_t{1} << 21;

Problem check_shape(const Shape& shape) {
  CVM_REQUIRE(shape.rank >= 0 && shape.rank <= kMaxRank, "rank is not 0..6");
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank; ++axis) {
    CVM_REQUIRE(shape[axis] >= 1 && shape[axis] <= kMaxElements / count,
                "a dimension is below 1 or there are too many elements");
    count *= shape[axis];
  }
  return {};
}

bool is_dtype(DType dtype) { return static_cast<int>(dtype) <= static_cast<int>(DType::i32); }

Problem check_listed(const std::vector<Operand>& list, const Operand& operand, const char* what) {
  CVM_REQUIRE(operand.position >= 0 && operand.position < static_cast<std::int64_t>(list.size()),
              std::string("there is no such ") + what);
  const Operand& declared = list[static_cast<std::size_t>(operand.position)];
  CVM_REQUIRE(
      operand.dtype == declared.dtype && operand.shape.elements() == declared.shape.elements() && operand.dense(),
      std::string("dtype, element count or pitch is not that of the ") + what);
  return {};
}

Problem check_place(const PlanSpec& plan, const Operand& operand) {
  switch (operand.room) {
    case Room::input:
      return check_listed(plan.inputs, operand, "input");
    case Room::output:
      return check_listed(plan.outputs, operand, "output");
    case Room::constant: {
      CVM_REQUIRE(operand.position >= 0 && operand.position < static_cast<std::int64_t>(plan.constants.size()),
                  "there is no such constant");
      const Constant& constant = plan.constants[static_cast<std::size_t>(operand.position)];
      CVM_REQUIRE(
          operand.dtype == constant.dtype && operand.shape.elements() == constant.shape.elements() && operand.dense(),
          "dtype, element count or pitch is not that of the constant");
      return {};
    }
    case Room::arena:
      // The pitch of a single row moves nothing; held below the arena's size, what is computed from it stays small,
      // too.
      CVM_REQUIRE(operand.position >= 0 && operand.position % size_of(operand.dtype) == 0 &&
                      operand.pitch <= plan.arena_bytes && operand.pitch <= kMaxArenaBytes / operand.rows() &&
                      operand.extent() <= plan.arena_bytes - operand.position,
                  "lies outside the arena or is not aligned");
      return {};
    case Room::passed:
      CVM_REQUIRE(operand.position == 0 && operand.dense() && operand.extent() <= kMaxArenaBytes,
                  "what is passed is not at position 0, is not dense or is too large");
      return {};
  }
  return "unknown room";
}

Problem check_operand(const PlanSpec& plan, const Operand& operand) {
  CVM_REQUIRE(is_dtype(operand.dtype), "unknown dtype");
  const Problem wrong = check_shape(operand.shape);
  CVM_REQUIRE(wrong.empty(), wrong);
  CVM_REQUIRE(operand.pitch >= operand.shape.last(), "pitch is less than the last axis");
  return check_place(plan, operand);
}

// Both have been checked by themselves. Parts of one concat interleave without sharing an element: same pitch (a single
// row has any), and columns apart.
bool interleaved(const Operand& a, const Operand& b) {
  const std::int64_t size = size_of(a.dtype), pitch = a.rows() == 1 ? b.pitch : a.pitch;
  if (a.dtype != b.dtype || (b.rows() != 1 && b.pitch != pitch) || (a.position - b.position) % size != 0) return false;
  const std::int64_t distance = (a.position - b.position) / size;
  const std::int64_t column = ((distance % pitch) + pitch) % pitch;  // of a, counted from b's first column
  return column >= b.shape.last() && column + a.shape.last() <= pitch;
}

bool overlap(const Operand& a, const Operand& b) {
  if (a.room != Room::arena || b.room != Room::arena) return a.room == b.room && a.position == b.position;
  const bool apart = a.position + a.extent() <= b.position || b.position + b.extent() <= a.position;
  return !apart && !interleaved(a, b);
}

// Whether this operand is a shortcut in the place of the result: products read it element by element, each just before they write its sum.
bool is_overwritten(const StepSpec& step, std::size_t number) {
  const Operand &operand = step.operands[number], &result = step.result;
  return number > 0 && (step.opcode == Opcode::conv2d_ || step.opcode == Opcode::dense_) && operand.room == Room::arena &&
         result.room == Room::arena && operand.position == result.position && operand.pitch == result.pitch &&
         operand.dtype == result.dtype && operand.shape == result.shape;
}

Problem check_step(const PlanSpec& plan, const StepSpec& step) {
  CVM_REQUIRE(name_of(step.opcode) != nullptr, "unknown opcode");
  const Problem wrong_result = check_operand(plan, step.result);
  CVM_REQUIRE(wrong_result.empty(), "result: " + wrong_result);
  CVM_REQUIRE(step.result.room != Room::input && step.result.room != Room::constant, "the result's room cannot be written");
  for (std::size_t number = 0; number < step.operands.size(); ++number) {
    const Operand& operand = step.operands[number];
    const Problem wrong = check_operand(plan, operand);
    CVM_REQUIRE(wrong.empty(), "operand: " + wrong);
    CVM_REQUIRE(operand.room != Room::output, "operand: outputs are only written");
    CVM_REQUIRE(!overlap(operand, step.result) || is_overwritten(step, number), "the result overlaps an operand");
  }
  for (std::int64_t number : step.parameters) {
    CVM_REQUIRE(number >= 0 && number < static_cast<std::int64_t>(plan.constants.size()),
                "a parameter is not a constant");
  }
  return {};
}

// What is passed is the result of the step before. This step may compute it as it goes, so its own result overlaps no operand of that one.
Problem check_passed(const StepSpec& step, const StepSpec* former) {
  for (const Operand& operand : step.operands) {
    if (operand.room != Room::passed) continue;
    CVM_REQUIRE(former != nullptr && former->result.room == Room::passed && former->result.dtype == operand.dtype &&
                    former->result.shape == operand.shape,
                "an operand is not what the step before passes");
    for (const Operand& read : former->operands) {
      CVM_REQUIRE(!overlap(read, step.result), "the result overlaps an operand of the step that passes its own");
    }
  }
  return {};
}

Problem check_declared(const std::vector<Operand>& list) {
  for (const Operand& operand : list) {
    CVM_REQUIRE(is_dtype(operand.dtype), "an input or output has an unknown dtype");
    const Problem wrong = check_shape(operand.shape);
    CVM_REQUIRE(wrong.empty(), "an input or output: " + wrong);
  }
  return {};
}

}  // namespace

Problem check(const PlanSpec& plan) {
  CVM_REQUIRE(plan.arena_bytes >= 0 && plan.arena_bytes <= kMaxArenaBytes, "arena_bytes is not 0..2^40");
  CVM_REQUIRE(plan.steps.size() <= kMaxSteps, "too many steps");
  for (const auto* list : {&plan.inputs, &plan.outputs}) {
    const Problem wrong = check_declared(*list);
    if (!wrong.empty()) return wrong;
  }
  for (const Constant& constant : plan.constants) {
    CVM_REQUIRE(is_dtype(constant.dtype) && check_shape(constant.shape).empty(),
                "a constant has a wrong dtype or shape");
    const auto address = reinterpret_cast<std::uintptr_t>(constant.data);
    CVM_REQUIRE(address != 0 && address % static_cast<std::uintptr_t>(size_of(constant.dtype)) == 0,
                "a constant has no data or is not aligned");
  }
  for (std::size_t number = 0; number < plan.steps.size(); ++number) {
    const Problem wrong = check_step(plan, plan.steps[number]);
    CVM_REQUIRE(wrong.empty(), "step " + std::to_string(number) + ": " + wrong);
    const Problem wrongly_passed = check_passed(plan.steps[number], number == 0 ? nullptr : &plan.steps[number - 1]);
    CVM_REQUIRE(wrongly_passed.empty(), "step " + std::to_string(number) + ": " + wrongly_passed);
  }
  return {};
}

}  // namespace cvm
