// One run on one thread with an eye on the arena, another on two.
#include "fuzz/run_plan.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace cvm::fuzz {
namespace {

constexpr std::int64_t kMostBytes = 1 << 22;       // of the arena, or of one input or output
constexpr std::int64_t kMostMultiplies = 1 << 24;  // in one plan
constexpr std::size_t kMostSteps = 32;
constexpr std::uint8_t kUntouched = 0x5A;

[[noreturn]] void fail(const char* sentence, std::size_t step) {
  std::fprintf(stderr, "step %zu: %s\n", step, sentence);
  std::abort();
}

// As many bytes as it has and not one more, so that a sanitizer sees what goes beyond.
struct Exact {
  explicit Exact(std::size_t count) : size(count), data(std::make_unique<std::byte[]>(count)) {}
  std::size_t size;
  std::unique_ptr<std::byte[]> data;
};

bool is_small(const PlanSpec& plan, const Engine& engine) {
  std::int64_t multiplies = 0;
  bool small = plan.arena_bytes <= kMostBytes && plan.steps.size() <= kMostSteps;
  for (const auto* list : {&plan.inputs, &plan.outputs}) {
    for (const Operand& operand : *list) small = small && size_in_bytes(operand.dtype, operand.shape) <= kMostBytes;
  }
  for (std::size_t step = 0; small && step < engine.steps(); ++step) {
    const Operand& result = engine.step(step).result;
    small = result.room != Room::passed || result.extent() <= kMostBytes;
    small = small && engine.multiply_accumulates(step) <= kMostMultiplies - multiplies;
    multiplies += engine.multiply_accumulates(step);
  }
  return small;
}

class Arena {
 public:
  explicit Arena(std::int64_t size) : before_(static_cast<std::size_t>(size)) {}

  // Every byte that is no element of the step's result is as it was.
  void check(std::size_t number, const Operand& result, const Buffers& buffers) {
    if (result.room == Room::arena) {
      const auto row = static_cast<std::size_t>(result.shape.last() * size_of(result.dtype));
      for (std::int64_t i = 0; i < result.rows(); ++i) {
        const auto start = static_cast<std::size_t>(result.position + i * result.pitch * size_of(result.dtype));
        std::memcpy(before_.data() + start, buffers.arena + start, row);
      }
    }
    if (!before_.empty() && std::memcmp(before_.data(), buffers.arena, before_.size()) != 0)
      fail("writes beside its result", number);
  }

 private:
  std::vector<std::byte> before_;
};

std::vector<Exact> buffers_for(const std::vector<Operand>& list) {
  std::vector<Exact> buffers;
  for (const Operand& operand : list)
    buffers.emplace_back(static_cast<std::size_t>(size_in_bytes(operand.dtype, operand.shape)));
  return buffers;
}

// Any bytes, often extreme ones; a bool holds 0 or 1.
void fill(Random& random, DType dtype, Exact& buffer) {
  constexpr std::uint8_t kEnds[] = {0x00, 0xFF, 0x80, 0x7F};
  for (std::size_t i = 0; i < buffer.size; ++i) {
    const std::uint64_t bits = random.next();
    const bool end = (bits & 0x700) == 0;
    const std::uint8_t byte = end ? kEnds[bits & 3] : static_cast<std::uint8_t>(bits >> 16);
    buffer.data[i] = static_cast<std::byte>(dtype == DType::boolean ? byte & 1 : byte);
  }
}

}  // namespace

Outcome run_plan(const PlanSpec& plan, const Kernels& kernels, std::uint64_t seed) {
  Outcome outcome;
  Expected<std::unique_ptr<Engine>> made = Engine::make(plan, kernels);
  if (!made) {
    outcome.refusal = made.problem();
    return outcome;
  }
  const Engine& engine = **made;
  if (!is_small(plan, engine)) return outcome;
  Random random(seed);
  std::vector<Exact> inputs = buffers_for(plan.inputs), outputs = buffers_for(plan.outputs);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    fill(random, plan.inputs[i].dtype, inputs[i]);
    from.push_back(inputs[i].data.get());
  }
  for (const Exact& output : outputs) to.push_back(output.data.get());
  const auto run = [&](int threads, const StepObserver* observer) {
    for (const Exact& output : outputs) std::memset(output.data.get(), kUntouched, output.size);
    engine.run(from, to, threads, observer);
    std::vector<std::vector<std::uint8_t>> copies;
    for (const Exact& output : outputs) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(output.data.get());
      copies.emplace_back(bytes, bytes + output.size);
    }
    return copies;
  };
  Arena arena(plan.arena_bytes);
  const StepObserver look{true, [&](std::size_t step, const Buffers& buffers, std::int64_t) {
                            arena.check(step, engine.step(step).result, buffers);
                          }};
  outcome.outputs = run(1, &look);
  if (run(2, nullptr) != outcome.outputs) fail("two threads give other bytes than one that is watched", engine.steps());
  outcome.ran = true;
  return outcome;
}

}  // namespace cvm::fuzz
