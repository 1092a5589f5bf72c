// The instruction sets that this build has kernels for, and what each of them offers.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/kernels.h"

namespace cvm {

// Names, slowest first, of those that this processor can run.
std::vector<std::string_view> supported_isas();

// The kernels of one instruction set by name ("portable", "avx2", "avxvnni", "avx512vnni", "amx", "neon", "dotprod", "i8mm"), the fastest for "".
// nullptr if this build or processor does not have it.
const Kernels* kernels_for(std::string_view name);

}  // namespace cvm
