// Residual sums that need no multiplier of 31 bits: sums are shifted to the left, and a shortcut is multiplied by an integer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aligned.h"
#include "kernels/scales.h"
#include "stage.h"

namespace cvm {

class ShiftBlocksStorage {
 public:
  ShiftBlocksStorage() = default;
  // `own` is the rescale of the sums, `shortcut` that of a shortcut of i8; without it there is nothing to multiply.
  // Returns nothing if a channel of `own` is no shift to the left, or a channel of `shortcut` no factor of 15 bits.
  static std::optional<ShiftBlocksStorage> make(const StageData& own, const std::optional<StageData>& shortcut,
                                                std::span<const std::int64_t> channels, std::int64_t lanes);

  // Returns the constants of all columns, and sets them to 0.
  std::vector<std::int32_t> take_constants();

  // The blocks from that of this column on; the column is a multiple of lanes.
  ShiftBlocks at(std::int64_t column) const {
    return {reinterpret_cast<const std::uint8_t*>(data_.data() + column * kWords), lanes_ * kWords * 4};
  }

 private:
  static constexpr std::int64_t kWords = 3;  // of a channel

  std::int64_t lanes_ = 1;
  Aligned<std::int32_t> data_;
};

}  // namespace cvm
