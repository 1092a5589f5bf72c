// What Python sees: cvm._engine. Plans come as tuples of integers (cvm/runtime/native.py makes them) and are checked at the
// door.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <tuple>

#include "engine.h"
#include "isa.h"
#include "paired_channels.h"

namespace nb = nanobind;

namespace cvm {
namespace {

constexpr std::int64_t kMaxRounds = std::int64_t{1} << 32;

using Integers = std::vector<std::int64_t>;
using AttributeTuples = std::map<std::string, Integers>;
using OperandTuple = std::tuple<int, std::int64_t, int, Integers, std::int64_t>;
using StageTuple = std::tuple<int, std::vector<int>, int, Integers, AttributeTuples>;
using StepTuple =
    std::tuple<int, std::vector<OperandTuple>, Integers, OperandTuple, AttributeTuples, std::vector<StageTuple>>;
using ReadArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using WriteArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& sentence) { throw std::invalid_argument("engine: " + sentence); }

Shape shape_of(std::span<const std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(kMaxRank)) refuse("rank is not 0..6");
  Shape shape;
  shape.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), shape.dims.begin());
  return shape;
}

Operand operand_of(const OperandTuple& tuple) {
  const auto& [room, position, dtype, dims, pitch] = tuple;
  if (room < 0 || room > 4 || dtype < 0 || dtype > 4) refuse("unknown room or dtype");
  return {static_cast<Room>(room), position, static_cast<DType>(dtype), shape_of(dims), pitch};
}

std::vector<Operand> operands_of(const std::vector<OperandTuple>& tuples) {
  std::vector<Operand> operands;
  for (const OperandTuple& tuple : tuples) operands.push_back(operand_of(tuple));
  return operands;
}

Attributes attributes_of(const AttributeTuples& entries) {
  Attributes attributes;
  for (const auto& [name, values] : entries) attributes.set(name, values);
  return attributes;
}

StepSpec step_of(const StepTuple& tuple) {
  const auto& [opcode, operands, parameters, result, attributes, stages] = tuple;
  StepSpec step{static_cast<Opcode>(opcode), operands_of(operands),     parameters,
                operand_of(result),          attributes_of(attributes), {}};
  for (const auto& [stage, sources, operand, constants, named] : stages) {
    step.stages.push_back({static_cast<Opcode>(stage), sources, operand, constants, attributes_of(named)});
  }
  return step;
}

template <typename Array>
DType dtype_of(const Array& array) {
  const nb::dlpack::dtype dtype = array.dtype();
  if (dtype.lanes == 1) {
    if (dtype.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bool) && dtype.bits == 8) return DType::boolean;
    if (dtype.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt) && dtype.bits == 8) return DType::u8;
    if (dtype.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int)) {
      if (dtype.bits == 8) return DType::i8;
      if (dtype.bits == 16) return DType::i16;
      if (dtype.bits == 32) return DType::i32;
    }
  }
  refuse("an array is not of bool, i8, u8, i16 or i32");
}

Constant constant_of(const ReadArray& array) {
  Integers dims;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) dims.push_back(static_cast<std::int64_t>(array.shape(axis)));
  return {dtype_of(array), shape_of(dims), static_cast<const std::byte*>(array.data())};
}

std::unique_ptr<Engine> make_engine(const std::vector<OperandTuple>& inputs, const std::vector<OperandTuple>& outputs,
                                    const std::vector<ReadArray>& constants, std::int64_t arena_bytes,
                                    const std::vector<StepTuple>& steps, std::string_view isa) {
  const Kernels* kernels = kernels_for(isa);
  if (kernels == nullptr) refuse("this build or processor has no instruction set '" + std::string(isa) + "'");
  PlanSpec plan{operands_of(inputs), operands_of(outputs), {}, arena_bytes, {}};
  for (const ReadArray& array : constants) plan.constants.push_back(constant_of(array));
  for (const StepTuple& step : steps) plan.steps.push_back(step_of(step));
  Expected<std::unique_ptr<Engine>> engine = [&] {
    const nb::gil_scoped_release released;
    return Engine::make(plan, *kernels);
  }();
  if (!engine) refuse(engine.problem());
  return std::move(*engine);
}

template <typename Byte, typename Array>
std::vector<Byte*> pointers_of(std::span<const Operand> declared, const std::vector<Array>& arrays, const char* what) {
  if (arrays.size() != declared.size()) refuse(std::string("expected one array for each ") + what);
  std::vector<Byte*> pointers;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    auto* data = static_cast<Byte*>(arrays[i].data());
    const bool fits =
        dtype_of(arrays[i]) == declared[i].dtype &&
        static_cast<std::int64_t>(arrays[i].size()) == declared[i].shape.elements() &&
        reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size_of(declared[i].dtype)) == 0;
    if (!fits) refuse(std::string("dtype, size or alignment of ") + what + " " + std::to_string(i) + " is wrong");
    pointers.push_back(data);
  }
  return pointers;
}

void run(const Engine& engine, const std::vector<ReadArray>& inputs, const std::vector<WriteArray>& outputs,
         int threads) {
  const auto from = pointers_of<const std::byte>(engine.inputs(), inputs, "input");
  const auto to = pointers_of<std::byte>(engine.outputs(), outputs, "output");
  const nb::gil_scoped_release released;
  engine.run(from, to, threads);
}

std::vector<std::int64_t> timed(const Engine& engine, const std::vector<ReadArray>& inputs,
                                const std::vector<WriteArray>& outputs, int threads) {
  const auto from = pointers_of<const std::byte>(engine.inputs(), inputs, "input");
  const auto to = pointers_of<std::byte>(engine.outputs(), outputs, "output");
  std::vector<std::int64_t> times(engine.steps());
  const auto note = [&](std::size_t step, const Buffers&, std::int64_t nanoseconds) { times[step] = nanoseconds; };
  const StepObserver observer{false, note};
  const nb::gil_scoped_release released;
  engine.run(from, to, threads, &observer);
  return times;
}

// The value of a step as plain bytes, dense and row-major.
std::vector<std::byte> plain_value(const Operand& value, const Buffers& buffers) {
  const std::int64_t row_bytes = value.shape.last() * size_of(value.dtype);
  std::vector<std::byte> plain(static_cast<std::size_t>(value.rows() * row_bytes));
  const std::byte flip{static_cast<unsigned char>(value.biased() ? 128 : 0)};
  for (std::int64_t row = 0; row < value.rows(); ++row) {
    const std::byte* from = buffers.write(value) + row * value.pitch * size_of(value.dtype);
    std::transform(from, from + row_bytes, plain.data() + row * row_bytes, [flip](std::byte b) { return b ^ flip; });
  }
  return plain;
}

void observed(const Engine& engine, const std::vector<ReadArray>& inputs, const std::vector<WriteArray>& outputs,
              int threads, const nb::callable& callback) {
  const auto from = pointers_of<const std::byte>(engine.inputs(), inputs, "input");
  const auto to = pointers_of<std::byte>(engine.outputs(), outputs, "output");
  const auto note = [&](std::size_t step, const Buffers& buffers, std::int64_t) {
    const std::vector<std::byte> plain = plain_value(engine.step(step).result, buffers);
    const nb::gil_scoped_acquire acquired;
    callback(step, nb::bytes(plain.data(), plain.size()));
  };
  const StepObserver observer{true, note};
  const nb::gil_scoped_release released;
  engine.run(from, to, threads, &observer);
}

std::tuple<std::int64_t, std::int64_t> peak(std::string_view isa, int threads, std::int64_t rounds) {
  const Kernels* kernels = kernels_for(isa);
  if (kernels == nullptr || threads < 1 || threads > kMaxThreads)
    refuse("unknown instruction set or number of threads");
  if (rounds < 1 || rounds > kMaxRounds) refuse("rounds is not 1..2^32");
  const nb::gil_scoped_release released;
  Pool pool(threads);
  std::atomic<std::int64_t> count{0};
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](int) { count += kernels->products->peak(rounds); });
  const auto elapsed = std::chrono::steady_clock::now() - start;
  return {count.load(), std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count()};
}

using Weights = nb::ndarray<const std::int8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::vector<std::int32_t> order_of(const Weights& weights) {
  const auto channels = static_cast<std::int64_t>(weights.shape(0));
  if (channels == 0) refuse("there are no channels");
  if (weights.shape(1) % static_cast<std::size_t>(kPanelRows) != 0) refuse("rows are no whole panels");
  const nb::gil_scoped_release released;
  return paired_channels({weights.data(), weights.size()}, channels);
}

void inject_fault(Engine& engine, std::size_t step) {
  if (step >= engine.steps()) refuse("there is no such step");
  engine.inject_fault(step);
}

}  // namespace

NB_MODULE(_engine, module) {
  module.doc() = "The C++ machine. cvm.runtime.native is its Python side.";
  nb::class_<Engine>(module, "Engine")
      .def_prop_ro("isa", &Engine::isa)
      .def_prop_ro("arena_bytes", &Engine::arena_bytes)
      .def_prop_ro("packed_bytes", &Engine::packed_bytes)
      .def("multiply_accumulates",
           [](const Engine& engine) {
             Integers counts;
             for (std::size_t step = 0; step < engine.steps(); ++step)
               counts.push_back(engine.multiply_accumulates(step));
             return counts;
           })
      .def("epilogues",
           [](const Engine& engine) {
             std::vector<std::string> epilogues;
             for (std::size_t step = 0; step < engine.steps(); ++step) epilogues.emplace_back(engine.epilogue(step));
             return epilogues;
           })
      .def("products",
           [](const Engine& engine) {
             std::vector<std::string> products;
             for (std::size_t step = 0; step < engine.steps(); ++step) products.emplace_back(engine.products(step));
             return products;
           })
      .def("run", &run, nb::arg("inputs"), nb::arg("outputs"), nb::arg("threads"),
           "Run one sample: arrays in the order of the plan's inputs and outputs; the outputs are written.")
      .def("timed", &timed, nb::arg("inputs"), nb::arg("outputs"), nb::arg("threads"),
           "As run; gives the nanoseconds of each step, hardly any for one that is computed within the next.")
      .def("observed", &observed, nb::arg("inputs"), nb::arg("outputs"), nb::arg("threads"), nb::arg("callback"),
           "As run; calls back with each step's number and its value as plain bytes.")
      .def("inject_fault", &inject_fault, nb::arg("step"),
           "Make one bit of this step's result wrong, to check a check.");
  module.def("make", &make_engine, nb::arg("inputs"), nb::arg("outputs"), nb::arg("constants"), nb::arg("arena_bytes"),
             nb::arg("steps"), nb::arg("isa"), "Check and pack a plan; a ValueError names what is wrong with it.");
  module.def("peak", &peak, nb::arg("isa"), nb::arg("threads"), nb::arg("rounds"),
             "Multiply-accumulates done by all threads in registers, and the nanoseconds that it took.");
  module.def("paired_channels", &order_of, nb::arg("weights"),
             "The order of channels, of int8 weights [channels, rows], in which products of neighbours fit 16 bits most often.");
  module.def(
      "isas",
      [] {
        const auto names = supported_isas();
        return std::vector<std::string>(names.begin(), names.end());
      },
      "Instruction sets that this build and processor have, slowest first.");
}

}  // namespace cvm
