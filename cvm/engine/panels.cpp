// Packs weights and folds the zero point into the bias.
#include "panels.h"

#include <algorithm>
#include <cstring>

#include "byte_steps.h"

namespace cvm {
namespace {

std::int64_t round_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y * y; }

// The weights of a panel's columns, spare ones included; rows have one run.
std::vector<const std::int8_t*> columns_of(const Panel& panel, std::span<const std::int8_t> weights, std::int64_t row,
                                           std::int64_t lanes) {
  std::vector<const std::int8_t*> found(static_cast<std::size_t>(panel.vectors * lanes), nullptr);
  for (std::int64_t column = 0; column < panel.columns; ++column) {
    found[static_cast<std::size_t>(column)] = weights.data() + (panel.channel + column) * row;
  }
  return found;
}

}  // namespace

Panels Panels::make(const ConvGeometry& geometry, const Operand& x, const Constant& weights, const Constant& bias,
                    const ProductKernels& kernels) {
  const bool suit = x.dtype == DType::i8 && kernels.by_bytes != nullptr && steps_pay(geometry, weights.as<std::int8_t>(), kernels);
  return Panels(geometry, x, weights, bias, suit ? *kernels.by_bytes : kernels);
}

// The first panel stands for all: to cut weights that do not suit would cost as much as to pack them.
bool Panels::steps_pay(const ConvGeometry& geometry, std::span<const std::int8_t> weights, const ProductKernels& kernels) {
  const std::int64_t columns = std::min(2 * kernels.lanes, geometry.group_outputs());
  const Panel first{0, 0, columns, 2, 0, 0};
  const ByteSteps steps = byte_steps(columns_of(first, weights, geometry.row(), kernels.lanes), geometry.row());
  // Measured on layers of ResNet-50: a double takes 15, a single 10, and the same depth in 16-bit integers 12 for each step.
  return 15 * steps.doubles + 10 * steps.singles() < 12 * (geometry.row() + 3) / 4;
}

Panels::Panels(const ConvGeometry& geometry, const Operand& x, const Constant& weights, const Constant& bias,
               const ProductKernels& kernels)
    : kernels_(&kernels) {
  const bool wide = x.dtype == DType::i16;
  const std::int64_t step = wide ? kernels.step16 : kernels.step8;
  const std::int64_t taps = geometry.kernel_height * geometry.kernel_width;
  const bool side_by_side = geometry.dilation_right == 1 && geometry.groups == 1 && geometry.pixel_pitch == geometry.channels;
  const bool as_they_are = wide ? x.room != Room::input : !kernels.widens;  // a caller's memory has no room behind a line
  const bool fills = geometry.group_channels() % step == 0, pairs = kernels.pairs && !wide;
  lined_ = as_they_are && !pairs && !fills && side_by_side && taps > 1;
  gathered_ = !lined_ && ((kernels.widens && !wide) || !fills || (pairs && taps > 1));
  runs_ = gathered_ ? 1 : lined_ ? geometry.kernel_height : taps;
  depth_ = round_up(geometry.group_channels() * taps / runs_, step);
  cut(geometry, kernels.lanes);
  if (pairs) {
    pack_steps(geometry, weights.as<std::int8_t>());
  } else if (wide) {
    pack<std::int16_t>(geometry, weights.as<std::int8_t>(), step, kernels.lanes);
  } else {
    pack<std::int8_t>(geometry, weights.as<std::int8_t>(), step, kernels.lanes);
  }
  bytes_ = static_cast<std::int64_t>(weights_.size());
  fold_bias(geometry, weights.as<std::int8_t>(), bias.as<std::int32_t>());
}

void Panels::move_weights(std::byte* to) {
  std::memcpy(to, weights_.data(), weights_.size());
  weights_ = decltype(weights_)();  // gives the memory back, which clearing keeps
  moved_ = to;
}

void Panels::cut(const ConvGeometry& geometry, std::int64_t lanes) {
  for (std::int64_t group = 0; group < geometry.groups; ++group) {
    for (std::int64_t first = 0; first < geometry.group_outputs(); first += 2 * lanes) {
      const std::int64_t columns = std::min(2 * lanes, geometry.group_outputs() - first);
      const std::int64_t channel = group * geometry.group_outputs() + first;
      list_.push_back(
          {group, channel, columns, columns > lanes ? 2 : 1, static_cast<std::int64_t>(channels_.size()), 0});
      for (std::int64_t column = 0; column < list_.back().vectors * lanes; ++column) {
        channels_.push_back(column < columns ? channel + column : -1);
      }
    }
  }
}

template <typename Weight>
void Panels::pack(const ConvGeometry& geometry, std::span<const std::int8_t> weights, std::int64_t step,
                  std::int64_t lanes) {
  const std::int64_t row = geometry.row();
  const std::int64_t length = row / runs_;  // of a run, without spare elements
  weights_.assign(channels_.size() * static_cast<std::size_t>(runs_ * depth_) * sizeof(Weight) + 64, 0);
  for (Panel& panel : list_) {
    panel.offset = panel.column * runs_ * depth_ * std::int64_t{sizeof(Weight)};
    auto* to = reinterpret_cast<Weight*>(weights_.data() + panel.offset);
    const std::int64_t columns = panel.vectors * lanes;
    for (std::int64_t column = 0; column < panel.columns; ++column) {
      const std::int8_t* from = weights.data() + (panel.channel + column) * row;
      for (std::int64_t run = 0; run < runs_; ++run, from += length) {
        Weight* next = to + run * depth_ * columns + column * step;
        for (std::int64_t k = 0; k < length; k += step, next += columns * step) {
          std::copy_n(from + k, std::min(step, length - k), next);
        }
      }
    }
  }
}

void Panels::pack_steps(const ConvGeometry& geometry, std::span<const std::int8_t> weights) {
  const std::int64_t row = geometry.row();
  for (Panel& panel : list_) {
    const ByteSteps steps = byte_steps(columns_of(panel, weights, row, kernels_->lanes), row);
    panel.offset = static_cast<std::int64_t>(weights_.size());
    panel.first_step = static_cast<std::int64_t>(offsets_.size());
    panel.doubles = steps.doubles;
    panel.singles = steps.singles();
    offsets_.insert(offsets_.end(), steps.offsets.begin(), steps.offsets.end());
    for (const std::int8_t weight : steps.weights) weights_.push_back(static_cast<std::uint8_t>(weight));
  }
}

// sum((x - z) w) = sum(x w) - z sum(w), in integers modulo 2^32: the proof bounds the left side.
void Panels::fold_bias(const ConvGeometry& geometry, std::span<const std::int8_t> weights,
                       std::span<const std::int32_t> bias) {
  const std::int64_t row = geometry.row();
  bias_.assign(channels_.size(), 0);
  for (std::size_t column = 0; column < channels_.size(); ++column) {
    if (channels_[column] < 0) continue;
    const std::int8_t* from = weights.data() + channels_[column] * row;
    std::uint32_t sum = 0;
    for (std::int64_t k = 0; k < row; ++k) sum += static_cast<std::uint32_t>(std::int32_t{from[k]});
    const auto plain = static_cast<std::uint32_t>(bias[static_cast<std::size_t>(channels_[column])]);
    bias_[column] = static_cast<std::int32_t>(plain - static_cast<std::uint32_t>(geometry.zero_point) * sum);
  }
}

}  // namespace cvm
