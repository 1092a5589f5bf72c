// Packs what depthwise kernels read, once.
#include "depthwise_weights.h"

#include <cstring>

namespace cvm {
namespace {

std::int64_t blocks_of(std::int64_t channels, std::int64_t lanes) { return (channels + lanes - 1) / lanes; }

template <typename Weight>
void pack_block(std::span<const std::int8_t> w, std::int64_t first, std::span<const std::int64_t> taps, std::int64_t kernel,
                std::int64_t lanes, std::int64_t step, std::byte* to) {
  const auto slots = static_cast<std::int64_t>(taps.size()), channels = static_cast<std::int64_t>(w.size()) / kernel;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int64_t tap = taps[static_cast<std::size_t>(slot)];
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const bool exists = tap >= 0 && first + lane < channels;
      const Weight weight = exists ? w[static_cast<std::size_t>((first + lane) * kernel + tap)] : Weight{0};
      const std::int64_t place = (slot / step * lanes + lane) * step + slot % step;
      std::memcpy(to + place * static_cast<std::int64_t>(sizeof weight), &weight, sizeof weight);
    }
  }
}

}  // namespace

std::vector<std::int64_t> biases_without_zero_point(const StepCall& call, const ConvGeometry& geometry) {
  const auto w = call.parameter(0).as<std::int8_t>();
  const auto b = call.parameter(1).as<std::int32_t>();
  const std::size_t kernel = w.size() / b.size();
  std::vector<std::int64_t> biases(b.begin(), b.end());
  for (std::size_t o = 0; o < b.size(); ++o) {
    for (std::int8_t weight : w.subspan(o * kernel, kernel)) biases[o] -= geometry.zero_point * weight;
  }
  return biases;
}

DepthwiseWeights::DepthwiseWeights(const StepCall& call, const ConvGeometry& geometry, std::span<const std::int64_t> taps)
    : lanes_(call.kernels.depthwise->lanes) {
  const DepthwiseKernels& kernels = *call.kernels.depthwise;
  const bool words = call.operand(0).dtype == DType::i16;
  const bool wide = words || kernels.wide_weights;
  const std::int64_t step = words ? kernels.step16 : kernels.step8;
  const std::int64_t blocks = blocks_of(geometry.channels, lanes_);
  block_bytes_ = static_cast<std::int64_t>(taps.size()) * lanes_ * (wide ? 2 : 1);
  weights_.resize(static_cast<std::size_t>(blocks * block_bytes_));
  const auto w = call.parameter(0).as<std::int8_t>();
  for (std::int64_t block = 0; block < blocks; ++block) {
    (wide ? pack_block<std::int16_t> : pack_block<std::int8_t>)(w, block * lanes_, taps,
                                                                geometry.kernel_height * geometry.kernel_width, lanes_, step,
                                                                weights_.data() + block * block_bytes_);
  }
  for (std::int64_t bias : biases_without_zero_point(call, geometry)) {
    bias_.push_back(static_cast<std::int32_t>(static_cast<std::uint64_t>(bias)));
  }
  bias_.resize(static_cast<std::size_t>(blocks * lanes_));
}

bool DepthwiseScales::fits(const Stage& rescale) {
  for (std::size_t i = 0; i < rescale.data.shift.size(); ++i) {
    if (rescale.data.shift[i] < 32 && rescale.data.multiplier[i] != 0) return false;
  }
  return true;
}

DepthwiseScales::DepthwiseScales(const Stage& rescale, std::span<const std::int64_t> biases, std::int64_t lanes)
    : lanes_(lanes), zero_point_(rescale.data.output_zero_point + 128) {
  const auto channels = static_cast<std::int64_t>(biases.size());
  const std::int64_t padded = blocks_of(channels, lanes) * lanes;
  const bool per_channel = rescale.data.multiplier.size() > 1;
  for (std::int64_t c = 0; c < padded; ++c) {
    const auto index = static_cast<std::size_t>(per_channel && c < channels ? c : 0);
    const std::int32_t multiplier = rescale.data.multiplier[index];
    const std::int32_t shift = multiplier == 0 ? 32 : rescale.data.shift[index];
    const std::int64_t bias = c < channels ? biases[static_cast<std::size_t>(c)] : 0;
    multiplier_.push_back(multiplier);
    shift_.push_back(shift - 32);
    const std::uint64_t product = static_cast<std::uint64_t>(bias) * static_cast<std::uint64_t>(multiplier);
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    (c % 2 == 0 ? even_offset_ : odd_offset_).push_back(static_cast<std::int64_t>(product + half));
  }
}

DepthwiseScale DepthwiseScales::at(std::int64_t block, std::int32_t low, std::int32_t high) const {
  const std::int64_t first = block * lanes_, half = first / 2;
  return {multiplier_.data() + first,
          shift_.data() + first,
          even_offset_.data() + half,
          odd_offset_.data() + half,
          static_cast<std::int16_t>(zero_point_),
          static_cast<std::uint8_t>(low + 128),
          static_cast<std::uint8_t>(high + 128)};
}

}  // namespace cvm
