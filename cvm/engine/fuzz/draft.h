// A plan around one step or two, with everything that it needs: operands in whatever room, a canvas around the result.
#pragma once

#include <memory>
#include <vector>

#include "fuzz/random.h"
#include "plan.h"

namespace cvm::fuzz {

struct RandomPlan {
  PlanSpec spec;
  std::vector<std::unique_ptr<std::byte[]>> storage;  // of constants
};

// Where a step can take or leave i8 integers: only as stored, or plain in inputs and outputs, too.
enum class Bytes { stored, any };
enum class Rows { dense, any };

std::int64_t size_in_bytes(DType dtype, const Shape& shape);

// Up to `most` elements; axes of 1 are frequent.
Shape random_shape(Random& random, int rank, std::int64_t most);

class Draft {
 public:
  explicit Draft(Random& random) : random_(random) {}
  Random& random() { return random_; }
  StepSpec& step() { return step_; }

  // The number of a new constant of random integers; `low` and `high` lie in the dtype.
  std::int64_t constant(DType dtype, const Shape& shape, std::int64_t low, std::int64_t high);
  // Adds an operand to the step.
  void operand(DType dtype, const Shape& shape, Bytes bytes, Rows rows = Rows::any);
  // One of a single element in the room of constants.
  void constant_operand(DType dtype, int rank, std::int64_t low, std::int64_t high);
  void result(DType dtype, const Shape& shape, Bytes bytes, Rows rows = Rows::any);
  // pass ends the step, whose result passes to the next one: from now on the draft is about that one. passed_operand
  // adds the result to its operands.
  void pass(DType dtype, const Shape& shape);
  void passed_operand();
  // Ends the draft: copies into the arena, the steps, copies out.
  RandomPlan finish();

 private:
  Operand input(DType dtype, const Shape& shape);
  Operand place(DType dtype, const Shape& shape, std::int64_t gap);
  void copy(std::vector<StepSpec>& steps, const Operand& from, const Operand& to);
  void overwrite_shortcut();

  Random& random_;
  RandomPlan plan_;
  StepSpec step_;
  std::vector<StepSpec> before_, former_, after_;
};

}  // namespace cvm::fuzz
