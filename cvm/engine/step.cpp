// Which maker builds which step.
#include "step.h"

namespace cvm {

StepMaker step_maker_of(Opcode opcode) {
  switch (opcode) {
#define CVM_CASE(name, number) \
  case Opcode::name##_:        \
    return make_step_##name;
    CVM_STEPS(CVM_CASE)
#undef CVM_CASE
    case Opcode::chain_:
      return make_step_chain;
    default:
      return nullptr;
  }
}

}  // namespace cvm
