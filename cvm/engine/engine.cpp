// Makes an engine from a plan, and runs it.
#include "engine.h"

#include <algorithm>
#include <chrono>

#include "door.h"

namespace cvm {
namespace {

constexpr std::size_t kIdleSessions = 16;

int threads_of(int parts) { return std::min(parts, std::max(cores(), 1)); }

}  // namespace

Session::Session(std::int64_t arena_bytes, std::int64_t passed_bytes, std::int64_t scratch_bytes, int parts)
    : parts(parts),
      arena(arena_bytes + kSlack),
      passed(passed_bytes + kSlack, false),
      pool(threads_of(parts)),
      barrier(pool.workers()),
      scratch_bytes_(whole_lines(scratch_bytes + kSlack)),
      scratch_(scratch_bytes_ * pool.workers()) {}

Expected<std::unique_ptr<Engine>> Engine::make(const PlanSpec& plan, const Kernels& kernels) {
  const Problem problem = check(plan);
  if (!problem.empty()) return problem;
  std::unique_ptr<Engine> engine(new Engine);
  engine->kernels_ = &kernels;
  engine->inputs_ = plan.inputs;
  engine->outputs_ = plan.outputs;
  engine->arena_bytes_ = plan.arena_bytes;
  engine->constants_.assign(plan.constants.size(), nullptr);
  for (std::size_t number = 0; number < plan.steps.size(); ++number) {
    const Problem wrong = engine->add(plan.steps[number], plan.constants);
    CVM_REQUIRE(wrong.empty(), "step " + std::to_string(number) + " (" + name_of(plan.steps[number].opcode) + "): " + wrong);
  }
  for (std::size_t number = 0; number < engine->steps(); ++number) {
    const Operand& result = engine->steps_[number].result;
    if (result.room != Room::passed) continue;
    engine->observed_bytes_ = std::max(engine->observed_bytes_, result.extent());
    if (!engine->taken_[number]) engine->passed_bytes_ = std::max(engine->passed_bytes_, result.extent());
  }
  engine->packings_.move();
  return Expected<std::unique_ptr<Engine>>(std::move(engine));
}

Problem Engine::add(const StepSpec& step, std::span<const Constant> constants) {
  const StepMaker maker = step_maker_of(step.opcode);
  CVM_REQUIRE(maker != nullptr, "not a step");
  Made body = maker({step, constants, *kernels_, packings_});
  if (!body) return body.problem();
  const auto is_passed = [](const Operand& operand) { return operand.room == Room::passed; };
  if (std::any_of(step.operands.begin(), step.operands.end(), is_passed)) taken_.back() = (*body)->take(*bodies_.back());
  scratch_bytes_ = std::max(scratch_bytes_, (*body)->scratch_bytes());
  for (const Operand& operand : step.operands) {
    const auto number = static_cast<std::size_t>(operand.position);
    if (operand.room != Room::constant || constants_[number] != nullptr) continue;
    const std::int64_t bytes = operand.extent();
    constant_bytes_.push_back(std::make_unique<AlignedBytes>(bytes + kSlack));
    std::byte* to = constant_bytes_.back()->data();
    const std::byte flip{static_cast<unsigned char>(operand.biased() ? 128 : 0)};
    std::transform(constants[number].data, constants[number].data + bytes, to, [flip](std::byte b) { return b ^ flip; });
    constants_[number] = to;
  }
  steps_.push_back(step);
  bodies_.push_back(std::move(*body));
  taken_.push_back(false);
  return {};
}

void Engine::run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, int threads,
                 const StepObserver* observer) const {
  std::unique_ptr<Session> session = borrow(std::clamp(threads, 1, kMaxThreads));
  const bool every_result = fault_ < steps() || (observer != nullptr && observer->every_result);
  const AlignedBytes observed(every_result ? observed_bytes_ + kSlack : 0, false);
  std::byte* passed = every_result ? observed.data() : session->passed.data();
  const Buffers buffers{inputs, outputs, constants_, session->arena.data(), passed, every_result};
  if (observer == nullptr) {
    const std::function<void(int)> task = [&](int worker) {
      for (std::size_t number = 0; number < bodies_.size(); ++number) {
        if (taken_[number] && !every_result) continue;
        run_step(number, buffers, *session, worker);
        session->barrier.wait();
      }
    };
    session->pool.run(task);
  } else {
    for (std::size_t number = 0; number < bodies_.size(); ++number) {
      const auto start = std::chrono::steady_clock::now();
      if (every_result || !taken_[number]) {
        session->pool.run([&](int worker) { run_step(number, buffers, *session, worker); });
      }
      const auto elapsed = std::chrono::steady_clock::now() - start;
      observer->note(number, buffers, std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
    }
  }
  give_back(std::move(session));
}

// Part p of n has the pieces from p/n to (p+1)/n, and worker w of m the parts from w/m to (w+1)/m: a static partition, so
// that caches see the same rows again.
void Engine::run_step(std::size_t number, const Buffers& buffers, Session& session, int worker) const {
  const Kernel& body = *bodies_[number];
  const std::int64_t pieces = body.pieces(), parts = session.parts;
  const int workers = session.pool.workers();
  for (std::int64_t p = parts * worker / workers; p < parts * (worker + 1) / workers; ++p) {
    const Part part{pieces * p / parts, pieces * (p + 1) / parts};
    if (part.begin < part.end) body.run(buffers, part, session.scratch(worker));
    if (number == fault_ && part.begin == 0 && part.end > 0) *buffers.write(steps_[number].result) ^= std::byte{1};
  }
}

std::unique_ptr<Session> Engine::borrow(int parts) const {
  {
    const std::lock_guard lock(mutex_);
    const auto idle = std::find_if(idle_.begin(), idle_.end(), [parts](const auto& session) {
      return session->parts == parts && session->pool.alive();
    });
    if (idle != idle_.end()) {
      std::unique_ptr<Session> session = std::move(*idle);
      idle_.erase(idle);
      return session;
    }
  }
  return std::make_unique<Session>(arena_bytes_, passed_bytes_, scratch_bytes_, parts);
}

void Engine::give_back(std::unique_ptr<Session> session) const {
  const std::lock_guard lock(mutex_);
  if (idle_.size() == kIdleSessions) idle_.erase(idle_.begin());
  idle_.push_back(std::move(session));
}

}  // namespace cvm
