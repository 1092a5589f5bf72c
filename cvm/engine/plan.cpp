// Lookups in a plan.
#include "plan.h"

namespace cvm {

const char* name_of(Opcode opcode) {
  switch (opcode) {
#define CVM_CASE(name, number) \
  case Opcode::name##_:        \
    return #name;
    CVM_STEPS(CVM_CASE)
    CVM_STAGES(CVM_CASE)
#undef CVM_CASE
    case Opcode::load_:
      return "load";
    case Opcode::chain_:
      return "chain";
  }
  return nullptr;
}

const std::vector<std::int64_t>* Attributes::find(std::string_view name, int count) const {
  for (const auto& [key, values] : entries_) {
    if (key == name) return count < 0 || values.size() == static_cast<std::size_t>(count) ? &values : nullptr;
  }
  return nullptr;
}

}  // namespace cvm
