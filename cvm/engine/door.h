// The door: what a caller hands over is checked here before anything is made of it.
#pragma once

#include "plan.h"

namespace cvm {

// Empty if every operand of the plan lies inside its room with a shape that a program may have, every parameter is a
// constant, and no step writes where it reads. What an instruction requires of its own operands, its maker checks.
Problem check(const PlanSpec& plan);

}  // namespace cvm
