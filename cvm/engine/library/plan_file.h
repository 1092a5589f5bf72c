// A plan file: what a program's inputs and outputs are, and the plan itself. `cvm/plan/file.py` writes it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine.h"
#include "status.h"

namespace cvm {

struct Port {
  std::string name;
  std::int64_t lo = 0, hi = 0;
};

// The plan's constants are views of `bytes`.
struct PlanFile {
  AlignedBytes bytes;
  std::string program_id;
  std::vector<Port> inputs, outputs;
  PlanSpec plan;
};

constexpr std::size_t kMaxPlanBytes = std::size_t{1} << 37;

// Decodes a copy of these bytes. What it returns is well encoded; the engine's door decides whether it is a plan.
Expected<PlanFile> decode_plan_file(std::span<const std::byte> bytes);

}  // namespace cvm
