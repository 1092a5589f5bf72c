// What linear steps share: their epilogue, and the bodies that a convolution may get.
#pragma once

#include <memory>

#include "chain.h"
#include "geometry.h"
#include "tile_epilogue.h"

namespace cvm {

// A convolution with sums over several channels: rows of x against packed weights (products.cpp).
Made make_products(const StepCall& call, const ConvGeometry& geometry);

// 3x3 convolutions with fewer products (winograd.cpp), where the plan, the shape and the processor suit.
bool suits_winograd(const StepCall& call, const ConvGeometry& geometry);
Made make_winograd(const StepCall& call, const ConvGeometry& geometry);

// One input channel for each group (depthwise.cpp).
Made make_depthwise(const StepCall& call, const ConvGeometry& geometry);

// Transposed convolutions of several groups (transposed_groups.cpp).
Made make_transposed_groups(const StepCall& call, const ConvGeometry& geometry);

// The stages that follow sums laid out as a matrix [rows, outputs], tile by tile.
class Epilogue {
 public:
  // Checks that every operand that a stage loads broadcasts to a matrix of `rows` x last axis of the result.
  static Expected<Epilogue> make(const StepCall& call);

  std::int64_t scratch_bytes() const { return chain_.scratch_bytes(); }
  // The tile of sums to fill in before run: at most kTileElements, dense.
  static std::int32_t* sums(std::byte* scratch) { return Chain::accumulator(scratch); }
  // Finishes the sums of rows [row, row + tile.rows) and columns [tile.channel, tile.channel + tile.width).
  void run(const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch) const;
  // The same of dense sums that lie elsewhere, which it may change.
  void run_on(std::int32_t* sums, const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch) const;
  // The same where the chain takes words: finishes what the first stage made of such sums, in 16 bits, at `words`.
  bool takes_words() const { return !tile_ && chain_.takes_words(); }
  std::int16_t* words(std::byte* scratch) const { return chain_.words(scratch); }
  void run_from_words(const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch) const;
  const Chain& chain() const { return chain_; }
  const std::optional<EpilogueForm>& form() const { return form_; }  // if it is one that kernels may have
  // What run does: takes each "tile" through registers, or by the "chain", stage by stage; "" if nothing follows the sums.
  const char* path() const { return tile_ ? "tile" : chain_.stages().empty() ? "" : "chain"; }

 private:
  struct Loaded {
    Operand operand;
    std::int64_t row_stride = 0, column_stride = 0;
    bool used = false;
  };
  explicit Epilogue(Chain chain) : chain_(std::move(chain)) {}
  void run_chain(const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch, bool from_words) const;

  Chain chain_;
  std::optional<EpilogueForm> form_;
  std::optional<TileEpilogue> tile_;
  std::vector<Loaded> loads_;
  Operand result_;
  bool turned_ = false;  // results of one channel lie side by side, and so does what is loaded: rows are columns to the chain
};

}  // namespace cvm
