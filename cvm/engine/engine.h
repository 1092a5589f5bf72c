// A plan that has been checked and packed, and can run: from several threads at once, each with a session of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "aligned.h"
#include "packings.h"
#include "plan.h"
#include "pool.h"
#include "step.h"

namespace cvm {

constexpr int kMaxThreads = 256;

// What one run needs besides the plan: the arena, the threads, a scratch for each of them. Every step is divided into as
// many parts as threads were asked for; there are no more threads than cores, since one without a core is waited for.
struct Session {
  Session(std::int64_t arena_bytes, std::int64_t passed_bytes, std::int64_t scratch_bytes, int parts);
  std::byte* scratch(int worker) const { return scratch_.data() + worker * scratch_bytes_; }

  const int parts;
  AlignedBytes arena, passed;
  Pool pool;
  Barrier barrier;

 private:
  std::int64_t scratch_bytes_;
  AlignedBytes scratch_;
};

// `note` is called after every step, with its number and the nanoseconds that it took. With `every_result`, the result
// of that step may be read then, and no step is computed within the next one.
struct StepObserver {
  bool every_result;
  std::function<void(std::size_t step, const Buffers& buffers, std::int64_t nanoseconds)> note;
};

class Engine {
 public:
  // Checks everything in the plan, and packs weights; afterwards the plan's constants may go away.
  static Expected<std::unique_ptr<Engine>> make(const PlanSpec& plan, const Kernels& kernels);

  const char* isa() const { return kernels_->name; }
  // The bytes that the values of one run take, without inputs, outputs and what an observer needs besides.
  std::int64_t arena_bytes() const { return arena_bytes_ + passed_bytes_; }
  std::int64_t packed_bytes() const { return packings_.bytes(); }  // of weights in the order of kernels
  std::span<const Operand> inputs() const { return inputs_; }
  std::span<const Operand> outputs() const { return outputs_; }
  const StepSpec& step(std::size_t number) const { return steps_[number]; }
  std::size_t steps() const { return steps_.size(); }
  std::int64_t multiply_accumulates(std::size_t step) const { return bodies_[step]->multiply_accumulates(); }
  const char* epilogue(std::size_t step) const { return taken_[step] ? "next" : bodies_[step]->epilogue(); }
  const char* products(std::size_t step) const { return bodies_[step]->products(); }

  // One sample. Buffers have the sizes of inputs() and outputs(); input bytes are plain.
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, int threads,
           const StepObserver* observer = nullptr) const;

  // From now on the lowest bit of the first byte of this step's result is wrong: so that checks can be checked.
  void inject_fault(std::size_t step) { fault_ = step; }

 private:
  Engine() = default;
  Problem add(const StepSpec& step, std::span<const Constant> constants);
  void run_step(std::size_t number, const Buffers& buffers, Session& session, int worker) const;
  std::unique_ptr<Session> borrow(int parts) const;
  void give_back(std::unique_ptr<Session> session) const;

  const Kernels* kernels_ = nullptr;
  std::vector<Operand> inputs_, outputs_;
  std::vector<StepSpec> steps_;
  Packings packings_;  // of all bodies
  std::vector<std::unique_ptr<Kernel>> bodies_;
  std::vector<bool> taken_;  // computed within the next step, unless every result is wanted
  std::vector<std::unique_ptr<AlignedBytes>> constant_bytes_;
  std::vector<const std::byte*> constants_;  // in stored form
  std::int64_t arena_bytes_ = 0, scratch_bytes_ = 0;
  std::int64_t passed_bytes_ = 0, observed_bytes_ = 0;  // the largest that is passed by a step that runs, and by any
  std::size_t fault_ = static_cast<std::size_t>(-1);
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Session>> idle_;
};

}  // namespace cvm
