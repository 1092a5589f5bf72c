// Packs what depthwise kernels read, once.
#include "depthwise_weights.h"

#include <algorithm>
#include <cstring>

#include "linear_weights.h"

namespace cvm {
namespace {

// The channel that each lane of each block holds; lanes beyond the last channel hold none, -1.
std::vector<std::int64_t> channels_of_lanes(std::int64_t channels, const DepthwiseKernels& kernels, const DepthwiseRuns& runs,
                                            std::int64_t run_channels) {
  std::vector<std::int64_t> lane_channels;
  const auto append = [&](std::int64_t lanes, const std::int8_t* order) {
    const auto first = static_cast<std::int64_t>(lane_channels.size());
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t channel = first + (order == nullptr ? lane : order[lane]);
      lane_channels.push_back(channel < channels ? channel : -1);
    }
  };
  while (static_cast<std::int64_t>(lane_channels.size()) < run_channels) {
    append(runs.blocks * kernels.lanes, runs.order);
  }
  while (static_cast<std::int64_t>(lane_channels.size()) < channels) append(kernels.lanes, kernels.order);
  return lane_channels;
}

template <typename Weight, typename From>
void pack(std::span<const From> w, std::int64_t kernel, std::span<const std::int64_t> channels,
          std::span<const std::int64_t> taps, std::int64_t lanes, std::int64_t step, std::byte* to) {
  for (std::size_t block = 0; block < channels.size(); block += static_cast<std::size_t>(lanes)) {
    for (std::size_t slot = 0; slot < taps.size(); slot += static_cast<std::size_t>(step)) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const std::int64_t channel = channels[block + static_cast<std::size_t>(lane)];
        for (std::int64_t i = 0; i < step; ++i, to += sizeof(Weight)) {
          const std::int64_t tap = taps[slot + static_cast<std::size_t>(i)];
          const bool exists = tap >= 0 && channel >= 0;
          const Weight weight = exists ? Weight{w[static_cast<std::size_t>(channel * kernel + tap)]} : Weight{0};
          std::memcpy(to, &weight, sizeof weight);
        }
      }
    }
  }
}

}  // namespace

std::vector<std::int64_t> biases_without_zero_point(const StepCall& call, const ConvGeometry& geometry) {
  const auto w = call.parameter(0).as<std::int8_t>();
  const std::vector<std::int32_t> b = whole_biases(call);
  const std::size_t kernel = w.size() / b.size();
  std::vector<std::int64_t> biases(b.begin(), b.end());
  if (geometry.zero_point == 0) return biases;  // so it is for 16-bit x, and only beside such an x weights are in halves
  for (std::size_t o = 0; o < b.size(); ++o) {
    for (std::int8_t weight : w.subspan(o * kernel, kernel)) biases[o] -= geometry.zero_point * weight;
  }
  return biases;
}

const DepthwiseWeights& DepthwiseWeights::of(const StepCall& call, const ConvGeometry& geometry,
                                             std::span<const std::int64_t> taps, std::int64_t run_channels) {
  std::vector<std::int64_t> order{taps.begin(), taps.end()};
  order.insert(order.end(), {geometry.kernel_height * geometry.kernel_width, call.operand(0).dtype == DType::i16, run_channels});
  const std::vector<std::int64_t> half = other_half(call);
  order.insert(order.end(), half.begin(), half.end());
  return call.packings.share<DepthwiseWeights>(
      call.spec.parameters[0], order, [&] { return std::make_unique<DepthwiseWeights>(call, geometry, taps, run_channels); });
}

DepthwiseWeights::DepthwiseWeights(const StepCall& call, const ConvGeometry& geometry,
                                   std::span<const std::int64_t> taps, std::int64_t run_channels)
    : channels_(channels_of_lanes(geometry.channels, *call.kernels.depthwise,
                                  runs_of(*call.kernels.depthwise, call.operand(0).dtype == DType::i16), run_channels)) {
  const DepthwiseKernels& kernels = *call.kernels.depthwise;
  const bool words = call.operand(0).dtype == DType::i16;
  const bool wide = words || kernels.wide_weights;
  block_bytes_ = static_cast<std::int64_t>(taps.size()) * kernels.lanes * (wide ? 2 : 1);
  auto* to = room<std::byte>(channels_.size() / static_cast<std::size_t>(kernels.lanes) * static_cast<std::size_t>(block_bytes_));
  const std::int64_t taps_of_all = geometry.kernel_height * geometry.kernel_width;
  const std::int64_t step = words ? kernels.step16 : kernels.step8;
  if (in_halves(call)) {
    const std::vector<std::int16_t> whole = whole_weights(call);
    pack<std::int16_t>(std::span(whole), taps_of_all, channels_, taps, kernels.lanes, step, to);
    return;
  }
  const auto w = call.parameter(0).as<std::int8_t>();
  const auto body = wide ? pack<std::int16_t, std::int8_t> : pack<std::int8_t, std::int8_t>;
  body(w, taps_of_all, channels_, taps, kernels.lanes, step, to);
}

std::vector<std::int32_t> DepthwiseWeights::in_lanes(std::span<const std::int64_t> biases) const {
  std::vector<std::int32_t> lane_biases;
  for (std::int64_t channel : channels_) {
    const std::int64_t bias = channel < 0 ? 0 : biases[static_cast<std::size_t>(channel)];
    lane_biases.push_back(static_cast<std::int32_t>(static_cast<std::uint64_t>(bias)));
  }
  return lane_biases;
}

bool DepthwiseScales::fits(const Stage& rescale) {
  if (rescale.dtype == DType::i8 && fits_short_bytes(rescale.data)) return true;
  return std::all_of(rescale.data.shift.begin(), rescale.data.shift.end(), [](std::int32_t shift) { return shift >= 32; });
}

DepthwiseScales::DepthwiseScales(const Stage& rescale, std::span<const std::int64_t> biases,
                                 const DepthwiseKernels& kernels, const DepthwiseRuns& runs, std::int64_t run_channels)
    : lanes_(kernels.lanes),
      stored_(rescale.dtype == DType::i8 ? kStored : 0),
      zero_point_(rescale.data.output_zero_point + stored_) {
  const StageData& data = rescale.data;
  const bool is_short = rescale.dtype == DType::i8 && fits_short_bytes(data);
  by_halves_ = !is_short && kernels.halves && fits_halves(data);
  for (std::int64_t channel : channels_of_lanes(static_cast<std::int64_t>(biases.size()), kernels, runs, run_channels)) {
    const auto place = static_cast<std::size_t>(data.multiplier.size() > 1 && channel >= 0 ? channel : 0);
    const std::int64_t bias = channel < 0 ? 0 : biases[static_cast<std::size_t>(channel)];
    if (by_halves_) {
      add_short(half_scale(data, place, stored_));
    } else {
      is_short ? add_short(short_scale(data, place, bias)) : add_wide(data.multiplier[place], data.shift[place], bias);
    }
  }
}

void DepthwiseScales::add_short(const ShortScale& scale) {
  multiplier_.push_back(scale.multiplier);
  offset_.push_back(scale.constant);
  shift_.push_back(scale.shift);
}

void DepthwiseScales::add_wide(std::int32_t multiplier, std::int32_t shift, std::int64_t bias) {
  const std::uint64_t product = static_cast<std::uint64_t>(bias) * static_cast<std::uint64_t>(multiplier);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  (multiplier_.size() % 2 == 0 ? even_offset_ : odd_offset_).push_back(static_cast<std::int64_t>(product + half));
  multiplier_.push_back(multiplier);
  shift_.push_back(shift - 32);
}

DepthwiseScale DepthwiseScales::at(std::int64_t block, std::int32_t low, std::int32_t high) const {
  const std::int64_t first = block * lanes_, half = first / 2;
  const bool is_short = !offset_.empty();
  return {multiplier_.data() + first,
          shift_.data() + first,
          is_short ? offset_.data() + first : nullptr,
          is_short ? nullptr : even_offset_.data() + half,
          is_short ? nullptr : odd_offset_.data() + half,
          static_cast<std::int16_t>(zero_point_),
          static_cast<std::int16_t>(low + stored_),
          static_cast<std::int16_t>(high + stored_),
          by_halves_};
}

}  // namespace cvm
