// The weights and biases of linear steps, some of which come in halves: 2^low_bits * high + low, for rows of 16 bits. The plan
// has the parameters of the low half first. Sums are taken modulo 2^32, so the products with both are those with the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "step.h"

namespace cvm {

// Whether a step's parameters are w and b, or for `halves` of a 16-bit x twice these, alike, with `low_bits`.
Problem check_weights(const StepCall& call, bool halves);

inline bool in_halves(const StepCall& call) { return call.spec.parameters.size() == 4; }

// Of a step in halves.
std::vector<std::int16_t> whole_weights(const StepCall& call);

// Of any step, modulo 2^32.
std::vector<std::int32_t> whole_biases(const StepCall& call);

// What a packing depends on besides the constant of the low half, or of all.
std::vector<std::int64_t> other_half(const StepCall& call);

}  // namespace cvm
