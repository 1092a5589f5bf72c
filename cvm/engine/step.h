// One step of a plan, checked and ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "packings.h"
#include "plan.h"

namespace cvm {

// Where the values of one run lie.
struct Buffers {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::span<const std::byte* const> constants;  // in stored form; null for those that only serve as parameters
  std::byte* arena = nullptr;
  std::byte* passed = nullptr;
  bool every_result = false;  // somebody looks at what each step makes: all of it is written

  const std::byte* read(const Operand& operand) const {
    const auto place = static_cast<std::size_t>(operand.position);
    switch (operand.room) {
      case Room::input:
        return inputs[place];
      case Room::constant:
        return constants[place];
      case Room::passed:
        return passed;
      default:  // the door lets no step read an output
        return arena + operand.position;
    }
  }
  std::byte* write(const Operand& operand) const {
    if (operand.room == Room::passed) return passed;
    return operand.room == Room::output ? outputs[static_cast<std::size_t>(operand.position)]
                                        : arena + operand.position;
  }
};

// A share of a step's pieces: begin <= piece < end.
struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The work is cut into pieces that may run in any order and on any thread, each writing its own part of the result.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  virtual std::int64_t pieces() const = 0;
  virtual std::int64_t scratch_bytes() const { return 0; }  // for each thread
  virtual std::int64_t multiply_accumulates() const { return 0; }
  // Where its sums become the result: in "registers", by a "tile" in the nearest cache that passes through registers,
  // or by the "chain" in memory; "" if it has no such choice.
  virtual const char* epilogue() const { return ""; }
  // How its products are computed: "bytes", "blocks" of rows, "words" or "winograd"; "" where nothing is chosen.
  virtual const char* products() const { return ""; }
  // `former` passes its result to this step. Returns true if this step computes that result itself from now on, tile by
  // tile in the nearest cache. Then the former need not run, unless every result is wanted.
  virtual bool take([[maybe_unused]] const Kernel& former) { return false; }
  virtual void run(const Buffers& buffers, Part part, std::byte* scratch) const = 0;
};

using Made = Expected<std::unique_ptr<Kernel>>;

// What a maker may look at. The door has checked that every operand lies inside its room, that its element count is one
// a program may have, that the result overlaps no operand but a shortcut of products in the same place, and that parameters are
// numbers of constants.
struct StepCall {
  const StepSpec& spec;
  std::span<const Constant> constants;
  const Kernels& kernels;
  Packings& packings;

  bool takes(std::size_t operands, std::size_t parameters) const {
    return spec.operands.size() == operands && spec.parameters.size() == parameters && spec.stages.empty();
  }
  const Operand& operand(std::size_t index) const { return spec.operands[index]; }
  const Operand& result() const { return spec.result; }
  const Constant& parameter(std::size_t index) const {
    return constants[static_cast<std::size_t>(spec.parameters[index])];
  }
  // The integers of an attribute, or nullptr unless there are `count` of them (-1: any number).
  const std::vector<std::int64_t>* ints(std::string_view name, int count) const {
    return spec.attributes.find(name, count);
  }
};

#define CVM_STEP_MAKER(name, number) Made make_step_##name(const StepCall& call);
CVM_STEPS(CVM_STEP_MAKER)
#undef CVM_STEP_MAKER
Made make_step_chain(const StepCall& call);

// The maker of any step, or nullptr for what is a stage.
using StepMaker = Made (*)(const StepCall&);
StepMaker step_maker_of(Opcode opcode);

}  // namespace cvm
