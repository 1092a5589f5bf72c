// count_steps P.plan [ISA]: runs a plan file twice, on one thread, under an emulator that counts instructions (count_plugin.c): a
// system call that no kernel has ends each step. Prints the instruction set and a digest of the outputs, then a line for each step.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
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

template <typename T>
void fill(std::vector<std::byte>& bytes, const Port& port) {
  const auto span = static_cast<std::uint64_t>(port.hi - port.lo) + 1;
  for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
    const auto value = static_cast<T>(port.lo + static_cast<std::int64_t>((i * 2654435761u % 4294967296u >> 8) % span));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

// Of the intervals that ports state: benchmarks/instructions.py makes the same for the engine of this machine.
Arrays inputs_of(const PlanFile& file, const Engine& engine) {
  Arrays arrays;
  for (std::size_t i = 0; i < file.inputs.size(); ++i) {
    const Operand& operand = engine.inputs()[i];
    arrays.emplace_back(static_cast<std::size_t>(operand.extent()));
    const auto fill_values = size_of(operand.dtype) == 4 ? fill<std::int32_t> : size_of(operand.dtype) == 2 ? fill<std::int16_t> : fill<std::int8_t>;
    fill_values(arrays.back(), file.inputs[i]);
  }
  return arrays;
}

// FNV-1a.
std::uint64_t digest(const Arrays& arrays) {
  std::uint64_t state = 0xCBF29CE484222325u;
  for (const auto& array : arrays) {
    for (const std::byte byte : array) state = (state ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3u;
  }
  return state;
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

// One run; the arrays of its outputs.
Arrays run(const Engine& engine, const Arrays& inputs) {
  Arrays outputs;
  for (const Operand& operand : engine.outputs()) outputs.emplace_back(static_cast<std::size_t>(operand.extent()));
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const auto& array : inputs) from.push_back(array.data());
  for (auto& array : outputs) to.push_back(array.data());
  const StepObserver observer{false, [](std::size_t, const Buffers&, std::int64_t) { syscall(kStepEnds); }};
  syscall(kStepEnds);
  engine.run(from, to, 1, &observer);
  return outputs;
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
  const Arrays inputs = inputs_of(*file, **engine);
  run(**engine, inputs);  // which makes what later runs find
  std::printf("%s\t%016llx\n", kernels->name, static_cast<unsigned long long>(digest(run(**engine, inputs))));
  describe(**engine);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace cvm

int main(int count, char** arguments) {
  if (count < 2) return cvm::refuse("which plan file?");
  return cvm::drive(arguments[1], count > 2 ? arguments[2] : "");
}
