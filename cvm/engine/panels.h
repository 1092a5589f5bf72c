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

class Panels final : public Packing {
 public:
  // Of a step's weights; packed for the faster kernels, if there are any and the weights suit them.
  static const Panels& of(const StepCall& call, const ConvGeometry& geometry);

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
  const void* weights(const Panel& panel) const { return data() + panel.offset; }
  const std::int32_t* offsets(const Panel& panel) const { return offsets_.data() + panel.first_step; }
  // Of each column, with the zero point of x folded in, which is 0 where x has 16 bits.
  Aligned<std::int32_t> biases(std::span<const std::int32_t> plain, std::int64_t zero_point) const;
  std::int64_t panel_bytes() const { return bytes() / static_cast<std::int64_t>(list_.size()); }

 private:
  // What packing depends on besides the weights.
  struct Order {
    bool wide;          // x has 16 bits
    bool input;         // x lies in a caller's memory, where there is no room behind a line
    bool side_by_side;  // pixels lie so in lines
    std::int64_t kernel_height, kernel_width, group_channels, groups, group_outputs;

    std::int64_t row() const { return kernel_height * kernel_width * group_channels; }
    // Elements of a row, spare ones included, for kernels that take blocks: of so many runs, if pixels let lines be one.
    std::int64_t block_depth(std::int64_t runs) const;
  };
  template <typename From>
  Panels(const Order& order, std::span<const From> weights, const ProductKernels& kernels);
  static const ProductKernels& kernels_for(const ProductKernels& set, const Order& order, bool blocks, bool halves);
  static bool blocks_pay(const Order& order, std::int64_t rows);
  static bool steps_pay(const Order& order, std::span<const std::int8_t> weights, const ProductKernels& kernels);
  void cut(const Order& order);
  template <typename Weight, typename From>
  void pack(std::span<const From> weights, std::int64_t row, std::int64_t step);
  // In blocks of kBlockDepth elements: their low bytes, then their high bytes.
  void pack_planes(std::span<const std::int16_t> weights, std::int64_t row);
  void pack_steps(std::span<const std::int8_t> weights, std::int64_t row);
  void add_up(std::span<const std::int8_t> weights, std::int64_t row);

  const ProductKernels* kernels_;
  bool gathered_, lined_;
  std::int64_t runs_, depth_;
  std::int64_t multiplied_less_;  // what kernels take off every element of x
  std::vector<Panel> list_;
  std::vector<std::int64_t> channels_;
  std::vector<std::int32_t> offsets_;  // of byte steps
  std::vector<std::uint32_t> sums_;    // of each column's weights, modulo 2^32, for bytes of x
};

}  // namespace cvm
