// A plan as it comes through the door, before anything in it is believed: constants, operands, steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "instructions.h"
#include "status.h"
#include "tensor.h"

namespace cvm {

// Instructions by their opcodes in a program, and two things only plans have: `chain` is a step that is nothing but
// stages; `load` is the stage that reads a tensor.
enum class Opcode : int {
#define CVM_OPCODE(name, number) name##_ = number,
  CVM_STEPS(CVM_OPCODE) CVM_STAGES(CVM_OPCODE)
#undef CVM_OPCODE
      load_ = 200,
  chain_ = 201,
};

// The name in instructions.toml, or nullptr.
const char* name_of(Opcode opcode);

struct Constant {
  DType dtype = DType::i8;
  Shape shape;
  const std::byte* data = nullptr;  // plain and dense; the caller keeps it until the engine is made

  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(shape.elements())};
  }
};

class Attributes {
 public:
  void set(std::string name, std::vector<std::int64_t> values) {
    entries_.emplace_back(std::move(name), std::move(values));
  }
  // The integers of one attribute, or nullptr unless it is there and holds `count` of them (-1: any number).
  const std::vector<std::int64_t>* find(std::string_view name, int count) const;

 private:
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> entries_;
};

// One element-wise operation. Registers are numbered in order of definition; where the step has an accumulator it is
// register 0. Every stage defines the next one; the last is the step's result.
struct StageSpec {
  Opcode opcode = Opcode::load_;
  std::vector<int> sources;              // registers
  int operand = -1;                      // for load: which of the step's operands
  std::vector<std::int64_t> parameters;  // numbers of constants
  Attributes attributes;
};

struct StepSpec {
  Opcode opcode = Opcode::chain_;
  std::vector<Operand> operands;  // those of the instruction that are not parameters, then those that stages load
  std::vector<std::int64_t> parameters;
  Operand result;
  Attributes attributes;
  std::vector<StageSpec> stages;
};

struct PlanSpec {
  std::vector<Operand> inputs, outputs;  // only dtype and shape count
  std::vector<Constant> constants;
  std::int64_t arena_bytes = 0;
  std::vector<StepSpec> steps;
};

}  // namespace cvm
