#include "step.h"
namespace cvm {
#define U(name) Made make_step_##name(const StepCall&) { return "no body yet"; }
U(conv2d_transpose)
}
