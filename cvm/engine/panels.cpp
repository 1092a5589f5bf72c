// Packs weights, and folds zero points into biases.
#include "panels.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "byte_steps.h"
#include "linear_weights.h"

namespace cvm {
namespace {

constexpr std::int64_t kLeastBlockDepth = 64;
#if defined(CVM_EMULATE_AMX)
constexpr bool kEveryDepth = true;  // for tests
#else
constexpr bool kEveryDepth = false;
#endif

std::int64_t round_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y * y; }

// Where the weights of each column of a panel begin, nullptr for spare columns; rows have one run.
std::vector<const std::int8_t*> columns_of(const Panel& panel, std::span<const std::int8_t> weights, std::int64_t row,
                                           std::int64_t lanes) {
  std::vector<const std::int8_t*> columns(static_cast<std::size_t>(panel.vectors * lanes), nullptr);
  for (std::int64_t column = 0; column < panel.columns; ++column) {
    columns[static_cast<std::size_t>(column)] = weights.data() + (panel.channel + column) * row;
  }
  return columns;
}

}  // namespace

const Panels& Panels::of(const StepCall& call, const ConvGeometry& geometry) {
  const Operand& x = call.operand(0);
  const Order order{x.dtype == DType::i16, x.room == Room::input,
                    geometry.dilation_right == 1 && geometry.groups == 1 && geometry.pixel_pitch == geometry.channels,
                    geometry.kernel_height, geometry.kernel_width, geometry.group_channels(), geometry.groups,
                    geometry.group_outputs()};
  std::vector<std::int64_t> key{order.wide,         order.input,          order.side_by_side, order.kernel_height,
                                      order.kernel_width, order.group_channels, order.groups,       order.group_outputs};
  const bool blocks = call.kernels.products->blocks != nullptr && blocks_pay(order, geometry.out_pixels());
  const ProductKernels& kernels = kernels_for(*call.kernels.products, order, blocks, in_halves(call));
  key.push_back(blocks);
  const std::vector<std::int64_t> half = other_half(call);
  key.insert(key.end(), half.begin(), half.end());
  return call.packings.share<Panels>(call.spec.parameters[0], key, [&] {
    if (in_halves(call)) {
      const std::vector<std::int16_t> whole = whole_weights(call);
      return std::unique_ptr<Panels>(new Panels(order, std::span(whole), kernels));
    }
    const auto weights = call.parameter(0).as<std::int8_t>();
    const bool in_steps = !order.wide && kernels.by_bytes != nullptr && steps_pay(order, weights, kernels);
    return std::unique_ptr<Panels>(new Panels(order, weights, in_steps ? *kernels.by_bytes : kernels));
  });
}

// Those of the set that take such weights, in blocks of rows or not.
const ProductKernels& Panels::kernels_for(const ProductKernels& set, const Order& order, bool blocks, bool halves) {
  if (set.blocks == nullptr) return set;
  if (!blocks) return *set.by_quads;
  if (!order.wide) return set;
  return halves ? *set.whole_blocks : *set.word_blocks;
}

// Spare elements of depth cost as much as others.
std::int64_t Panels::Order::block_depth(std::int64_t runs) const {
  if (runs < kernel_height * kernel_width && !side_by_side) return std::numeric_limits<std::int64_t>::max();
  return runs * round_up(row() / runs, kBlockDepth);
}

// Measured with AMX on layers of ResNet-50: sums of less depth are not worth their way through memory.
bool Panels::blocks_pay(const Order& order, std::int64_t rows) {
  const std::int64_t taps = order.kernel_height * order.kernel_width;
  const std::int64_t depth = std::min(order.block_depth(order.kernel_height), order.block_depth(taps));
  const bool deep = order.row() >= kLeastBlockDepth && 3 * depth <= 4 * order.row();
  return rows >= kBlockRows && (deep || kEveryDepth);
}

// Judges by the first panel: to cut all weights, if in the end they do not suit, would cost as much as to pack them.
bool Panels::steps_pay(const Order& order, std::span<const std::int8_t> weights, const ProductKernels& kernels) {
  const std::int64_t columns = std::min(2 * kernels.lanes, order.group_outputs);
  const Panel first{0, 0, columns, 2, 0, 0};
  const ByteSteps steps = byte_steps(columns_of(first, weights, order.row(), kernels.lanes), order.row());
  // Measured on layers of ResNet-50: a double takes 15, a single 10, and the same depth in 16-bit integers 12 for each step.
  return 15 * steps.doubles + 10 * steps.singles() < 12 * (order.row() + 3) / 4;
}

template <typename From>
Panels::Panels(const Order& order, std::span<const From> weights, const ProductKernels& kernels) : kernels_(&kernels) {
  const std::int64_t step = order.wide ? kernels.step16 : kernels.step8;
  multiplied_less_ = kernels.less_128 && !order.wide ? 128 : 0;
  const std::int64_t taps = order.kernel_height * order.kernel_width;
  const bool as_they_are = order.wide ? !order.input : !kernels.widens;
  const bool fills = order.group_channels % step == 0, pairs = kernels.pairs && !order.wide;
  if (kernels.blocks != nullptr) {
    lined_ = order.block_depth(order.kernel_height) < order.block_depth(taps);
    gathered_ = false;
  } else {
    lined_ = as_they_are && !pairs && !fills && order.side_by_side && taps > 1;
    gathered_ = !lined_ && ((kernels.widens && !order.wide) || !fills || (pairs && taps > 1));
  }
  runs_ = gathered_ ? 1 : lined_ ? order.kernel_height : taps;
  depth_ = round_up(order.group_channels * taps / runs_, step);
  cut(order);
  sums_.assign(channels_.size(), 0);
  if constexpr (sizeof(From) > 1) {
    kernels.blocks ? pack_planes(weights, order.row()) : pack<std::int16_t>(weights, order.row(), step);
  } else if (order.wide) {
    kernels.blocks ? pack<std::int8_t>(weights, order.row(), kBlockStep) : pack<std::int16_t>(weights, order.row(), step);
  } else {
    pairs ? pack_steps(weights, order.row()) : pack<std::int8_t>(weights, order.row(), kernels.blocks ? kBlockStep : step);
    add_up(weights, order.row());
  }
}

void Panels::cut(const Order& order) {
  const std::int64_t lanes = kernels_->lanes;
  for (std::int64_t group = 0; group < order.groups; ++group) {
    for (std::int64_t first = 0; first < order.group_outputs; first += 2 * lanes) {
      const std::int64_t columns = std::min(2 * lanes, order.group_outputs - first);
      const std::int64_t channel = group * order.group_outputs + first;
      list_.push_back(
          {group, channel, columns, columns > lanes ? 2 : 1, static_cast<std::int64_t>(channels_.size()), 0});
      for (std::int64_t column = 0; column < list_.back().vectors * lanes; ++column) {
        channels_.push_back(column < columns ? channel + column : -1);
      }
    }
  }
}

template <typename Weight, typename From>
void Panels::pack(std::span<const From> weights, std::int64_t row, std::int64_t step) {
  const std::int64_t length = row / runs_;  // of a run, without spare elements
  Weight* const first = room<Weight>(channels_.size() * static_cast<std::size_t>(runs_ * depth_) + 64 / sizeof(Weight));
  for (Panel& panel : list_) {
    Weight* const to = first + panel.column * runs_ * depth_;
    panel.offset = panel.column * runs_ * depth_ * std::int64_t{sizeof(Weight)};
    const std::int64_t columns = panel.vectors * kernels_->lanes;
    for (std::int64_t column = 0; column < panel.columns; ++column) {
      const From* from = weights.data() + (panel.channel + column) * row;
      for (std::int64_t run = 0; run < runs_; ++run, from += length) {
        Weight* next = to + run * depth_ * columns + column * step;
        for (std::int64_t k = 0; k < length; k += step, next += columns * step) {
          std::copy_n(from + k, std::min(step, length - k), next);
        }
      }
    }
  }
}

void Panels::pack_planes(std::span<const std::int16_t> weights, std::int64_t row) {
  const std::int64_t length = row / runs_;
  std::uint8_t* const first = room<std::uint8_t>(channels_.size() * static_cast<std::size_t>(2 * runs_ * depth_) + 64);
  for (Panel& panel : list_) {
    panel.offset = 2 * panel.column * runs_ * depth_;
    const std::int64_t columns = panel.vectors * kernels_->lanes;
    for (std::int64_t column = 0; column < panel.columns; ++column) {
      const std::int16_t* from = weights.data() + (panel.channel + column) * row;
      std::uint8_t* to = first + panel.offset + column * kBlockStep;
      for (std::int64_t run = 0; run < runs_; ++run, from += length, to += 2 * depth_ * columns) {
        for (std::int64_t k = 0; k < length; ++k) {
          const std::int64_t block = k / kBlockDepth, step = k % kBlockDepth / kBlockStep;
          std::uint8_t* const low = to + (2 * block * kBlockDepth + step * kBlockStep) * columns + k % kBlockStep;
          const auto weight = static_cast<std::uint16_t>(from[k]);
          low[0] = static_cast<std::uint8_t>(weight & 0xFF);
          low[kBlockDepth * columns] = static_cast<std::uint8_t>(weight >> 8);
        }
      }
    }
  }
}

void Panels::pack_steps(std::span<const std::int8_t> weights, std::int64_t row) {
  std::vector<std::int8_t> packed;
  for (Panel& panel : list_) {
    const ByteSteps steps = byte_steps(columns_of(panel, weights, row, kernels_->lanes), row);
    panel.offset = static_cast<std::int64_t>(packed.size());
    panel.first_step = static_cast<std::int64_t>(offsets_.size());
    panel.doubles = steps.doubles;
    panel.singles = steps.singles();
    offsets_.insert(offsets_.end(), steps.offsets.begin(), steps.offsets.end());
    packed.insert(packed.end(), steps.weights.begin(), steps.weights.end());
  }
  std::copy(packed.begin(), packed.end(), room<std::int8_t>(packed.size()));
}

void Panels::add_up(std::span<const std::int8_t> weights, std::int64_t row) {
  for (std::size_t column = 0; column < channels_.size(); ++column) {
    if (channels_[column] < 0) continue;
    const std::int8_t* from = weights.data() + channels_[column] * row;
    for (std::int64_t k = 0; k < row; ++k) sums_[column] += static_cast<std::uint32_t>(std::int32_t{from[k]});
  }
}

// sum((x - z) w) = sum(x w) - z sum(w), in integers modulo 2^32: the proof bounds the left side.
Aligned<std::int32_t> Panels::biases(std::span<const std::int32_t> plain, std::int64_t zero_point) const {
  Aligned<std::int32_t> biases(channels_.size(), 0);
  for (std::size_t column = 0; column < channels_.size(); ++column) {
    if (channels_[column] < 0) continue;
    const auto bias = static_cast<std::uint32_t>(plain[static_cast<std::size_t>(channels_[column])]);
    biases[column] = static_cast<std::int32_t>(bias - static_cast<std::uint32_t>(zero_point - multiplied_less_) * sums_[column]);
  }
  return biases;
}

}  // namespace cvm
