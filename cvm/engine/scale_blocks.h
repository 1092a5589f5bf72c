// Rescales in the order in which vectors want them (kernels/products.h, ScaleBlocks).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/products.h"
#include "stage.h"

namespace cvm {

// To integers of 32 bits, with any shifts; or to bytes in stored form, with shifts of at least 32 (ToBytes).
enum class ScaleForm { integers, stored_bytes };

class ScaleBlocksStorage {
 public:
  ScaleBlocksStorage() = default;
  // `channels`: the channel of each column, -1 for a spare one; its length is a multiple of `lanes`. `form` says which
  // kernels read it.
  ScaleBlocksStorage(const StageData& rescale, std::span<const std::int64_t> channels, std::int64_t lanes, ScaleForm form);
  // One block for all channels, of a rescale per tensor.
  ScaleBlocksStorage(const StageData& rescale, std::int64_t lanes, ScaleForm form);

  // From the block of this column on, which is a multiple of lanes.
  ScaleBlocks at(std::int64_t column) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data_.data());
    return {bytes + column / lanes_ * stride_, stride_, form_ == ScaleForm::stored_bytes};
  }

 private:
  void write(const StageData& rescale, std::span<const std::int64_t> channels);

  std::int64_t lanes_ = 1, stride_ = 0;
  ScaleForm form_ = ScaleForm::integers;
  std::vector<std::int64_t> data_;
};

// Whether vectors can do this rescale: every result fits 32 bits before it saturates.
bool fits_blocks(const StageData& rescale);
// Whether every shift is at least 32, so that results stay below 2^30 and a zero point can be added in 32 bits.
bool has_high_halves(const StageData& rescale);

}  // namespace cvm
