// Packs the weights of a transposed convolution: those of one pixel of x, and of all pixels that it reaches in a row.
#include "transposed_weights.h"

#include <algorithm>
#include <memory>

namespace cvm {
namespace {

constexpr std::int64_t kOutputs = kMaxPanelColumns;  // of a block: tiles of so few have pixels for several rows

}  // namespace

const TransposedWeights& TransposedWeights::of(const StepCall& call, const ConvGeometry& g) {
  const std::vector<std::int64_t> order{g.kernel_height, g.kernel_width, g.channels, g.stride_down, g.stride_right};
  return call.packings.share<TransposedWeights>(call.spec.parameters[0], order, [&] {
    return std::make_unique<TransposedWeights>(call.parameter(0).as<std::int8_t>(), g, *call.kernels.products);
  });
}

TransposedWeights::TransposedWeights(std::span<const std::int8_t> w, const ConvGeometry& g, const ProductKernels& kernels)
    : lanes_(kernels.lanes),
      step_(kernels.step16),
      depth_(divide_up(g.channels, step_) * step_),
      residues_(std::min(g.stride_right, g.kernel_width)),
      taps_(taps_of(0, g.stride_right, g.kernel_width)) {
  cut(g.outputs);
  std::int64_t size = 0;
  for (std::int64_t residue = 0; residue < std::min(g.stride_down, g.kernel_height); ++residue) {
    runs_.push_back(taps_of(residue, g.stride_down, g.kernel_height) * taps_);
    starts_.push_back(size);
    size += runs_.back() * depth_ * columns_;
  }
  auto* const to = room<std::int16_t>(static_cast<std::size_t>(size));
  for (std::size_t residue = 0; residue < runs_.size(); ++residue) {
    for (const ColumnBlock& block : blocks_) pack(w, g, static_cast<std::int64_t>(residue), block, to + starts_[residue]);
  }
}

void TransposedWeights::cut(std::int64_t outputs) {
  for (std::int64_t channel = 0; channel < outputs; channel += kOutputs) {
    ColumnBlock block{channel, std::min(kOutputs, outputs - channel), {}};
    for (std::int64_t first = 0; first < residues_ * block.outputs; first += 2 * lanes_) {
      const std::int64_t columns = std::min(2 * lanes_, residues_ * block.outputs - first);
      block.panels.push_back({first, columns, columns > lanes_ ? 2 : 1, columns_});
      columns_ += block.panels.back().vectors * lanes_;
    }
    blocks_.push_back(std::move(block));
  }
}

void TransposedWeights::pack(std::span<const std::int8_t> w, const ConvGeometry& g, std::int64_t residue,
                             const ColumnBlock& block, std::int16_t* to) const {
  const std::int64_t runs = runs_[static_cast<std::size_t>(residue)];
  for (const ColumnPanel& panel : block.panels) {
    const std::int64_t width = panel.vectors * lanes_;
    for (std::int64_t column = 0; column < panel.columns; ++column) {
      const std::int64_t output = block.channel + (panel.first + column) % block.outputs;
      for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t p = residue + run / taps_ * g.stride_down;
        const std::int64_t q = (panel.first + column) / block.outputs + run % taps_ * g.stride_right;
        if (q >= g.kernel_width) continue;
        const std::int8_t* from = w.data() + ((output * g.kernel_height + p) * g.kernel_width + q) * g.channels;
        std::int16_t* next = to + (panel.place * runs + run * width) * depth_ + column * step_;
        for (std::int64_t k = 0; k < g.channels; k += step_, next += width * step_) {
          std::copy_n(from + k, std::min(step_, g.channels - k), next);
        }
      }
    }
  }
}

const void* TransposedWeights::at(std::int64_t residue, const ColumnPanel& panel, std::int64_t tap) const {
  const auto place = static_cast<std::size_t>(residue);
  const std::int64_t before = panel.place * runs_[place] + tap * taps_ * panel.vectors * lanes_;
  return reinterpret_cast<const std::int16_t*>(data()) + starts_[place] + before * depth_;
}

Aligned<std::int32_t> TransposedWeights::biases(std::span<const std::int32_t> plain) const {
  Aligned<std::int32_t> biases(static_cast<std::size_t>(columns_), 0);
  for (const ColumnBlock& block : blocks_) {
    for (const ColumnPanel& panel : block.panels) {
      for (std::int64_t column = 0; column < panel.columns; ++column) {
        const std::int64_t output = block.channel + (panel.first + column) % block.outputs;
        biases[static_cast<std::size_t>(panel.place + column)] = plain[static_cast<std::size_t>(output)];
      }
    }
  }
  return biases;
}

}  // namespace cvm
