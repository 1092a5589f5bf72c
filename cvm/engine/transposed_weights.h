// Weights of a transposed convolution of one group as product kernels take them; transposed.cpp defines in which columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned.h"
#include "geometry.h"

namespace cvm {

// The taps that reach places of this residue modulo the stride: they lie a stride apart.
constexpr std::int64_t taps_of(std::int64_t residue, std::int64_t stride, std::int64_t kernel) {
  return residue < kernel ? divide_up(kernel - residue, stride) : 0;
}

// One or two vectors of neighbouring columns of a block; what is left of the vectors is spare.
struct ColumnPanel {
  std::int64_t first, columns, vectors;
  std::int64_t place;  // of its first column among those of all blocks, spare ones included
};

// Neighbouring outputs: column c is output c % outputs of the pixel at residue c / outputs.
struct ColumnBlock {
  std::int64_t channel, outputs;
  std::vector<ColumnPanel> panels;
};

// For each residue down, panel by panel: its taps down, and for each those along the row, of which some columns lack the
// last.
class TransposedWeights final : public Packing {
 public:
  static const TransposedWeights& of(const StepCall& call, const ConvGeometry& geometry);
  TransposedWeights(std::span<const std::int8_t> w, const ConvGeometry& geometry, const ProductKernels& kernels);

  const std::vector<ColumnBlock>& blocks() const { return blocks_; }
  std::int64_t depth() const { return depth_; }        // elements of a run, spare ones included
  std::int64_t residues() const { return residues_; }  // along the row that some tap reaches
  std::int64_t taps() const { return taps_; }          // along the row
  // Of a panel, from this tap of the residue down on.
  const void* at(std::int64_t residue, const ColumnPanel& panel, std::int64_t tap) const;
  // Of each column of the panels.
  Aligned<std::int32_t> biases(std::span<const std::int32_t> plain) const;

 private:
  void cut(std::int64_t outputs);
  void pack(std::span<const std::int8_t> w, const ConvGeometry& geometry, std::int64_t residue, const ColumnBlock& block,
            std::int16_t* to) const;

  std::int64_t lanes_, step_, depth_, residues_, taps_;
  std::int64_t columns_ = 0;  // of all panels
  std::vector<ColumnBlock> blocks_;
  std::vector<std::int64_t> runs_, starts_;  // of each residue down
};

}  // namespace cvm
