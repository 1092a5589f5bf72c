// count_steps P.plan [ISA]: runs a plan file twice on zeros, on one thread, under an emulator that counts instructions
// (count_plugin.c): a system call that no kernel has ends each step. Prints a line for each step, what it is, tab by tab.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "isa.h"
#include "library/plan_file.h"

namespace cvm {
namespace {

constexpr long kStepEnds = 0x43564D;  // count_plugin.c has the same number

std::vector<std::byte> bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

using Arrays = std::vector<std::vector<std::byte>>;

Arrays arrays_for(std::span<const Operand> operands) {
  Arrays arrays;
  for (const Operand& operand : operands) arrays.emplace_back(static_cast<std::size_t>(operand.extent()));
  return arrays;
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank; ++axis) text += (axis == 0 ? "" : "x") + std::to_string(shape[axis]);
  return text;
}

void describe(const Engine& engine) {
  for (std::size_t number = 0; number < engine.steps(); ++number) {
    const StepSpec& step = engine.step(number);
    std::printf("%s\t%s\t%lld\t%s\t%s\n", name_of(step.opcode), text_of(step.result.shape).c_str(),
                static_cast<long long>(engine.multiply_accumulates(number)), engine.products(number), engine.epilogue(number));
  }
}

void run(const Engine& engine) {
  Arrays inputs = arrays_for(engine.inputs()), outputs = arrays_for(engine.outputs());
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const auto& array : inputs) from.push_back(array.data());
  for (auto& array : outputs) to.push_back(array.data());
  const StepObserver observer = [](std::size_t, const Buffers&, std::int64_t) { syscall(kStepEnds); };
  syscall(kStepEnds);
  engine.run(from, to, 1, &observer);
}

int refuse(const std::string& problem) {
  std::fprintf(stderr, "count_steps: %s\n", problem.c_str());
  return EXIT_FAILURE;
}

int drive(const char* path, const char* isa) {
  const Kernels* kernels = kernels_for(isa);
  if (kernels == nullptr) return refuse(std::string("this build or processor has no ") + isa);
  Expected<PlanFile> file = decode_plan_file(bytes_of(path));
  if (!file) return refuse(std::string(path) + ": " + file.problem());
  Expected<std::unique_ptr<Engine>> engine = Engine::make(file->plan, *kernels);
  if (!engine) return refuse(std::string(path) + ": " + engine.problem());
  std::printf("%s\n", kernels->name);
  describe(**engine);
  run(**engine);  // the first run makes what later ones find
  run(**engine);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace cvm

int main(int count, char** arguments) {
  if (count < 2) return cvm::refuse("which plan file?");
  return cvm::drive(arguments[1], count > 2 ? arguments[2] : "");
}
