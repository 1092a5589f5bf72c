// The epilogues that nearly every layer has, recognised in a chain so that its sums never leave registers.
#pragma once

#include <optional>
#include <span>

#include "chain.h"
#include "kernels/products.h"
#include "scale_blocks.h"
#include "step.h"

namespace cvm {

// To stored i8:  sums -> rescale (-> clamp), or sums -> rescale + shortcut -> rescale (-> clamp).
// To i16:        sums -> rescale.
// To i32:        sums -> rescale, or sums -> rescale to i8 -> the same integers in i32.
class RegisterEpilogue {
 public:
  // Nothing unless the step's stages are one of these, on 8-bit rows. `channels` as Panels has them.
  static std::optional<RegisterEpilogue> match(const StepCall& call, const Chain& chain,
                                               std::span<const std::int64_t> channels, const ProductKernels& kernels);

  // The task's tile, from row `row` of the result and from output `channel`, which is column `column` of the panels.
  void run(const ProductTask& task, const Buffers& buffers, std::int64_t row, std::int64_t channel, std::int64_t column,
           std::int64_t columns) const;

 private:
  enum class Form { bytes, residual, words, wide, wide_bytes };
  struct Match;  // what the functions that look for one form share

  const ProductKernels* kernels_ = nullptr;
  Form form_ = Form::bytes;
  Operand result_;
  ScaleBlocksStorage own_;  // of the sums
  std::int32_t low_ = 0, high_ = 255;
  std::int32_t add_ = 0;  // to a byte that is widened
  bool high_words_ = false;  // own_ has the form words
  // Of a residual only.
  Operand shortcut_;
  ByteBlocksStorage shortcut_scale_;  // of a shortcut of bytes
  ScaleBlocksStorage last_;           // of the sum with the shortcut
};

}  // namespace cvm
