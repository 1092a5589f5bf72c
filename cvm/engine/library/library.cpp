// libcvm: what cvm.h declares. Nothing is thrown across it: what the standard library throws becomes a sentence.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "isa.h"
#include "library/cvm.h"
#include "library/plan_file.h"

struct cvm_plan {
  std::unique_ptr<cvm::Engine> engine;
  std::string program_id;
  std::vector<cvm::Port> named_inputs, named_outputs;  // the ports' names point into these
  std::vector<cvm_port> inputs, outputs;
};

namespace cvm {
namespace {

// A sentence may quote a stranger's file: what a terminal could obey becomes a question mark.
void report(cvm_error* error, const std::string& sentence) {
  if (error == nullptr) return;
  const std::size_t size = std::min(sentence.size(), sizeof error->text - 1);
  std::transform(sentence.begin(), sentence.begin() + static_cast<std::ptrdiff_t>(size), error->text,
                 [](char c) { return c >= ' ' && c <= '~' ? c : '?'; });
  error->text[size] = '\0';
}

// What `body` returns, or `failed` with a sentence in `error` if the standard library threw.
template <typename Result, typename Body>
Result guarded(cvm_error* error, Result failed, const Body& body) noexcept {
  try {
    report(error, "");
    return body();
  } catch (const std::bad_alloc&) {
    report(error, "there is not enough memory");
  } catch (const std::length_error&) {
    report(error, "there is not enough memory");
  } catch (const std::exception& problem) {
    report(error, problem.what());
  } catch (...) {
    report(error, "an unknown failure");
  }
  return failed;
}

std::vector<cvm_port> ports_of(const std::vector<Port>& named, std::span<const Operand> operands) {
  std::vector<cvm_port> ports;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Operand& operand = operands[i];
    cvm_port port{};
    port.name = named[i].name.c_str();
    port.dtype = static_cast<std::int32_t>(operand.dtype);
    port.rank = operand.shape.rank;
    std::copy(operand.shape.dims.begin(), operand.shape.dims.end(), port.shape);
    port.bytes = operand.shape.elements() * size_of(operand.dtype);
    port.lo = static_cast<std::int32_t>(named[i].lo);
    port.hi = static_cast<std::int32_t>(named[i].hi);
    ports.push_back(port);
  }
  return ports;
}

Expected<std::unique_ptr<cvm_plan>> open(std::span<const std::byte> bytes, std::int64_t max_memory) {
  Expected<PlanFile> file = decode_plan_file(bytes);
  CVM_REQUIRE(file, file.problem());
  const auto refusal = [max_memory](std::int64_t bytes) {
    return "a run takes " + std::to_string(bytes) + " bytes; at most " + std::to_string(max_memory) + " are allowed";
  };
  const std::int64_t arena_bytes = file->plan.arena_bytes;
  CVM_REQUIRE(max_memory == 0 || arena_bytes <= max_memory, refusal(arena_bytes));
  const Kernels* kernels = kernels_for("");
  CVM_REQUIRE(kernels != nullptr, "this processor has no instruction set of this build");
  Expected<std::unique_ptr<Engine>> engine = Engine::make(file->plan, *kernels);
  CVM_REQUIRE(engine, engine.problem());
  const std::int64_t run_bytes = (*engine)->arena_bytes();  // with what passes from step to step
  CVM_REQUIRE(max_memory == 0 || run_bytes <= max_memory, refusal(run_bytes));
  auto plan = std::make_unique<cvm_plan>();
  plan->engine = std::move(*engine);
  plan->program_id = file->program_id;
  plan->named_inputs = std::move(file->inputs);
  plan->named_outputs = std::move(file->outputs);
  plan->inputs = ports_of(plan->named_inputs, plan->engine->inputs());
  plan->outputs = ports_of(plan->named_outputs, plan->engine->outputs());
  return plan;
}

cvm_plan* opened(std::span<const std::byte> bytes, std::int64_t max_memory, cvm_error* error) {
  Expected<std::unique_ptr<cvm_plan>> plan = open(bytes, max_memory);
  if (plan) return plan->release();
  report(error, plan.problem());
  return nullptr;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A block at a time, so that nothing has to be believed of a file's size.
Expected<std::vector<std::byte>> read_file(const char* path) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  const File file(std::fopen(path, "rb"), &std::fclose);
  CVM_REQUIRE(file != nullptr, "the file cannot be opened");
  std::vector<std::byte> bytes;
  for (std::size_t count = kBlock; count == kBlock;) {
    CVM_REQUIRE(bytes.size() <= kMaxPlanBytes, "the file is too large");
    const std::size_t before = bytes.size();
    bytes.resize(before + kBlock);
    count = std::fread(bytes.data() + before, 1, kBlock, file.get());
    bytes.resize(before + count);
  }
  CVM_REQUIRE(std::ferror(file.get()) == 0, "the file cannot be read");
  return bytes;
}

template <typename T>
bool all_inside(const void* data, const cvm_port& port) {
  const T* first = static_cast<const T*>(data);
  const auto outside = [&port](T value) { return value < port.lo || value > port.hi; };
  return std::none_of(first, first + port.bytes / static_cast<std::int64_t>(sizeof(T)), outside);
}

bool inside(const void* data, const cvm_port& port) {
  switch (port.dtype) {
    case CVM_I32:
      return all_inside<std::int32_t>(data, port);
    case CVM_I16:
      return all_inside<std::int16_t>(data, port);
    case CVM_I8:
      return all_inside<std::int8_t>(data, port);
    default:
      return all_inside<std::uint8_t>(data, port);
  }
}

Problem check_array(const void* data, const cvm_port& port, const char* what) {
  const auto size = static_cast<std::uintptr_t>(size_of(static_cast<DType>(port.dtype)));
  CVM_REQUIRE(data != nullptr && reinterpret_cast<std::uintptr_t>(data) % size == 0,
              std::string(what) + " '" + port.name + "': the address is null, or not aligned as its dtype");
  return {};
}

Problem run(const cvm_plan& plan, const void* const* inputs, void* const* outputs, int threads) {
  CVM_REQUIRE(threads >= 1 && threads <= kMaxThreads, "threads is not 1..256");
  CVM_REQUIRE((inputs != nullptr || plan.inputs.empty()) && (outputs != nullptr || plan.outputs.empty()),
              "there are no inputs or no outputs");
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const cvm_port& port = plan.inputs[i];
    const Problem wrong = check_array(inputs[i], port, "input");
    CVM_REQUIRE(wrong.empty(), wrong);
    CVM_REQUIRE(inside(inputs[i], port), std::string("input '") + port.name + "' holds an integer outside " +
                                             std::to_string(port.lo) + ".." + std::to_string(port.hi));
    from.push_back(static_cast<const std::byte*>(inputs[i]));
  }
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const Problem wrong = check_array(outputs[i], plan.outputs[i], "output");
    CVM_REQUIRE(wrong.empty(), wrong);
    to.push_back(static_cast<std::byte*>(outputs[i]));
  }
  plan.engine->run(from, to, threads);
  return {};
}

const cvm_port* port_at(const std::vector<cvm_port>& ports, std::size_t number) {
  return number < ports.size() ? &ports[number] : nullptr;
}

}  // namespace
}  // namespace cvm

const char* cvm_version(void) { return CVM_VERSION; }

cvm_plan* cvm_open(const char* path, std::int64_t max_memory, cvm_error* error) {
  return cvm::guarded<cvm_plan*>(error, nullptr, [=]() -> cvm_plan* {
    cvm::Expected<std::vector<std::byte>> bytes = cvm::read_file(path);
    if (bytes) return cvm::opened(*bytes, max_memory, error);
    cvm::report(error, std::string(path) + ": " + bytes.problem());
    return nullptr;
  });
}

cvm_plan* cvm_open_bytes(const void* bytes, std::size_t count, std::int64_t max_memory, cvm_error* error) {
  return cvm::guarded<cvm_plan*>(error, nullptr, [=] {
    return cvm::opened({static_cast<const std::byte*>(bytes), count}, max_memory, error);
  });
}

void cvm_free(cvm_plan* plan) { delete plan; }

const char* cvm_program_id(const cvm_plan* plan) { return plan->program_id.c_str(); }

std::size_t cvm_inputs(const cvm_plan* plan) { return plan->inputs.size(); }
std::size_t cvm_outputs(const cvm_plan* plan) { return plan->outputs.size(); }
const cvm_port* cvm_input(const cvm_plan* plan, std::size_t number) { return cvm::port_at(plan->inputs, number); }
const cvm_port* cvm_output(const cvm_plan* plan, std::size_t number) { return cvm::port_at(plan->outputs, number); }

int cvm_run(const cvm_plan* plan, const void* const* inputs, void* const* outputs, int threads, cvm_error* error) {
  return cvm::guarded(error, 1, [=] {
    const cvm::Problem problem = cvm::run(*plan, inputs, outputs, threads);
    cvm::report(error, problem);
    return problem.empty() ? 0 : 1;
  });
}
