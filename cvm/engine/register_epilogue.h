// The epilogues of products whose sums never leave registers.
#pragma once

#include <optional>
#include <span>

#include "epilogue_form.h"
#include "kernels/products.h"
#include "shift_blocks.h"

namespace cvm {

// To stored i8:  sums -> rescale (-> clamp), or sums -> rescale + shortcut -> rescale (-> clamp).
// To i16:        sums -> rescale (-> clamp).
// To i32:        sums -> rescale, or sums -> rescale to i8 (-> clamp) -> the same integers in i32.
// Rows of 16 bits: to i8 and i16, without a shortcut.
class RegisterEpilogue {
 public:
  // Returns nothing unless the form is one of these. `channels` are those of the panels, and `biases` those of their
  // sums: make may add a constant of the rescale to them.
  static std::optional<RegisterEpilogue> make(const StepCall& call, const EpilogueForm& form, std::span<const std::int64_t> channels,
                                              const ProductKernels& kernels, std::span<std::int32_t> biases);
  // An epilogue of a chain's first stage alone, which makes 16 bits of the sums.
  static std::optional<RegisterEpilogue> first_stage(const StepCall& call, const Stage& rescale,
                                                     std::span<const std::int64_t> channels, const ProductKernels& kernels);

  // Writes 16 bits, as a dense tile, where the epilogue is that of a first stage.
  void to_words(const ProductTask& task, std::int64_t column, std::int64_t columns, std::int16_t* to) const;
  // Where the result has 32 bits, to_wide writes a tile of it by itself, with rows `pitch` apart.
  bool gives_wide() const { return result_.dtype == DType::i32; }
  void to_wide(const ProductTask& task, std::int64_t column, std::int64_t columns, std::int32_t* to, std::int64_t pitch) const;
  // Whether the shortcut is a passed value, which run may read from `passed`.
  bool adds_passed() const { return shortcut_ && shortcut_->room == Room::passed && shortcut_->dtype == DType::i32; }
  // Finishes the tile of the task: from row `row` of the result on and from output `channel`, which is column `column`
  // of the panels. A shortcut that is passed may lie in `passed`, as a dense tile of the same size, rather than in its
  // room.
  void run(const ProductTask& task, const Buffers& buffers, std::int64_t row, std::int64_t channel, std::int64_t column,
           std::int64_t columns, const std::int32_t* passed = nullptr) const;

 private:
  bool add_shortcut(const StepCall& call, const EpilogueForm& form, std::span<const std::int64_t> channels);

  const ProductKernels* kernels_ = nullptr;
  bool words_ = false;  // rows have 16 bits
  Operand result_;
  ScaleBlocksStorage own_;  // of the sums
  std::int32_t low_ = 0, high_ = 0;
  std::int32_t add_ = 0;  // to a byte that is widened
  // Of a residual only.
  std::optional<Operand> shortcut_;
  ByteBlocksStorage shortcut_scale_;  // of a shortcut of bytes
  std::optional<ShiftBlocksStorage> shifted_;  // in place of own_ and shortcut_scale_
  ScaleBlocksStorage last_;           // of the sum with the shortcut
};

}  // namespace cvm
