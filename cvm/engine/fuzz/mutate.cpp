// What goes wrong in a plan: extreme numbers, places that overlap, fields that do not agree.
#include <algorithm>
#include <limits>
#include <string>

#include "fuzz/random_plan.h"

namespace cvm::fuzz {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kGreatest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kExtremes[] = {0,
                                      1,
                                      -1,
                                      2,
                                      3,
                                      -2,
                                      7,
                                      16,
                                      64,
                                      127,
                                      128,
                                      -128,
                                      -129,
                                      255,
                                      256,
                                      1024,
                                      16383,
                                      16384,
                                      32767,
                                      32768,
                                      65536,
                                      1 << 20,
                                      (1 << 20) + 1,
                                      2147483647,
                                      2147483648,
                                      -2147483648,
                                      -2147483649,
                                      std::int64_t{1} << 40,
                                      std::int64_t{1} << 62,
                                      -(std::int64_t{1} << 62),
                                      kGreatest,
                                      kGreatest - 63,
                                      kLeast,
                                      kLeast + 1};
constexpr const char* kNames[] = {
    "pad",   "stride", "dilation", "groups", "input_zp",   "out_pad",     "a_zp",       "b_zp",      "output_zp",
    "dtype", "min",    "max",      "shift",  "round",      "axis",        "descending", "kernel",    "shape",
    "perm",  "start",  "size",     "pads",   "value",      "multiples",   "scale",      "offset",    "border",
    "mode",  "narrow", "fits26",   "keep",   "candidates", "least_score", "overlap",    "inclusive", "gaps",
    "fits32", "low_bits"};
constexpr std::int64_t kMostConstant = 1 << 16;  // elements of a constant that changes its shape

using Integers = std::vector<std::int64_t>;

// Wraps, since the old value may be extreme already.
std::int64_t plus(std::int64_t value, std::int64_t change) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(change));
}

std::int64_t other_integer(Random& random, std::int64_t value) {
  switch (random.below(4)) {
    case 0:
      return random.pick(kExtremes);
    case 1:
      return plus(value, random.between(-3, 3));
    case 2:
      return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));
    default:
      return random.between(0, 9);
  }
}

void change(Random& random, Integers& values) {
  const std::int64_t kind = random.below(6);
  if (kind == 0 && !values.empty()) {
    values.pop_back();
  } else if (kind == 1 || values.empty()) {
    values.push_back(random.pick(kExtremes));
  } else {
    std::int64_t& value = values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(values.size())))];
    value = other_integer(random, value);
  }
}

// Rebuilds them with one changed, missing or added.
void change(Random& random, Attributes& attributes) {
  std::vector<const char*> names;
  std::copy_if(std::begin(kNames), std::end(kNames), std::back_inserter(names),
               [&](const char* name) { return attributes.find(name, -1) != nullptr; });
  Attributes changed;
  if (names.empty() || random.one_in(10)) changed.set(random.pick(kNames), {random.pick(kExtremes)});
  const std::int64_t index = names.empty() ? 0 : random.below(static_cast<std::int64_t>(names.size()));
  const bool drop = random.one_in(10);
  for (std::size_t i = 0; i < names.size(); ++i) {
    Integers values = *attributes.find(names[i], -1);
    if (static_cast<std::int64_t>(i) == index) {
      if (drop) continue;
      change(random, values);
    }
    changed.set(names[i], std::move(values));
  }
  attributes = std::move(changed);
}

void change(Random& random, Shape& shape) {
  const std::int64_t kind = random.below(5);
  if (kind == 0) {
    shape.rank = static_cast<int>(random.between(0, 8));
    if (random.one_in(2)) shape.rank = std::min(shape.rank, kMaxRank);
  } else if (shape.rank > 0 && shape.rank <= kMaxRank) {
    std::int64_t& dim = shape[static_cast<int>(random.below(shape.rank))];
    if (kind == 1) std::swap(dim, shape[static_cast<int>(random.below(shape.rank))]);
    if (kind > 1) dim = other_integer(random, dim);
  }
}

DType other_dtype(Random& random) {
  return static_cast<DType>(random.one_in(10) ? random.below(256) : random.below(5));
}

void change(Random& random, Operand& operand, const StepSpec& step) {
  switch (random.below(7)) {
    case 0:
      operand.room = static_cast<Room>(random.below(random.one_in(10) ? 256 : 5));
      break;
    case 1:
      operand.position = other_integer(random, operand.position);
      break;
    case 2:
      operand.dtype = other_dtype(random);
      break;
    case 3:
      change(random, operand.shape);
      break;
    case 4:
      operand.pitch = random.one_in(2) ? operand.shape.last() : other_integer(random, operand.pitch);
      break;
    case 5:
      if (!step.operands.empty()) operand = random.pick(step.operands);
      break;
    default:
      operand.position =
          plus(step.result.position, random.between(-4, 4) * (random.one_in(2) ? 1 : step.result.pitch & 0xFFFF));
      operand.pitch = step.result.pitch;
  }
}

bool legal(const Shape& shape) {
  std::int64_t count = 1;
  if (shape.rank < 0 || shape.rank > kMaxRank) return false;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] < 1 || shape[axis] > kMostConstant / count) return false;
    count *= shape[axis];
  }
  return true;
}

// The same change to what is declared and to every use of it, so that it passes the door and meets a maker.
void redeclare(Random& random, RandomPlan& plan) {
  const Room room = static_cast<Room>(random.below(4));
  PlanSpec& spec = plan.spec;
  const auto count = static_cast<std::int64_t>(room == Room::input    ? spec.inputs.size()
                                               : room == Room::output ? spec.outputs.size()
                                                                      : spec.constants.size());
  if (count == 0 || room == Room::arena) return;
  const std::int64_t number = random.below(count);
  Operand* declared = room == Room::input    ? &spec.inputs[static_cast<std::size_t>(number)]
                      : room == Room::output ? &spec.outputs[static_cast<std::size_t>(number)]
                                             : nullptr;
  Shape shape = declared ? declared->shape : spec.constants[static_cast<std::size_t>(number)].shape;
  DType dtype = declared ? declared->dtype : spec.constants[static_cast<std::size_t>(number)].dtype;
  if (random.one_in(2)) {
    dtype = static_cast<DType>(random.below(5));
  } else {
    change(random, shape);
  }
  if (!legal(shape)) return;
  if (declared) {
    declared->shape = shape, declared->dtype = dtype;
  } else {
    const auto bytes = static_cast<std::size_t>(size_in_bytes(dtype, shape));
    plan.storage.push_back(std::make_unique<std::byte[]>(bytes));
    std::byte* data = plan.storage.back().get();
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(random.next());
    spec.constants[static_cast<std::size_t>(number)] = {dtype, shape, data};
  }
  for (StepSpec& step : spec.steps) {
    const auto use = [&](Operand& operand) {
      if (operand.room == room && operand.position == number)
        operand.shape = shape, operand.dtype = dtype, operand.pitch = shape.last();
    };
    for (Operand& operand : step.operands) use(operand);
    use(step.result);
  }
}

// Both ends of a step at once: what its kernel does not expect must be refused by its maker.
void retype(Random& random, StepSpec& step) {
  const DType dtype = static_cast<DType>(random.below(5));
  const std::int64_t which = random.below(3);
  for (Operand& operand : step.operands) {
    if (which != 1) operand.dtype = dtype;
  }
  if (which != 0) step.result.dtype = dtype;
}

Opcode other_opcode(Random& random) {
  constexpr int kOpcodes[] = {
#define CVM_NUMBER(name, number) number,
      CVM_STEPS(CVM_NUMBER) CVM_STAGES(CVM_NUMBER)
#undef CVM_NUMBER
          200,
      201};
  return static_cast<Opcode>(random.one_in(10) ? static_cast<int>(random.pick(kExtremes)) : random.pick(kOpcodes));
}

void change(Random& random, StageSpec& stage) {
  switch (random.below(5)) {
    case 0:
      stage.opcode = other_opcode(random);
      break;
    case 1:
      if (stage.sources.empty() || random.one_in(6)) stage.sources.push_back(static_cast<int>(random.between(-1, 5)));
      stage.sources[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(stage.sources.size())))] =
          static_cast<int>(random.one_in(4) ? random.pick(kExtremes) : random.between(-1, 5));
      break;
    case 2:
      stage.operand = static_cast<int>(random.one_in(4) ? random.pick(kExtremes) : random.between(-1, 4));
      break;
    case 3:
      change(random, stage.parameters);
      break;
    default:
      change(random, stage.attributes);
  }
}

void change(Random& random, std::vector<StageSpec>& stages) {
  if (stages.empty()) {
    stages.push_back({other_opcode(random), {static_cast<int>(random.between(-1, 1))}, -1, {}, {}});
    return;
  }
  StageSpec& stage = stages[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(stages.size())))];
  const std::int64_t kind = random.below(12);
  if (kind == 0) {
    stages.pop_back();
  } else if (kind == 1) {
    stages.insert(stages.end(), random.one_in(20) ? 70 : 1, StageSpec(stage));
  } else {
    change(random, stage);
  }
}

void change(Random& random, std::vector<Operand>& operands) {
  if (operands.empty()) return;
  const std::size_t index = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(operands.size())));
  const std::int64_t kind = random.below(3);
  if (kind == 0) operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(index));
  if (kind == 1) operands.insert(operands.end(), random.one_in(20) ? 20 : 1, Operand(operands[index]));
  if (kind == 2) std::swap(operands.front(), operands[index]);
}

void change(Random& random, StepSpec& step) {
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return change(random, step.attributes);
    case 4:
    case 5:
      if (!step.operands.empty()) {
        const std::int64_t index = random.below(static_cast<std::int64_t>(step.operands.size()));
        change(random, step.operands[static_cast<std::size_t>(index)], StepSpec(step));
      }
      return;
    case 6:
      return change(random, step.result, StepSpec(step));
    case 7:
      return retype(random, step);
    case 8:
      step.opcode = other_opcode(random);
      return;
    case 9:
      return random.one_in(2) ? change(random, step.parameters) : change(random, step.operands);
    default:
      return change(random, step.stages);
  }
}

}  // namespace

void mutate(Random& random, RandomPlan& plan) {
  for (std::int64_t changes = random.between(1, 3); changes > 0; --changes) {
    PlanSpec& spec = plan.spec;
    const std::int64_t kind = random.below(16);
    if (kind == 0) {
      spec.arena_bytes = other_integer(random, spec.arena_bytes);
    } else if (kind < 4) {
      redeclare(random, plan);
    } else if (kind == 4) {
      std::vector<Operand>& list = random.one_in(2) ? spec.inputs : spec.outputs;
      if (!list.empty()) change(random, list.front(), spec.steps.front());
    } else {
      change(random, spec.steps[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(spec.steps.size())))]);
    }
  }
}

}  // namespace cvm::fuzz
