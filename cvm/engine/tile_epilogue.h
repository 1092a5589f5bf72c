// Epilogues that take a tile of sums in the nearest cache through registers, once or twice, whoever computed the sums.
#pragma once

#include <optional>

#include "epilogue_form.h"
#include "shift_blocks.h"

namespace cvm {

class TileEpilogue {
 public:
  // Returns nothing if the result or a rescale has no kernel.
  static std::optional<TileEpilogue> make(const StepCall& call, const EpilogueForm& form);

  // Whether the tile begins where vectors do, at a multiple of their length.
  bool takes(const Tile& tile) const { return tile.channel % lanes_ == 0; }
  // Finishes dense sums of the tile, which begins at row `row` of the result.
  void run(const Buffers& buffers, std::int64_t row, const Tile& tile, std::int32_t* sums) const;

 private:
  bool add_shortcut(const StepCall& call, const EpilogueForm& form, std::span<const std::int64_t> channels);

  const FinishKernels* kernels_ = nullptr;
  std::int64_t lanes_ = 1;
  Operand result_;
  ScaleBlocksStorage own_, last_;
  std::int32_t low_ = 0, high_ = 0, add_ = 0;
  std::optional<Operand> shortcut_;
  ByteBlocksStorage shortcut_bytes_;
  ScaleBlocksStorage shortcut_words_;
  std::optional<ShiftBlocksStorage> shifted_;  // in place of own_ and shortcut_bytes_
};

}  // namespace cvm
