// The two epilogues that nearly every layer has, recognised in a chain so that its sums never leave registers.
#pragma once

#include <optional>
#include <span>

#include "chain.h"
#include "kernels/products.h"
#include "scale_blocks.h"
#include "step.h"

namespace cvm {

// sums -> rescale -> i8 (-> clamp), or sums -> rescale + shortcut -> rescale -> i8 (-> clamp); the result is stored i8.
class RegisterEpilogue {
 public:
  // Nothing unless the step's stages are one of the two, on 8-bit rows. `channels` as Panels has them.
  static std::optional<RegisterEpilogue> match(const StepCall& call, const Chain& chain,
                                               std::span<const std::int64_t> channels, const ProductKernels& kernels);

  // The task's tile, from row `row` of the result and from output `channel`, which is column `column` of the panels.
  void run(const ProductTask& task, const Buffers& buffers, std::int64_t row, std::int64_t channel, std::int64_t column,
           std::int64_t columns) const;

 private:
  const ProductKernels* kernels_ = nullptr;
  Operand result_;
  ScaleBlocksStorage own_;  // of the sums: per channel
  std::int32_t low_ = 0, high_ = 255;
  bool has_shortcut_ = false;
  Operand shortcut_;
  ByteScale shortcut_scale_{};  // of a shortcut of bytes
  ScaleBlocksStorage last_;  // of the sum with the shortcut
};

}  // namespace cvm
