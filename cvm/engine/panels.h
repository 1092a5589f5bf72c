// Weights in the order in which product kernels read them.
#pragma once

#include <cstdint>
#include <vector>

#include "aligned.h"
#include "geometry.h"
#include "kernels/products.h"

namespace cvm {

// One or two vectors of neighbouring outputs of one group.
struct Panel {
  std::int64_t group;
  std::int64_t channel;  // first output
  std::int64_t columns;  // outputs; what is left of the vectors is spare
  std::int64_t vectors;
  std::int64_t column;  // place of the first output among all columns, spare ones included
  std::int64_t offset;  // of its weights, in bytes
  // For kernels that pair:
  std::int64_t first_step = 0;  // among the steps of all panels
  std::int64_t doubles = 0, singles = 0;
};

class Panels {
 public:
  // Packed for the faster kernels, if there are any and the weights suit them.
  static Panels make(const ConvGeometry& geometry, const Operand& x, const Constant& weights, const Constant& bias,
                     const ProductKernels& kernels);
  Panels(const ConvGeometry& geometry, const Operand& x, const Constant& weights, const Constant& bias,
         const ProductKernels& kernels);

  const ProductKernels& kernels() const { return *kernels_; }  // that they are packed for

  // Whether rows must be gathered into one run: where kernels want wider integers, or channels do not fill their steps.
  bool gathered() const { return gathered_; }
  // Whether a run is a whole line of the window: where channels do not fill their steps, but the pixels of a line lie side by
  // side. Its length is rounded up with weights of 0, and no row is copied but at borders.
  bool lined() const { return lined_; }
  std::int64_t runs() const { return runs_; }  // of a row
  std::int64_t depth() const { return depth_; }  // elements of a run, spare ones included
  const std::vector<Panel>& list() const { return list_; }
  const std::vector<std::int64_t>& channels() const { return channels_; }  // of each column, -1 for spare ones
  const void* weights(const Panel& panel) const { return moved_ + panel.offset; }
  void move_weights(std::byte* to);
  const std::int32_t* offsets(const Panel& panel) const { return offsets_.data() + panel.first_step; }
  const std::int32_t* bias(const Panel& panel) const { return bias_.data() + panel.column; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t panel_bytes() const { return bytes() / static_cast<std::int64_t>(list_.size()); }

 private:
  static bool steps_pay(const ConvGeometry& geometry, std::span<const std::int8_t> weights, const ProductKernels& kernels);
  void cut(const ConvGeometry& geometry, std::int64_t lanes);
  template <typename Weight>
  void pack(const ConvGeometry& geometry, std::span<const std::int8_t> weights, std::int64_t step, std::int64_t lanes);
  void pack_steps(const ConvGeometry& geometry, std::span<const std::int8_t> weights);
  void fold_bias(const ConvGeometry& geometry, std::span<const std::int8_t> weights,
                 std::span<const std::int32_t> bias);

  const ProductKernels* kernels_;
  bool gathered_, lined_;
  std::int64_t runs_, depth_;
  std::vector<Panel> list_;
  std::vector<std::int64_t> channels_;
  Aligned<std::uint8_t> weights_;      // until they are moved
  const std::byte* moved_ = nullptr;
  std::int64_t bytes_ = 0;
  std::vector<std::int32_t> offsets_;  // of byte steps
  Aligned<std::int32_t> bias_;
};

}  // namespace cvm
