// What nearly every epilogue is, recognised in a chain: sums rescaled, perhaps with a shortcut added, perhaps clamped or widened.
#pragma once

#include <optional>

#include "chain.h"
#include "scale_blocks.h"
#include "step.h"

namespace cvm {

// sums -> own                       (-> clamp) (-> widened)
// sums -> own -> + shortcut -> last (-> clamp) (-> widened)
struct EpilogueForm {
  struct Shortcut {
    std::size_t operand;             // of the step, of the result's own shape
    std::optional<StageData> scale;  // nothing: i32, added as it is
  };

  StageData own;  // of the sums; a shift by a constant, or no stage at all, is a rescale by a power of two
  std::optional<Shortcut> shortcut;
  std::optional<StageData> last;  // with a shortcut only; by 1 where the chain has no such stage
  DType narrow = DType::i32;         // what own, or last, saturates to
  std::int32_t low = 0, high = 0;    // of narrow
  std::optional<std::int32_t> moved;  // if there, narrow integers become i32 with this added

  static std::optional<EpilogueForm> match(const StepCall& call, const Chain& chain);

  bool clamps() const { return low != lowest(narrow) || high != highest(narrow); }
  const StageData& final_scale() const { return last ? *last : own; }
  // The form of the last rescale, if vectors can do it.
  std::optional<ScaleForm> final_form() const;
};

}  // namespace cvm
