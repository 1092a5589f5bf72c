// An order of channels for kernels that add the products of two neighbours in 16 bits (byte_steps.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cvm {

inline constexpr std::int64_t kPanelRows = 16;  // rows of weights that are in one step

// Of weights of channels x rows, whose rows are a multiple of kPanelRows: channels in twos of which few panels have an excess,
// and these in fours, a step, that have theirs in the same panels. A heuristic: any order gives the same sums.
std::vector<std::int32_t> paired_channels(std::span<const std::int8_t> weights, std::int64_t channels);

}  // namespace cvm
