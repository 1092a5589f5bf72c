// Weights cut into steps of four bytes of depth whose products fit 16 bits, for kernels that add products of bytes there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cvm {

// The sum of a pair's weights of one sign whose products fit 16 bits: 255 * 128 does, 255 * 129 does not.
inline constexpr int kMostOfPair = 128;

// The steps of one panel. The first 2 * doubles are pairs of steps whose products may be added to each other in 16 bits.
struct ByteSteps {
  std::vector<std::int32_t> offsets;  // of each step's four elements of x in its row
  std::vector<std::int8_t> weights;   // step, column, 4
  std::int64_t doubles = 0;

  std::int64_t singles() const { return static_cast<std::int64_t>(offsets.size()) - 2 * doubles; }
};

// `columns` has `depth` weights for each column, or nullptr for a spare one. Two products of a byte of x, which is 0..255, are
// added in 16 bits, where they fit if neither the positive nor the negative weights sum to more than 128. Where a pair
// of a step has more, the excess becomes a step of its own.
ByteSteps byte_steps(std::span<const std::int8_t* const> columns, std::int64_t depth);

}  // namespace cvm
