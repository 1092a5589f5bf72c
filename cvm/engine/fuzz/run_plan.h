// Runs a plan, if the engine takes it, and looks at what it did.
#pragma once

#include <cstdint>
#include <vector>

#include "engine.h"
#include "fuzz/draft.h"

namespace cvm::fuzz {

struct Outcome {
  Problem refusal;   // empty: the engine took the plan
  bool ran = false;  // not if it would take long
  std::vector<std::vector<std::uint8_t>> outputs;
};

// Aborts, with a sentence, if a step writes anything but its result, or if two threads give other bytes than one.
Outcome run_plan(const PlanSpec& plan, const Kernels& kernels, std::uint64_t seed);

}  // namespace cvm::fuzz
